#include "tessera/graph/composite.h"

#include "tessera/graph/build.h"

namespace tessera {

namespace {

using namespace graph;
using Inputs = std::vector<Value>;

Dims last_axis(const Value& x) { return {x.shape().rank() - 1}; }

Dims leading_axes(const Value& x) {
  Dims axes;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) axes.push_back(i);
  return axes;
}

Value mean_last(const Value& x) {
  return reduce(Op::sum, x, last_axis(x)) * (1.0 / double(x.shape().back()));
}

std::vector<Value> softmax_composite(const Node& node) {
  const Value& input = node.inputs()[0];
  // An empty row has no maximum, and nothing to normalize.
  if (input.shape().back() == 0) return {input};
  const Value x = cast(input, compute_type(input.dtype()));
  const Value shifted = x - reduce(Op::max, x, last_axis(x));
  const Value e = apply(Op::exp, shifted);
  return {cast(e / reduce(Op::sum, e, last_axis(e)), input.dtype())};
}

// y = (x - mean) · rstd · gamma + beta, with rstd = 1 / sqrt(variance + epsilon)
std::vector<Value> layer_norm_composite(const Node& node) {
  const DType dtype = node.inputs()[0].dtype();
  const DType wide = compute_type(dtype);
  const Value x = cast(node.inputs()[0], wide);
  const Value gamma = cast(node.inputs()[1], wide), beta = cast(node.inputs()[2], wide);
  const double epsilon = scalar_as_double(DType::f64, node.attrs.bits);
  const Value mean = mean_last(x);
  const Value centred = x - mean;
  const Value rstd = apply(Op::rsqrt, mean_last(centred * centred) + epsilon);
  return {cast(centred * rstd * gamma + beta, dtype), mean, rstd};
}

// With h = (x - mean) · rstd and s = g · gamma:
//   dx = rstd · (s - mean(s) - h · mean(s · h)), dgamma = Σ g · h, dbeta = Σ g
std::vector<Value> layer_norm_backward_composite(const Node& node) {
  const DType dtype = node.inputs()[1].dtype();
  const DType wide = compute_type(dtype);
  const Value g = cast(node.inputs()[0], wide), x = cast(node.inputs()[1], wide);
  const Value gamma = cast(node.inputs()[2], wide);
  const Value &mean = node.inputs()[3], &rstd = node.inputs()[4];
  const Shape columns = gamma.shape();
  const Value h = (x - mean) * rstd;
  const Value s = g * gamma;
  const Value dx = rstd * (s - mean_last(s) - h * mean_last(s * h));
  const Value dgamma = reshape(reduce(Op::sum, g * h, leading_axes(x)), columns);
  const Value dbeta = reshape(reduce(Op::sum, g, leading_axes(x)), columns);
  return {cast(dx, dtype), cast(dgamma, dtype), cast(dbeta, dtype)};
}

struct Row {
  Op op;
  std::vector<Value> (*build)(const Node&);
};

constexpr Row kRows[] = {
    {Op::softmax, softmax_composite},
    {Op::layer_norm, layer_norm_composite},
    {Op::layer_norm_backward, layer_norm_backward_composite},
};

}  // namespace

std::vector<Value> composite(const Node& node) {
  for (const Row& row : kRows) {
    if (row.op == node.op) return row.build(node);
  }
  TESSERA_ASSERT(!"a kernel op without a composite");
  return {};
}

}  // namespace tessera
