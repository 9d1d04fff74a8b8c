#include "tessera/graph/build.h"

#include <algorithm>

namespace tessera::graph {

namespace {

Value node(Op op, std::vector<Value> inputs, const Attrs& attrs = {}) {
  return {make_node(op, std::move(inputs), attrs), 0};
}

Attrs along(int axis) {
  Attrs attrs;
  attrs.axis = axis;
  return attrs;
}

Shape common_shape(std::string_view op, const Shape& a, const Shape& b) {
  return with_origin([&] { return broadcast_shapes(op, a, b); });
}

Value binary(Op op, const Value& a, const Value& b) {
  if (a.shape() == b.shape()) return node(op, {a, b});
  const Shape shape = common_shape(name(op), a.shape(), b.shape());
  return node(op, {broadcast_to(a, shape), broadcast_to(b, shape)});
}

}  // namespace

Value constant(DType dtype, double value) {
  Attrs attrs;
  attrs.dtype = dtype;
  attrs.bits = scalar_bits(dtype, value);
  return node(Op::constant, {}, attrs);
}

Value constant_int(DType dtype, int64_t value) {
  Attrs attrs;
  attrs.dtype = dtype;
  attrs.bits = scalar_bits(dtype, value);
  return node(Op::constant, {}, attrs);
}

Value full(const Type& type, double value) {
  return broadcast_to(constant(type.dtype, value), type.shape);
}

Value iota(DType dtype, const Shape& shape, int axis) {
  Attrs attrs;
  attrs.dtype = dtype;
  attrs.a = shape;
  attrs.axis = axis;
  return node(Op::iota, {}, attrs);
}

Value uniform(const Value& key, const Value& offset, const Shape& shape) {
  Attrs attrs;
  attrs.a = shape;
  return node(Op::uniform, {key, offset}, attrs);
}

Value apply(Op op, const Value& a) { return node(op, {a}); }
Value apply(Op op, const Value& a, const Value& b) { return binary(op, a, b); }

Value where(const Value& condition, const Value& a, const Value& b) {
  const Shape shape =
      common_shape("where", condition.shape(), common_shape("where", a.shape(), b.shape()));
  return node(Op::where,
              {broadcast_to(condition, shape), broadcast_to(a, shape), broadcast_to(b, shape)});
}

Value cast(const Value& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Attrs attrs;
  attrs.dtype = dtype;
  return node(Op::cast, {x}, attrs);
}

Value operator+(const Value& a, const Value& b) { return binary(Op::add, a, b); }
Value operator-(const Value& a, const Value& b) { return binary(Op::sub, a, b); }
Value operator*(const Value& a, const Value& b) { return binary(Op::mul, a, b); }
Value operator/(const Value& a, const Value& b) { return binary(Op::div, a, b); }
Value operator-(const Value& a) { return apply(Op::neg, a); }
Value operator*(const Value& a, double b) { return a * constant(a.dtype(), b); }
Value operator+(const Value& a, double b) { return a + constant(a.dtype(), b); }

Value reduce(Op op, const Value& x, const Dims& axes) {
  if (axes.empty() && op != Op::argmax) return x;
  Attrs attrs;
  attrs.a = axes;
  return node(op, {x}, attrs);
}

Value reshape(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Attrs attrs;
  attrs.a = shape;
  return node(Op::reshape, {x}, attrs);
}

Value permute(const Value& x, const Dims& permutation) {
  bool identity = permutation.rank() == x.shape().rank();
  for (int i = 0; identity && i < permutation.rank(); ++i) identity = permutation[i] == i;
  if (identity) return x;
  Attrs attrs;
  attrs.a = permutation;
  return node(Op::permute, {x}, attrs);
}

Value swap_last(const Value& x) {
  TESSERA_ASSERT(x.shape().rank() >= 2);
  Dims permutation;
  for (int i = 0; i < x.shape().rank(); ++i) permutation.push_back(i);
  std::swap(permutation[permutation.rank() - 1], permutation[permutation.rank() - 2]);
  return permute(x, permutation);
}

Value expand(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Attrs attrs;
  attrs.a = shape;
  return node(Op::expand, {x}, attrs);
}

Value broadcast_to(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Shape lifted = x.shape();
  while (lifted.rank() < shape.rank()) lifted.insert(0, 1);
  return expand(reshape(x, lifted), shape);
}

Value slice(const Value& x, const Dims& starts, const Dims& sizes, const Dims& steps) {
  Attrs attrs;
  attrs.a = starts;
  attrs.b = sizes;
  attrs.c = steps;
  return node(Op::slice, {x}, attrs);
}

Value flip(const Value& x, int axis) {
  const int rank = x.shape().rank();
  Dims starts = Dims::filled(rank, 0), steps = Dims::filled(rank, 1);
  starts[axis] = x.shape()[axis] - 1;
  steps[axis] = -1;
  return slice(x, starts, x.shape(), steps);
}

Value window(const Value& x, int axis, int64_t size, int64_t step) {
  Attrs attrs;
  attrs.axis = axis;
  // A step beyond the end leaves one window, however long it is.
  if (axis >= 0 && axis < x.shape().rank()) step = std::min(step, x.shape()[axis] + 1);
  attrs.a = {size, step};
  return node(Op::window, {x}, attrs);
}

Value pad(const Value& x, const Dims& before, const Dims& after, double value) {
  Attrs attrs;
  attrs.a = before;
  attrs.b = after;
  attrs.bits = scalar_bits(x.dtype(), value);
  return node(Op::pad, {x}, attrs);
}

Value concat(const std::vector<Value>& parts, int axis) {
  return node(Op::concat, parts, along(axis));
}

Value gather(const Value& x, const Value& index, int axis) {
  return node(Op::gather, {x, index}, along(axis));
}

Value scatter_add(const Value& x, const Value& index, const Value& source, int axis) {
  return node(Op::scatter_add, {x, index, source}, along(axis));
}

Value scatter(const Value& x, const Value& index, const Value& source, int axis) {
  return node(Op::scatter, {x, index, source}, along(axis));
}

Value dynamic_slice(const Value& x, const Value& start, int axis, int64_t size) {
  Attrs attrs;
  attrs.axis = axis;
  attrs.a = {size};
  return node(Op::dynamic_slice, {x, start}, attrs);
}

Value dynamic_update_slice(const Value& x, const Value& update, const Value& start, int axis) {
  return node(Op::dynamic_update_slice, {x, update, start}, along(axis));
}

Value matmul(const Value& a, const Value& b) {
  if (a.shape().rank() < 2 || b.shape().rank() < 2) return node(Op::matmul, {a, b});
  auto batch = [](const Value& x) {
    return Shape(std::span(x.shape().begin(), size_t(x.shape().rank() - 2)));
  };
  auto lift = [](const Value& x, Shape shape) {
    shape.push_back(x.shape()[x.shape().rank() - 2]);
    shape.push_back(x.shape().back());
    return broadcast_to(x, shape);
  };
  if (a.shape().back() != b.shape()[b.shape().rank() - 2] || batch(a) == batch(b)) {
    return node(Op::matmul, {a, b});
  }
  const Shape x = batch(a), y = batch(b);
  for (int i = 1; i <= std::min(x.rank(), y.rank()); ++i) {
    const int64_t p = x[x.rank() - i], q = y[y.rank() - i];
    // The node's own error shows the whole shapes.
    if (p != q && p != 1 && q != 1) return node(Op::matmul, {a, b});
  }
  const Shape shape = common_shape("matmul", x, y);
  return node(Op::matmul, {lift(a, shape), lift(b, shape)});
}

Value stop_gradient(const Value& x) { return node(Op::stop_gradient, {x}); }

Value softmax(const Value& x) { return node(Op::softmax, {x}); }
Value cumsum(const Value& x, int axis) { return node(Op::cumsum, {x}, along(axis)); }
Value cumprod(const Value& x, int axis) { return node(Op::cumprod, {x}, along(axis)); }

std::vector<Value> sort(const Value& x, bool descending) {
  Attrs attrs;
  attrs.axis = descending;
  return outputs_of(make_node(Op::sort, {x}, attrs));
}

std::vector<Value> topk(const Value& x, int64_t k, bool largest) {
  Attrs attrs;
  attrs.axis = largest;
  attrs.a = {k};
  return outputs_of(make_node(Op::topk, {x}, attrs));
}

std::vector<Value> layer_norm(const Value& x, const Value& gamma, const Value& beta,
                              double epsilon) {
  Attrs attrs;
  attrs.bits = scalar_bits(DType::f64, epsilon);
  return outputs_of(make_node(Op::layer_norm, {x, gamma, beta}, attrs));
}

std::vector<Value> cross_entropy(const Value& x, const Value& targets, const Value& g) {
  return outputs_of(make_node(Op::cross_entropy, {x, targets, g}));
}

std::vector<Value> outputs_of(const NodePtr& node) {
  std::vector<Value> outputs;
  for (size_t i = 0; i < node->types.size(); ++i) outputs.push_back({node, int(i)});
  return outputs;
}

Value sum_to(const Value& g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const int extra = g.shape().rank() - shape.rank();
  Dims axes;
  for (int i = 0; i < g.shape().rank(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && g.shape()[i] != 1)) axes.push_back(i);
  }
  return reshape(reduce(Op::sum, g, axes), shape);
}

}  // namespace tessera::graph
