#include "tessera/graph/composite.h"

#include <limits>

#include "tessera/graph/attention.h"
#include "tessera/graph/build.h"
#include "tessera/graph/custom.h"

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
  // Broadcast before they are cast: the kernel that reads them then casts them as well.
  const auto widened = [&](const Value& row) { return cast(broadcast_to(row, x.shape()), wide); };
  const Value gamma = widened(node.inputs()[1]), beta = widened(node.inputs()[2]);
  const double epsilon = scalar_as_double(DType::f64, node.attrs.bits);
  const Value mean = mean_last(x);
  const Value centred = x - mean;
  const Value rstd = apply(Op::rsqrt, mean_last(centred * centred) + epsilon);
  return {cast(centred * rstd * gamma + beta, dtype), mean, rstd};
}

// What `linear` does to its sum. Of relu, NaN stays NaN.
Value activated(int64_t activation, const Value& x) {
  if (activation == 0) return x;
  if (activation == 1) return apply(Op::gelu_tanh, x);
  const Value zero = constant(x.dtype(), 0);
  return where(apply(Op::le, x, zero), zero, x);
}

std::vector<Value> linear_composite(const Node& node) {
  const DType dtype = node.inputs()[0].dtype(), wide = compute_type(dtype);
  const Value product = matmul(cast(node.inputs()[0], wide), cast(node.inputs()[1], wide));
  const Value sum = product + cast(broadcast_to(node.inputs()[2], product.shape()), wide);
  return {cast(activated(node.attrs.axis, sum), dtype), cast(sum, dtype)};
}

std::vector<Value> matmul_add_composite(const Node& node) {
  const DType dtype = node.inputs()[0].dtype(), wide = compute_type(dtype);
  const Value product = matmul(cast(node.inputs()[0], wide), cast(node.inputs()[1], wide));
  return {cast(product + cast(node.inputs()[2], wide), dtype)};
}

std::vector<Value> matmul_sums_composite(const Node& node) {
  const DType dtype = node.inputs()[0].dtype(), wide = compute_type(dtype);
  const Value b = cast(node.inputs()[1], wide);
  const Value sums = reshape(reduce(Op::sum, b, {0}), {b.shape().back()});
  return {cast(matmul(cast(node.inputs()[0], wide), b), dtype), cast(sums, dtype)};
}

std::vector<Value> linear_slope_composite(const Node& node) {
  const DType dtype = node.inputs()[0].dtype(), wide = compute_type(dtype);
  const Value slope = apply(Op::gelu_tanh_slope, cast(node.inputs()[2], wide));
  const Value y = matmul(cast(node.inputs()[0], wide), cast(node.inputs()[1], wide)) * slope;
  const Value sums = reshape(reduce(Op::sum, y, {0}), {y.shape().back()});
  return {cast(y, dtype), cast(sums, dtype)};
}

// With h = (x - mean) · rstd and s = g · gamma:
//   dx = rstd · (s - mean(s) - h · mean(s · h)), dgamma = Σ g · h, dbeta = Σ g
std::vector<Value> layer_norm_backward_composite(const Node& node) {
  const DType dtype = node.inputs()[1].dtype();
  const DType wide = compute_type(dtype);
  const Value g = cast(node.inputs()[0], wide), x = cast(node.inputs()[1], wide);
  const Value gamma = cast(broadcast_to(node.inputs()[2], x.shape()), wide);
  const Value &mean = node.inputs()[3], &rstd = node.inputs()[4];
  const Shape columns = node.inputs()[2].shape();
  const Value h = (x - mean) * rstd;
  const Value s = g * gamma;
  const Value dx = rstd * (s - mean_last(s) - h * mean_last(s * h));
  const Value dgamma = reshape(reduce(Op::sum, g * h, leading_axes(x)), columns);
  const Value dbeta = reshape(reduce(Op::sum, g, leading_axes(x)), columns);
  return {cast(dx, dtype), cast(dgamma, dtype), cast(dbeta, dtype)};
}

// With e = exp(x - top): loss = log Σe + top - x[target], and its gradient is e / Σe, less 1 at the
// target. Shifting by top changes nothing but overflow; a row of -inf, or with an inf, is shifted
// by nothing.
std::vector<Value> cross_entropy_composite(const Node& node) {
  const Value &input = node.inputs()[0], &targets = node.inputs()[1], &g = node.inputs()[2];
  const int last = input.shape().rank() - 1;
  const Value x = cast(input, compute_type(input.dtype()));
  const Value greatest = stop_gradient(reduce(Op::max, x, {last}));
  const Value top = where(apply(Op::isfinite, greatest), greatest, full(greatest.type(), 0));
  const Value e = apply(Op::exp, x - top);
  const Value total = reduce(Op::sum, e, {last});
  const Value loss = apply(Op::log, total) + top - gather(x, targets, last);
  // As i32 where that holds a class, for speed; an index it cannot hold is met by gather.
  const bool fits = x.shape().back() <= std::numeric_limits<int32_t>::max();
  const DType index = fits ? DType::i32 : DType::i64;
  const Value is_target = apply(Op::eq, iota(index, x.shape(), last), cast(targets, index));
  const Value dx = e * (g / total) - where(is_target, expand(g, x.shape()), full(x.type(), 0));
  return {loss, cast(dx, input.dtype())};
}

// Each step adds what lies 1, 2, 4, … places before: after it an element holds the total of twice
// as many. -0 is what adding changes nothing, for +0 would turn -0 around.
std::vector<Value> scan_composite(const Node& node, Op op, double neutral) {
  const Value& input = node.inputs()[0];
  const int axis = int(node.attrs.axis), rank = input.shape().rank();
  const int64_t n = input.shape()[axis];
  const Dims none = Dims::filled(rank, 0), ones = Dims::filled(rank, 1);
  Value y = cast(input, compute_type(input.dtype()));
  for (int64_t shift = 1; shift < n; shift *= 2) {
    Shape kept = y.shape();
    Dims before = none;
    kept[axis] = n - shift;
    before[axis] = shift;
    y = apply(op, y, pad(slice(y, none, kept, ones), before, none, neutral));
  }
  return {cast(y, input.dtype())};
}

std::vector<Value> cumsum_composite(const Node& node) {
  return scan_composite(node, Op::add, -0.0);
}
std::vector<Value> cumprod_composite(const Node& node) { return scan_composite(node, Op::mul, 1); }

// NaN is greater than every number.
Value is_less(const Value& a, const Value& b) {
  const Value less = apply(Op::lt, a, b);
  if (!is_float(a.dtype())) return less;
  return apply(Op::logical_or, less,
               apply(Op::logical_and, apply(Op::eq, a, a), apply(Op::ne, b, b)));
}

// An element's rank is how many others come before it: those beyond it, and of its equals those to
// its left.
std::vector<Value> sort_composite(const Node& node) {
  const Value& input = node.inputs()[0];
  const int64_t n = input.shape().back();
  const int64_t rows = n == 0 ? 0 : numel(input.shape()) / n;
  const Value x = reshape(input, {rows, n});
  const Value number = x.dtype() == DType::boolean ? cast(x, DType::u8) : x;
  const Value here = reshape(number, {rows, n, 1}), there = reshape(number, {rows, 1, n});
  const Value less = is_less(there, here), greater = is_less(here, there);
  const Value beyond = node.attrs.axis == 1 ? greater : less;
  const Value equal = apply(Op::logical_not, apply(Op::logical_or, less, greater));
  const Value left = apply(Op::lt, iota(DType::i64, {1, n, n}, 2), iota(DType::i64, {1, n, n}, 1));
  const Value before = apply(Op::logical_or, beyond, apply(Op::logical_and, equal, left));
  const Value rank = reshape(reduce(Op::sum, cast(before, DType::i64), {2}), {rows, n});
  const Value indices =
      scatter(full({DType::i64, {rows, n}}, 0), rank, iota(DType::i64, {rows, n}, 1), 1);
  return {reshape(gather(x, indices, 1), input.shape()), reshape(indices, input.shape())};
}

std::vector<Value> topk_composite(const Node& node) {
  const Shape& shape = node.types[0].shape;
  const Dims starts = Dims::filled(shape.rank(), 0), steps = Dims::filled(shape.rank(), 1);
  std::vector<Value> outputs = sort(node.inputs()[0], node.attrs.axis == 1);
  for (Value& output : outputs) output = slice(output, starts, shape, steps);
  return outputs;
}

std::vector<Value> custom_composite(const Node& node) {
  const CustomDefinition& definition = custom_definition(node.attrs);
  const std::string& op = definition.kernel->name;
  if (!definition.composite) {
    fail("custom_op: '", op, "' has no kernel for this device and no composite");
  }
  std::vector<Value> outputs = definition.composite(node.inputs());
  bool fits = outputs.size() == node.types.size();
  for (size_t i = 0; fits && i < outputs.size(); ++i) fits = outputs[i].type() == node.types[i];
  if (!fits) fail("custom_op: the composite of '", op, "' gives other outputs than the op");
  return outputs;
}

struct Row {
  Op op;
  std::vector<Value> (*build)(const Node&);
};

constexpr Row kRows[] = {
    {Op::cumsum, cumsum_composite},
    {Op::cumprod, cumprod_composite},
    {Op::sort, sort_composite},
    {Op::topk, topk_composite},
    {Op::softmax, softmax_composite},
    {Op::linear, linear_composite},
    {Op::linear_slope, linear_slope_composite},
    {Op::matmul_add, matmul_add_composite},
    {Op::matmul_sums, matmul_sums_composite},
    {Op::layer_norm, layer_norm_composite},
    {Op::layer_norm_backward, layer_norm_backward_composite},
    {Op::cross_entropy, cross_entropy_composite},
    {Op::attention, attention_composite},
    {Op::attention_backward, attention_backward_composite},
    {Op::custom, custom_composite},
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
