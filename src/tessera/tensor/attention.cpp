#include <cmath>

#include "tessera/graph/attention.h"
#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/network.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/random.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

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

// In the type that the op wants: `result`, unless an operand holds more than that and would round.
DType operand_type(DType result, std::initializer_list<const Tensor*> operands) {
  for (const Tensor* x : operands) {
    if (x->dtype() != result) return compute_type(result);
  }
  return result;
}

}  // namespace

Tensor attention(In q, In k, In v, const AttentionOptions& options) {
  const Extents e = extents_of(q, k, v);
  expect_options(e, options);
  const DType result = promote(promote(as_float(q).dtype(), k.dtype()), v.dtype());
  const Shape shape = {e.batch, e.heads, e.queries, e.values};
  if (numel(shape) == 0 || e.keys == 0) return zeros(shape, result);

  const DType dtype = operand_type(result, {&q, &k, &v});
  AttentionInputs in;
  in.q = graph::cast(q.value(), dtype);
  in.k = graph::cast(k.value(), dtype);
  in.v = graph::cast(v.value(), dtype);
  in.causal = options.causal;
  in.scale = options.scale.value_or(1 / std::sqrt(double(q.size(3))));
  if (options.mask.defined()) {
    const DType mask = is_float(options.mask.dtype()) ? compute_type(dtype) : DType::boolean;
    in.mask = graph::broadcast_to(graph::cast(options.mask.value(), mask), e.scores());
  }
  if (options.lengths.defined()) in.lengths = graph::cast(options.lengths.value(), DType::i64);
  if (options.dropout != 0 && Random::drops(options.dropout)) {
    const Random::Stream stream = options.random->take(numel(e.scores()));
    in.key = stream.key.value();
    in.offset = stream.offset.value();
    in.dropout = options.dropout;
  }
  return cast(Tensor(graph::attention(in)[0]), result);
}

}  // namespace tessera
