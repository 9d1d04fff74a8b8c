#include "tessera/autodiff/gradients.h"

#include <array>
#include <cmath>

#include "tessera/autodiff/backward.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

using namespace graph;
using Context = GradientContext;
using Grads = std::vector<Value>;

Value zeros_like(const Value& x) { return full(x.type(), 0); }

Grads max_binary_grad(const Context& c, Op wins) {
  // Equal operands share the gradient, as a limit from both sides would.
  const Value zero = zeros_like(c.g());
  const Value half = where(apply(Op::eq, c.in(0), c.in(1)), c.g() * 0.5, zero);
  return {where(apply(wins, c.in(0), c.in(1)), c.g(), half),
          where(apply(wins, c.in(1), c.in(0)), c.g(), half)};
}

Grads max_reduce_grad(const Context& c) {
  // Elements that tie for the extreme value share its gradient.
  const Value hit = cast(apply(Op::eq, c.in(0), c.out()), c.in(0).dtype());
  return {c.g() / reduce(Op::sum, hit, c.node->attrs.a) * hit};
}

Grads pow_grad(const Context& c) {
  const Value &a = c.in(0), &b = c.in(1);
  const Value positive = apply(Op::gt, a, zeros_like(a));
  const Value log_a = apply(Op::log, where(positive, a, full(a.type(), 1)));
  // x⁰ is constant also at 0, where 0 · 0⁻¹ would say NaN.
  const Value slope = b * apply(Op::pow, a, b + -1.0);
  const Value da = where(apply(Op::eq, b, zeros_like(b)), zeros_like(a), slope);
  return {c.g() * da, c.g() * c.out() * log_a};
}

Grads permute_grad(const Context& c) {
  const Dims& forward = c.node->attrs.a;
  Dims inverse = forward;
  for (int i = 0; i < forward.rank(); ++i) inverse[int(forward[i])] = i;
  return {permute(c.g(), inverse)};
}

Grads slice_grad(const Context& c) {
  const Attrs& at = c.node->attrs;
  const Shape& shape = c.in(0).shape();
  Value g = c.g();
  // Axes taken with a step scatter back one by one; the others are a pad.
  Dims before = Dims::filled(shape.rank(), 0), after = before;
  for (int i = 0; i < shape.rank(); ++i) {
    if (at.c[i] == 1) {
      before[i] = at.a[i];
      after[i] = shape[i] - at.a[i] - at.b[i];
      continue;
    }
    Type wide = g.type();
    wide.shape[i] = shape[i];
    const Value position = iota(DType::i64, g.shape(), i);
    const Value index =
        position * constant_int(DType::i64, at.c[i]) + constant_int(DType::i64, at.a[i]);
    g = scatter_add(full(wide, 0), index, g, i);
  }
  return {pad(g, before, after, 0)};
}

Grads pad_grad(const Context& c) {
  const Shape& shape = c.in(0).shape();
  return {slice(c.g(), c.node->attrs.a, shape, Dims::filled(shape.rank(), 1))};
}

Grads concat_grad(const Context& c) {
  const int axis = int(c.node->attrs.axis);
  Grads grads;
  Dims start = Dims::filled(c.g().shape().rank(), 0);
  const Dims steps = Dims::filled(c.g().shape().rank(), 1);
  for (const Value& part : c.node->inputs()) {
    grads.push_back(slice(c.g(), start, part.shape(), steps));
    start[axis] += part.shape()[axis];
  }
  return grads;
}

Grads matmul_grad(const Context& c) {
  return {matmul(c.g(), swap_last(c.in(1))), matmul(swap_last(c.in(0)), c.g())};
}

Grads update_slice_grad(const Context& c) {
  const int axis = int(c.node->attrs.axis);
  const Value &u = c.in(1), &start = c.in(2);
  return {dynamic_update_slice(c.g(), zeros_like(u), start, axis),
          dynamic_slice(c.g(), start, axis, u.shape()[axis]),
          {}};
}

Grads custom_grad(const Context& c) {
  const auto split = c.node->inputs().begin() + c.node->attrs.axis;
  const std::vector<Value> x(c.node->inputs().begin(), split);
  std::vector<Value> g = c.grads;
  for (size_t i = 0; i < g.size(); ++i) {
    if (!g[i]) g[i] = full(c.node->types[i], 0);
  }
  std::vector<Value> dx = (*c.node->vjp)(x, outputs_of(c.node), g);
  if (dx.size() != x.size()) {
    fail("custom_vjp: expected ", x.size(), " gradients, got ", dx.size());
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (dx[i] && dx[i].type() != x[i].type()) {
      fail("custom_vjp: expected a gradient of ", x[i].type(), " for input ", i, ", got ",
           dx[i].type());
    }
  }
  dx.resize(c.node->inputs().size());  // the forward values behind the inputs get none
  return dx;
}

Grads layer_norm_grad(const Context& c) {
  // The statistics are outputs too; a gradient that flows into them takes the composite's way.
  if (c.g(1) || c.g(2) || !c.g(0)) return {};
  return outputs_of(
      make_node(Op::layer_norm_backward, {c.g(0), c.in(0), c.in(1), c.out(1), c.out(2)}));
}

constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

// clang-format off
const GradientRow kRows[] = {
    {Op::neg,     [](const Context& c) -> Grads { return {-c.g()}; }},
    {Op::abs,     [](const Context& c) -> Grads { return {c.g() * apply(Op::sign, c.in(0))}; }},
    {Op::exp,     [](const Context& c) -> Grads { return {c.g() * c.out()}; }},
    {Op::log,     [](const Context& c) -> Grads { return {c.g() / c.in(0)}; }},
    {Op::sqrt,    [](const Context& c) -> Grads { return {c.g() / c.out() * 0.5}; }},
    {Op::rsqrt,   [](const Context& c) -> Grads { return {c.g() * c.out() * c.out() * c.out() * -0.5}; }},
    {Op::reciprocal, [](const Context& c) -> Grads { return {-(c.g() * c.out() * c.out())}; }},
    {Op::sin,     [](const Context& c) -> Grads { return {c.g() * apply(Op::cos, c.in(0))}; }},
    {Op::cos,     [](const Context& c) -> Grads { return {-(c.g() * apply(Op::sin, c.in(0)))}; }},
    {Op::tanh,    [](const Context& c) -> Grads { return {c.g() * (-(c.out() * c.out()) + 1.0)}; }},
    {Op::erf,     [](const Context& c) -> Grads {
       return {c.g() * (apply(Op::exp, -(c.in(0) * c.in(0))) * kTwoOverSqrtPi)}; }},
    {Op::sigmoid, [](const Context& c) -> Grads { return {c.g() * c.out() * (-c.out() + 1.0)}; }},
    {Op::sign, nullptr}, {Op::floor, nullptr}, {Op::is_finite, nullptr}, {Op::logical_not, nullptr},

    {Op::add,     [](const Context& c) -> Grads { return {c.g(), c.g()}; }},
    {Op::sub,     [](const Context& c) -> Grads { return {c.g(), -c.g()}; }},
    {Op::mul,     [](const Context& c) -> Grads { return {c.g() * c.in(1), c.g() * c.in(0)}; }},
    {Op::div,     [](const Context& c) -> Grads {
       const Value da = c.g() / c.in(1);
       return {da, -(da * c.out())}; }},
    {Op::pow, pow_grad},
    {Op::maximum, [](const Context& c) { return max_binary_grad(c, Op::gt); }},
    {Op::minimum, [](const Context& c) { return max_binary_grad(c, Op::lt); }},
    {Op::eq, nullptr}, {Op::ne, nullptr}, {Op::lt, nullptr}, {Op::le, nullptr}, {Op::gt, nullptr},
    {Op::ge, nullptr}, {Op::logical_and, nullptr}, {Op::logical_or, nullptr},
    {Op::where,   [](const Context& c) -> Grads {
       const Value zero = zeros_like(c.g());
       return {{}, where(c.in(0), c.g(), zero), where(c.in(0), zero, c.g())}; }},
    {Op::cast,    [](const Context& c) -> Grads { return {cast(c.g(), c.in(0).dtype())}; }},

    {Op::leaf, nullptr}, {Op::constant, nullptr}, {Op::iota, nullptr}, {Op::uniform, nullptr},
    {Op::argmax, nullptr}, {Op::stop_gradient, nullptr},

    {Op::sum,     [](const Context& c) -> Grads { return {expand(c.g(), c.in(0).shape())}; }},
    {Op::max, max_reduce_grad},
    {Op::min, max_reduce_grad},
    {Op::reshape, [](const Context& c) -> Grads { return {reshape(c.g(), c.in(0).shape())}; }},
    {Op::permute, permute_grad},
    {Op::expand,  [](const Context& c) -> Grads { return {sum_to(c.g(), c.in(0).shape())}; }},
    {Op::slice, slice_grad},
    {Op::pad, pad_grad},
    {Op::concat, concat_grad},
    {Op::gather,  [](const Context& c) -> Grads {
       return {scatter_add(zeros_like(c.in(0)), c.in(1), c.g(), int(c.node->attrs.axis)), {}}; }},
    {Op::scatter_add, [](const Context& c) -> Grads {
       return {c.g(), {}, gather(c.g(), c.in(1), int(c.node->attrs.axis))}; }},
    {Op::dynamic_slice, [](const Context& c) -> Grads {
       return {dynamic_update_slice(zeros_like(c.in(0)), c.g(), c.in(1), int(c.node->attrs.axis)), {}}; }},
    {Op::dynamic_update_slice, update_slice_grad},
    {Op::matmul, matmul_grad},
    {Op::region_enter, [](const Context& c) -> Grads { return {c.g()}; }},
    {Op::region_exit,  [](const Context& c) -> Grads { return {c.g()}; }},
    {Op::custom_vjp, custom_grad},

    // A kernel op's rule that returns nothing, and a kernel op whose rule is null, go through the
    // composite (autodiff/backward.cpp).
    {Op::softmax, [](const Context& c) -> Grads {
       const Value y = c.out();
       return {y * (c.g() - reduce(Op::sum, c.g() * y, {y.shape().rank() - 1}))}; }},
    {Op::layer_norm, layer_norm_grad},
    {Op::layer_norm_backward, nullptr},
};
// clang-format on

}  // namespace

const GradientRow* gradient_row(Op op) {
  static const auto index = [] {
    std::array<const GradientRow*, kOpCount> by_op{};
    for (const GradientRow& row : kRows) by_op[size_t(row.op)] = &row;
    return by_op;
  }();
  return index[size_t(op)];
}

bool has_gradient_row(Op op) { return gradient_row(op) != nullptr; }

}  // namespace tessera
