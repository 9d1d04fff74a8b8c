#include <cmath>
#include <limits>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/network.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/random.h"
#include "tessera/tensor/reduce.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

struct Extents {
  int64_t batch, heads, groups, queries, keys, values;

  Shape scores() const { return {batch, heads, queries, keys}; }
};

Extents extents_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  fits = fits && q.size(0) == k.size(0) && k.size(0) == v.size(0) && k.size(1) == v.size(1) &&
         q.size(3) == k.size(3) && k.size(2) == v.size(2);
  fits = fits && (k.size(1) == 0 ? q.size(1) == 0 : q.size(1) % k.size(1) == 0);
  if (!fits) {
    fail_here(
        "attention: expected q (B, H, T, D), k (B, G, S, D) and v (B, G, S, E), H a multiple "
        "of G, got ",
        q.shape(), ", ", k.shape(), " and ", v.shape());
  }
  return {q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), v.size(3)};
}

void expect_options(const Extents& e, const AttentionOptions& options) {
  const Tensor &mask = options.mask, &lengths = options.lengths;
  if (mask.defined() && !broadcasts_to(mask.shape(), e.scores())) {
    fail_here("attention: expected a mask that broadcasts to (B, H, T, S) = ", e.scores(), ", got ",
              mask.shape());
  }
  if (mask.defined() && is_integer(mask.dtype())) {
    fail_here("attention: expected a bool or floating-point mask, got ", mask.dtype());
  }
  if (lengths.defined() && (lengths.shape() != Shape{e.batch} || !is_integer(lengths.dtype()))) {
    fail_here("attention: expected lengths (B) = ", Shape{e.batch}, " of integers, got ",
              lengths.value().type());
  }
  if (options.dropout != 0 && options.random == nullptr) {
    fail_here("attention: dropout needs a Random to draw from");
  }
}

// Which scores count; empty where all do.
struct Seen {
  Tensor keys;                  // bool, broadcasts to (B, H, T, S)
  bool may_be_nothing = false;  // for some query

  void narrow(const Tensor& more, bool always_leaves_some) {
    keys = keys.defined() ? logical_and(keys, more) : more;
    may_be_nothing = may_be_nothing || !always_leaves_some;
  }
};

Seen seen_of(const Extents& e, const Tensor& added, const AttentionOptions& options) {
  Seen seen;
  if (options.causal) {
    const Shape square = {e.queries, e.keys};
    const Tensor last = iota(square, 0) + (e.keys - e.queries);
    seen.narrow(iota(square, 1) <= last, e.queries <= e.keys);
  }
  if (options.lengths.defined()) {
    const Tensor length = reshape(cast(options.lengths, DType::i64), {e.batch, 1, 1, 1});
    seen.narrow(iota({e.keys}, 0) < length, false);
  }
  if (added.defined()) seen.narrow(added != kUnseen, false);
  if (options.mask.defined() && !added.defined()) seen.narrow(options.mask, false);
  return seen;
}

// Softmax over the keys seen. It has no value where a query sees none: these are put to 0, which
// also keeps them out of the gradient.
Tensor weights_of(const Tensor& scores, const Seen& seen) {
  if (!seen.keys.defined()) return softmax(scores);
  const Tensor weights = softmax(where(seen.keys, scores, kUnseen));
  return seen.may_be_nothing ? where(seen.keys, weights, 0) : weights;
}

}  // namespace

Tensor attention(In q, In k, In v, const AttentionOptions& options) {
  const Extents e = extents_of(q, k, v);
  expect_options(e, options);
  const DType result = promote(promote(as_float(q).dtype(), k.dtype()), v.dtype());
  const DType wide = compute_type(result);
  const Shape shape = {e.batch, e.heads, e.queries, e.values};
  if (numel(shape) == 0 || e.keys == 0) return zeros(shape, result);

  // Heads that share keys are rows of one product, so that keys are never repeated.
  const int64_t rows = e.heads / e.groups * e.queries;
  const double scale = options.scale.value_or(1 / std::sqrt(double(q.size(3))));
  const Tensor queries = reshape(cast(q, wide) * scale, {e.batch, e.groups, rows, q.size(3)});
  Tensor scores = reshape(matmul(queries, transpose(cast(k, wide))), e.scores());
  Tensor added;
  if (options.mask.defined() && is_float(options.mask.dtype())) added = cast(options.mask, wide);
  const Seen seen = seen_of(e, added, options);
  if (added.defined()) scores = scores + added;
  Tensor weights = weights_of(scores, seen);
  if (options.dropout != 0) weights = options.random->dropout(weights, options.dropout);
  const Tensor grouped = reshape(weights, {e.batch, e.groups, rows, e.keys});
  return cast(reshape(matmul(grouped, cast(v, wide)), shape), result);
}

}  // namespace tessera
