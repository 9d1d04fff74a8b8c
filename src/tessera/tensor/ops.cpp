#include "tessera/tensor/ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/graph/build.h"

namespace tessera {

namespace {

int axis_of(const char* op, int64_t axis, const Tensor& x) {
  return normalize_axis(op, axis, x.rank());
}

// Operands of one dtype: what both promote to, or what the op needs instead.
Tensor binary(Op op, const Tensor& a, const Tensor& b) {
  DType dtype = promote(a.dtype(), b.dtype());
  const ScalarIn in = info(scalar_op(op)).in;
  if (in == ScalarIn::floating && !is_float(dtype)) dtype = DType::f32;
  return Tensor(graph::apply(op, graph::cast(a.value(), dtype), graph::cast(b.value(), dtype)));
}

Tensor literal(const Scalar& s, DType dtype) {
  s.check_fits(dtype);
  return Tensor(s.is_integer() ? graph::constant_int(dtype, s.integer())
                               : graph::constant(dtype, s.real()));
}

// The literal in the dtype that an expression with `x` gives it.
Tensor literal_beside(const Tensor& x, const Scalar& s) {
  DType dtype = x.dtype();
  if (!s.is_integer() && !is_float(dtype)) dtype = DType::f32;
  if (s.is_integer() && dtype == DType::boolean) dtype = DType::i64;
  return literal(s, dtype);
}

Tensor unary(Op op, const Tensor& a) {
  const bool needs_float = info(scalar_op(op)).in == ScalarIn::floating;
  const DType dtype = needs_float && !is_float(a.dtype()) ? DType::f32 : a.dtype();
  return Tensor(graph::apply(op, graph::cast(a.value(), dtype)));
}

Tensor drop_axes(const Value& reduced, const Dims& axes, bool keepdims) {
  if (keepdims) return Tensor(reduced);
  Shape shape;
  for (int i = 0; i < reduced.shape().rank(); ++i) {
    if (!axes.contains(i)) shape.push_back(reduced.shape()[i]);
  }
  return Tensor(graph::reshape(reduced, shape));
}

Tensor reduce(Op op, const Tensor& x, const Dims& axes, bool keepdims) {
  const Dims normalized = normalize_axes(name(op), axes, x.rank());
  return drop_axes(graph::reduce(op, x.value(), normalized), normalized, keepdims);
}

Tensor as_float(const Tensor& x) { return is_float(x.dtype()) ? x : cast(x, DType::f32); }

}  // namespace

#define TESSERA_DEFINE_1(name) \
  Tensor name(const Tensor& a) { return unary(Op::name, a); }
#define TESSERA_DEFINE_2(name) \
  Tensor name(const Tensor& a, const Tensor& b) { return binary(Op::name, a, b); }
#define SCALAR_OP(name, arity, ...) TESSERA_DEFINE_##arity(name)
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
#undef TESSERA_DEFINE_1
#undef TESSERA_DEFINE_2

// clang-format off
#define TESSERA_OPERATOR(symbol, name)                                                          \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); }               \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return name(a, literal_beside(a, b)); } \
  Tensor operator symbol(const Scalar& a, const Tensor& b) { return name(literal_beside(b, a), b); }
TESSERA_OPERATOR(+, add)
TESSERA_OPERATOR(-, sub)
TESSERA_OPERATOR(*, mul)
TESSERA_OPERATOR(/, div)
TESSERA_OPERATOR(<, lt)
TESSERA_OPERATOR(<=, le)
TESSERA_OPERATOR(>, gt)
TESSERA_OPERATOR(>=, ge)
TESSERA_OPERATOR(==, eq)
TESSERA_OPERATOR(!=, ne)
#undef TESSERA_OPERATOR
// clang-format on

Tensor operator-(const Tensor& a) { return neg(a); }

Tensor pow(const Tensor& a, const Scalar& b) { return pow(a, literal_beside(a, b)); }
Tensor maximum(const Tensor& a, const Scalar& b) { return maximum(a, literal_beside(a, b)); }
Tensor minimum(const Tensor& a, const Scalar& b) { return minimum(a, literal_beside(a, b)); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const DType dtype = promote(a.dtype(), b.dtype());
  return Tensor(graph::where(condition.value(), graph::cast(a.value(), dtype),
                             graph::cast(b.value(), dtype)));
}
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  return where(condition, a, literal_beside(a, b));
}
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  return where(condition, literal_beside(b, a), b);
}

Tensor cast(const Tensor& x, DType dtype) { return Tensor(graph::cast(x.value(), dtype)); }

Tensor full(const Shape& shape, const Scalar& value, DType dtype) {
  return broadcast_to(literal(value, dtype), shape);
}
Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor iota(const Shape& shape, int64_t axis, DType dtype) {
  return Tensor(graph::iota(dtype, shape, normalize_axis("iota", axis, shape.rank())));
}
Tensor arange(int64_t n, DType dtype) { return iota({n}, 0, dtype); }

Tensor sum(const Tensor& x, const Dims& axes, bool keepdims) {
  const bool narrow = size_of(x.dtype()) == 1;
  return reduce(Op::sum, narrow ? cast(x, DType::i64) : x, axes, keepdims);
}

Tensor mean(const Tensor& x, const Dims& axes, bool keepdims) {
  // Next to an extent of 0, the others may multiply to more than an integer holds.
  double count = 1;
  for (const int64_t axis : normalize_axes("mean", axes, x.rank())) {
    count *= double(x.shape()[int(axis)]);
  }
  if (count == 0) fail("mean: no elements to average in ", x.shape());
  // Half types must not hold the sum: 65520 elements of 1 are more than f16 can count.
  const Tensor input = as_float(x);
  const Tensor wide = cast(input, compute_type(input.dtype()));
  return cast(sum(wide, axes, keepdims) / count, input.dtype());
}

Tensor max(const Tensor& x, const Dims& axes, bool keepdims) {
  return reduce(Op::max, x, axes, keepdims);
}
Tensor min(const Tensor& x, const Dims& axes, bool keepdims) {
  return reduce(Op::min, x, axes, keepdims);
}
Tensor argmax(const Tensor& x, int64_t axis, bool keepdims) {
  return reduce(Op::argmax, x, {axis_of("argmax", axis, x)}, keepdims);
}

Tensor reshape(const Tensor& x, Shape shape) {
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (unknown >= 0) fail("reshape: expected at most one -1, got ", shape);
    unknown = i;
  }
  if (unknown >= 0) {
    Shape rest = shape;
    rest.erase(unknown);
    const int64_t known = numel(rest);
    if (known == 0 || x.numel() % known != 0)
      fail("reshape: cannot turn ", x.shape(), " into ", shape);
    shape[unknown] = x.numel() / known;
  }
  return Tensor(graph::reshape(x.value(), shape));
}

Tensor permute(const Tensor& x, const Dims& permutation) {
  Dims normalized;
  for (const int64_t axis : permutation) normalized.push_back(axis_of("permute", axis, x));
  return Tensor(graph::permute(x.value(), normalized));
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  Dims permutation;
  for (int i = 0; i < x.rank(); ++i) permutation.push_back(i);
  std::swap(permutation[axis_of("transpose", a, x)], permutation[axis_of("transpose", b, x)]);
  return permute(x, permutation);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.rank() > shape.rank()) fail("broadcast_to: cannot broadcast ", x.shape(), " to ", shape);
  return Tensor(graph::broadcast_to(x.value(), shape));
}

Tensor squeeze(const Tensor& x, int64_t axis) {
  const int i = axis_of("squeeze", axis, x);
  if (x.shape()[i] != 1) fail("squeeze: axis ", axis, " of ", x.shape(), " is not of extent 1");
  Shape shape = x.shape();
  shape.erase(i);
  return reshape(x, shape);
}

Tensor unsqueeze(const Tensor& x, int64_t axis) {
  Shape shape = x.shape();
  shape.insert(normalize_axis("unsqueeze", axis, x.rank() + 1), 1);
  return reshape(x, shape);
}

Tensor slice(const Tensor& x, int64_t axis, int64_t start, int64_t stop, int64_t step) {
  const int i = axis_of("slice", axis, x);
  if (step == 0) fail("slice: step of axis ", i, " is 0");
  const int64_t extent = x.shape()[i];
  // As NumPy: bounds count from the end when negative and are then cut to where a step can start.
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
  auto cut = [&](int64_t p) { return std::clamp(p < 0 ? p + extent : p, lowest, highest); };
  start = cut(start);
  stop = cut(stop);
  const int64_t distance = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -std::max(step, -INT64_MAX);
  Dims starts = Dims::filled(x.rank(), 0), steps = Dims::filled(x.rank(), 1);
  Shape sizes = x.shape();
  sizes[i] = distance <= 0 ? 0 : 1 + (distance - 1) / stride;
  starts[i] = sizes[i] == 0 ? 0 : start;
  steps[i] = sizes[i] > 1 ? step : 1;  // a step nobody takes may be larger than strides can be
  return Tensor(graph::slice(x.value(), starts, sizes, steps));
}

Tensor flip(const Tensor& x, int64_t axis) {
  const int i = axis_of("flip", axis, x);
  Dims starts = Dims::filled(x.rank(), 0), steps = Dims::filled(x.rank(), 1);
  starts[i] = std::max<int64_t>(x.shape()[i] - 1, 0);
  steps[i] = -1;
  return Tensor(graph::slice(x.value(), starts, x.shape(), steps));
}

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, const Scalar& value) {
  return Tensor(graph::pad(x.value(), before, after, value.real()));
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis) {
  if (parts.empty()) fail("concat: expected at least one tensor, got none");
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Value> values;
  for (const Tensor& part : parts) values.push_back(graph::cast(part.value(), dtype));
  return Tensor(graph::concat(values, axis_of("concat", axis, parts[0])));
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis) {
  if (parts.empty()) fail("stack: expected at least one tensor, got none");
  const int i = normalize_axis("stack", axis, parts[0].rank() + 1);
  std::vector<Tensor> lifted;
  for (const Tensor& part : parts) lifted.push_back(unsqueeze(part, i));
  return concat(lifted, i);
}

Tensor gather(const Tensor& x, const Tensor& index, int64_t axis) {
  return Tensor(graph::gather(x.value(), index.value(), axis_of("gather", axis, x)));
}

Tensor scatter_add(const Tensor& x, const Tensor& index, const Tensor& source, int64_t axis) {
  return Tensor(graph::scatter_add(x.value(), index.value(), source.value(),
                                   axis_of("scatter_add", axis, x)));
}

Tensor take(const Tensor& table, const Tensor& indices) {
  if (table.rank() != 2) fail("take: expected a table of 2 dimensions, got ", table.shape());
  const int64_t n = indices.numel(), width = table.size(1);
  const Tensor flat = gather(table, broadcast_to(reshape(indices, {n, 1}), {n, width}), 0);
  Shape shape = indices.shape();
  shape.push_back(width);
  return reshape(flat, shape);
}

Tensor dynamic_slice(const Tensor& x, const Tensor& start, int64_t axis, int64_t size) {
  return Tensor(
      graph::dynamic_slice(x.value(), start.value(), axis_of("dynamic_slice", axis, x), size));
}

Tensor dynamic_update_slice(const Tensor& x, const Tensor& update, const Tensor& start,
                            int64_t axis) {
  return Tensor(graph::dynamic_update_slice(x.value(), update.value(), start.value(),
                                            axis_of("dynamic_update_slice", axis, x)));
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    fail("matmul: expected at least 1 dimension, got ", a.shape(), " @ ", b.shape());
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (a.shape().back() != b.size(column ? 0 : -2)) {
    fail("matmul: inner dimensions differ: ", a.shape(), " @ ", b.shape());
  }
  Tensor product(graph::matmul(graph::cast((row ? unsqueeze(a, 0) : a).value(), dtype),
                               graph::cast((column ? unsqueeze(b, 1) : b).value(), dtype)));
  if (column) product = squeeze(product, -1);
  if (row) product = squeeze(product, column ? -1 : -2);
  return product;
}

Tensor relu(const Tensor& x) { return where(x <= 0, 0, x); }  // NaN stays NaN
Tensor silu(const Tensor& x) { return x * sigmoid(x); }

Tensor gelu(const Tensor& x) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * x * x * x)));
}

Tensor softmax(const Tensor& x, int64_t axis) {
  const int i = axis_of("softmax", axis, x);
  const Tensor input = as_float(x);
  if (i == x.rank() - 1) return Tensor(graph::softmax(input.value()));
  return transpose(Tensor(graph::softmax(transpose(input, i, -1).value())), i, -1);
}

Tensor logsumexp(const Tensor& x, int64_t axis, bool keepdims) {
  const Dims axes = {axis_of("logsumexp", axis, x)};
  const Tensor input = as_float(x);
  // Shifting by the maximum changes nothing but overflow, so no gradient needs to pass through it.
  // A row of -inf, or with an inf, is shifted by nothing: inf - inf would be NaN.
  const Tensor greatest(graph::stop_gradient(max(input, axes, true).value()));
  const Tensor top = where(is_finite(greatest), greatest, 0);
  const Tensor result = log(sum(exp(input - top), axes, true)) + top;
  return keepdims ? result : squeeze(result, axis);
}

Tensor log_softmax(const Tensor& x, int64_t axis) {
  axis_of("log_softmax", axis, x);
  return as_float(x) - logsumexp(x, axis, true);
}

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon) {
  return Tensor(graph::layer_norm(x.value(), gamma.value(), beta.value(), epsilon)[0]);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  Shape rows = logits.shape();
  if (!rows.empty()) rows.erase(rows.rank() - 1);
  if (logits.rank() == 0 || targets.shape() != rows) {
    fail("cross_entropy: expected logits (…, C) and targets (…), got ", logits.shape(), " and ",
         targets.shape());
  }
  const Tensor wide = is_half(logits.dtype()) ? cast(logits, DType::f32) : as_float(logits);
  const Tensor picked = squeeze(gather(wide, unsqueeze(targets, -1), -1), -1);
  return mean(logsumexp(wide, -1) - picked);
}

}  // namespace tessera
