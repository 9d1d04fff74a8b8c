#include "tessera/tensor/random.h"

#include <numbers>

#include "tessera/graph/build.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"
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

// A draw of n elements uses up (n + 3) / 4 counters of four numbers each.
Tensor Random::draw(const Shape& shape) const {
  const Tensor offset = take_counters((numel(shape) + 3) / 4);
  return Tensor(graph::uniform(key_.value().value(), offset.value(), shape));
}

Tensor Random::uniform(const Shape& shape, double low, double high) const {
  if (!(low < high)) fail("uniform: expected low < high, got ", low, " and ", high);
  const Tensor u = draw(shape);
  return low == 0 && high == 1 ? u : u * (high - low) + low;
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

Tensor Random::dropout(const Tensor& x, double probability) const {
  if (!(probability >= 0 && probability < 1)) {
    fail("dropout: expected a probability from 0 to below 1, got ", probability);
  }
  if (!is_training() || probability == 0) return x;
  return where(bernoulli(x.shape(), 1 - probability), x * (1 / (1 - probability)), 0);
}

}  // namespace tessera
