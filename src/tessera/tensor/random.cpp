#include "tessera/tensor/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/graph/build.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/ops.h"

namespace tessera {

struct Random::Mirror {
  uint64_t version = 0;  // of the counter's storage when `next` was right
  int64_t next = 0;
};

Random::Random(int64_t seed, std::string name)
    : key_(scalar(seed), name + ".key", false),
      counter_(scalar(int64_t{0}), name + ".counter", false),
      mirror_(std::make_shared<Mirror>()) {}

// The present counter, after which it stands n further.
Tensor Random::take_counters(int64_t n) const {
  if (pending().tracing) {
    const Tensor offset = counter_;
    counter_.assign(offset + n);
    return offset;
  }
  const Storage& storage = *counter_.state()->storage;
  if (mirror_->version != storage.version) {
    mirror_->next = int64_t(counter_.value().to_vector<int64_t>()[0]);
  }
  const Tensor offset = scalar(mirror_->next);
  mirror_->next += n;
  counter_.set(mirror_->next);
  mirror_->version = storage.version;
  return offset;
}

// n numbers use up (n + 3) / 4 counters of four each.
Random::Stream Random::take(int64_t n) const {
  const Tensor offset = take_counters((n + 3) / 4);
  return {key_.value(), offset};
}

Tensor Random::draw(const Shape& shape) const {
  const Stream stream = take(numel(shape));
  return Tensor(graph::uniform(stream.key.value(), stream.offset.value(), shape));
}

Tensor Random::uniform(const Shape& shape, double low, double high) const {
  if (!(low < high)) fail("uniform: expected low < high, got ", low, " and ", high);
  const Tensor u = draw(shape);
  if (low == 0 && high == 1) return u;
  return minimum(u * (high - low) + low, std::nextafter(float(high), float(low)));  // rounded up
}

// Box and Muller: the radius from one draw, the angle from another.
Tensor Random::normal(const Shape& shape, double mean, double deviation) const {
  const Tensor radius = sqrt(-2.0 * log(1.0 - draw(shape)));  // 1 - u is in (0, 1]
  const Tensor angle = draw(shape) * (2 * std::numbers::pi);
  return radius * cos(angle) * deviation + mean;
}

Tensor Random::bernoulli(const Shape& shape, double probability) const {
  if (!(probability >= 0 && probability <= 1)) {
    fail("bernoulli: expected a probability from 0 to 1, got ", probability);
  }
  return draw(shape) < probability;
}

// Both draws are multiples of 2^-24, so this is exact, and equal on every device.
Tensor Random::draw_integers(const Shape& shape) const {
  constexpr double kScale = 1 << 24;
  const Tensor high = cast(draw(shape) * kScale, DType::i64);
  return high * int64_t(kScale) + cast(draw(shape) * kScale, DType::i64);
}

Tensor Random::randint(const Shape& shape, int64_t low, int64_t high, DType dtype) const {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (!is_integer(dtype)) fail("randint: expected an integer dtype, got ", dtype);
  int64_t range = 0;
  if (__builtin_sub_overflow(high, low, &range) || range < 1 || range > kMost) {
    fail("randint: expected low < high at most 2^48 apart, got ", low, " and ", high);
  }
  Scalar(low).check_fits(dtype);
  Scalar(high - 1).check_fits(dtype);
  return cast(mod(draw_integers(shape), range) + low, dtype);
}

Tensor Random::permutation(int64_t n) const {
  if (n < 0) fail("permutation: expected at least 0 elements, got ", n);
  return argsort(draw_integers({n}));
}

Tensor Random::multinomial(const Tensor& weights, int64_t n, bool replacement) const {
  if (weights.rank() == 0 || weights.size(-1) == 0) {
    fail("multinomial: expected weights (…, C) of at least one class, got ", weights.shape());
  }
  if (n < 1) fail("multinomial: expected at least 1 draw, got ", n);
  const Tensor w = cast(weights, DType::f32);
  if (!replacement) {
    if (n > weights.size(-1)) {
      fail("multinomial: ", n, " draws without replacement from ", weights.size(-1), " classes");
    }
    // The largest of log(w) + Gumbel noise is class c with probability w[c] / Σ w, and the next
    // largest ones follow the same law among those that are left.
    // Draws are moved off 0, whose noise would be infinite and beat every weight.
    const Tensor noise = -log(-log1p(-(draw(w.shape()) + 0x1p-25)));
    return topk(where(w > 0, log(w) + noise, -std::numeric_limits<double>::infinity()), n).indices;
  }
  const Tensor total = cumsum(w);
  Shape shape = w.shape();
  shape[shape.rank() - 1] = n;
  // Below the last total also after rounding, so that the class is always one of positive weight.
  const Tensor u = draw(shape) * (1 - 0x1p-23);
  const Tensor at = u * slice(total, -1, -1, w.size(-1));
  // How many totals lie at or below it: (…, n, C)
  const Tensor below = sum(unsqueeze(total, -2) <= unsqueeze(at, -1), {-1});
  return minimum(below, w.size(-1) - 1);  // weights that sum to nothing give the last class
}

bool Random::drops(double probability) {
  if (!(probability >= 0 && probability < 1)) {
    fail("dropout: expected a probability from 0 to below 1, got ", probability);
  }
  return is_training() && probability != 0;
}

Tensor Random::dropout(const Tensor& x, double probability) const {
  if (!drops(probability)) return x;
  const Tensor scaled = cast(as_wide(x) * (1 / (1 - probability)), as_float(x).dtype());
  return where(bernoulli(x.shape(), 1 - probability), scaled, 0);
}

}  // namespace tessera
