#include "tessera/autodiff/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tessera/autodiff/backward.h"
#include "tessera/graph/attention.h"
#include "tessera/graph/build.h"
#include "tessera/graph/custom.h"

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

// 1 / √(1 - x²), without what 1 - x² loses beside 1.
Value arc_slope(const Value& x) { return apply(Op::rsqrt, (-x + 1.0) * (x + 1.0)); }

Grads pow_grad(const Context& c) {
  const Value &a = c.in(0), &b = c.in(1);
  const Value positive = apply(Op::gt, a, zeros_like(a));
  const Value log_a = apply(Op::log, where(positive, a, full(a.type(), 1)));
  // x⁰ is constant also at 0, where 0 · 0⁻¹ would say NaN.
  const Value slope = b * apply(Op::pow, a, b + -1.0);
  const Value da = where(apply(Op::eq, b, zeros_like(b)), zeros_like(a), slope);
  return {c.g() * da, c.g() * c.out() * log_a};
}

Dims inverse(const Dims& permutation) {
  Dims result = permutation;
  for (int i = 0; i < permutation.rank(); ++i) result[int(permutation[i])] = i;
  return result;
}

// Along the last axis, the product of the elements before each.
Value product_before(const Value& x) {
  const int last = x.shape().rank() - 1;
  Dims none = Dims::filled(last + 1, 0), before = none;
  Shape kept = x.shape();
  --kept[last];
  ++before[last];
  const Value shifted = pad(slice(x, none, kept, Dims::filled(last + 1, 1)), before, none, 1);
  return cumprod(shifted, last);
}

// The others' product, from both sides: dividing the whole by each element would fail at zeros.
Grads prod_grad(const Context& c) {
  const Value& x = c.in(0);
  if (numel(x.shape()) == 0) return {zeros_like(x)};
  const Dims& axes = c.node->attrs.a;
  Dims order;
  Shape rows, moved;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (axes.contains(i)) continue;
    order.push_back(i);
    rows.push_back(x.shape()[i]);
  }
  rows.push_back(numel(x.shape()) / numel(rows));
  for (const int64_t axis : axes) order.push_back(axis);
  for (const int64_t axis : order) moved.push_back(x.shape()[int(axis)]);
  const DType wide = compute_type(x.dtype());
  const Value flat = cast(reshape(permute(x, order), rows), wide);
  const int last = rows.rank() - 1;
  const Value others = product_before(flat) * flip(product_before(flip(flat, last)), last);
  const Value back = permute(reshape(others, moved), inverse(order));
  return {cast(cast(c.g(), wide) * back, x.dtype())};
}

Grads scatter_grad(const Context& c) {
  const int axis = int(c.node->attrs.axis);
  const Value &x = c.in(0), &index = c.in(1), &source = c.in(2);
  // Of the places that meet at one element, the one whose number is left there has won.
  const Value place = iota(DType::i64, index.shape(), axis);
  const Value winner =
      gather(scatter(full({DType::i64, x.shape()}, 0), index, place, axis), index, axis);
  return {scatter(c.g(), index, zeros_like(source), axis),
          {},
          where(apply(Op::eq, winner, place), gather(c.g(), index, axis), zeros_like(source))};
}

// sort and topk: each value goes back to where it was.
Grads ordered_grad(const Context& c) {
  if (!c.g()) return {Value{}};
  return {scatter_add(zeros_like(c.in(0)), c.out(1), c.g(), c.in(0).shape().rank() - 1)};
}

Grads slice_grad(const Context& c) {
  const Attrs& at = c.node->attrs;
  const Shape& shape = c.in(0).shape();
  Value g = c.g();
  // Axes taken with a step scatter back one by one; the others are a pad.
  Dims before = Dims::filled(shape.rank(), 0), after = before;
  for (int i = 0; i < shape.rank(); ++i) {
    if (at.c[i] == 1 || at.c[i] == -1) {
      if (at.c[i] == -1) g = flip(g, i);
      // Where nothing is taken, the start may lie anywhere.
      before[i] = at.b[i] == 0 ? 0 : std::min(at.a[i], at.a[i] + (at.b[i] - 1) * at.c[i]);
      after[i] = shape[i] - before[i] - at.b[i];
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

// The windows laid end to end along the axis, each element back to where it came from.
Grads window_grad(const Context& c) {
  const int axis = int(c.node->attrs.axis);
  const int64_t size = c.node->attrs.a[0], step = c.node->attrs.a[1];
  const int64_t windows = c.g().shape()[axis], count = windows * size;
  Dims order;
  for (int i = 0; i < c.in(0).shape().rank(); ++i) {
    order.push_back(i);
    if (i == axis) order.push_back(c.in(0).shape().rank());
  }
  Shape ends = c.in(0).shape(), along = Dims::filled(ends.rank(), 1);
  ends[axis] = along[axis] = count;
  const Value g = reshape(permute(c.g(), order), ends);
  if (step == size) {
    Dims before = Dims::filled(ends.rank(), 0), after = before;
    after[axis] = c.in(0).shape()[axis] - count;
    return {pad(g, before, after, 0)};
  }
  const Value start = iota(DType::i64, {windows, size}, 0) * constant_int(DType::i64, step);
  const Value index = reshape(start + iota(DType::i64, {windows, size}, 1), along);
  return {scatter_add(zeros_like(c.in(0)), expand(index, ends), g, axis)};
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

// What a user's function gave: one gradient per input, each of the input's type or none.
void check_user_gradients(const std::string& op, std::span<const Value> x, const Grads& dx) {
  if (dx.size() != x.size()) fail(op, ": expected ", x.size(), " gradients, got ", dx.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if (dx[i] && dx[i].type() != x[i].type()) {
      fail(op, ": expected a gradient of ", x[i].type(), " for input ", i, ", got ", dx[i].type());
    }
  }
}

// The gradients of all outputs, with zeros for those that have none.
Grads with_zeros(const Context& c) {
  Grads g = c.grads;
  for (size_t i = 0; i < g.size(); ++i) {
    if (!g[i]) g[i] = full(c.node->types[i], 0);
  }
  return g;
}

Grads custom_op_grad(const Context& c) {
  const CustomDefinition& definition = custom_definition(c.node->attrs);
  if (!definition.vjp && !definition.composite) {
    fail("custom_op: '", definition.kernel->name,
         "' has neither vjp nor composite to differentiate");
  }
  if (!definition.vjp) return {};
  Grads dx = definition.vjp(c.node->inputs(), outputs_of(c.node), with_zeros(c));
  check_user_gradients(cat("custom_op: '", definition.kernel->name, "'"), c.node->inputs(), dx);
  return dx;
}

Grads custom_grad(const Context& c) {
  const auto split = c.node->inputs().begin() + c.node->attrs.axis;
  const std::vector<Value> x(c.node->inputs().begin(), split);
  std::vector<Value> dx = (*c.node->vjp)(x, outputs_of(c.node), with_zeros(c));
  check_user_gradients("custom_vjp", x, dx);
  dx.resize(c.node->inputs().size());  // the forward values behind the inputs get none
  return dx;
}

Grads layer_norm_grad(const Context& c) {
  // The statistics are outputs too; a gradient that flows into them takes the composite's way.
  if (c.g(1) || c.g(2) || !c.g(0)) return {};
  return outputs_of(
      make_node(Op::layer_norm_backward, {c.g(0), c.in(0), c.in(1), c.out(1), c.out(2)}));
}

// The node that has loss and gradient for this g. Where g does not depend on the loss, compile/join
// makes one node of the two.
Grads cross_entropy_grad(const Context& c) {
  if (c.g(1) || !c.g(0)) return {};  // of the gradient: through the composite
  return {cross_entropy(c.in(0), c.in(1), c.g(0))[1], {}, {}};
}

Grads attention_grad(const Context& c) {
  if (c.g(1) || !c.g(0)) return {};  // lse is an output too: through the composite
  const AttentionInputs in = attention_inputs(*c.node);
  Grads grads = attention_backward(c.g(0), in, c.out(0), c.out(1));
  grads.resize(c.node->inputs().size());
  // As large as the scores, and only computed where someone asks for it.
  if (in.mask && is_float(in.mask.dtype())) {
    grads[3] = attention_scores_gradient(c.g(0), in, c.out(0), c.out(1));
  }
  return grads;
}

// The second derivative of x · s(w), where s is the sigmoid and w = b x + c x³, with w' and w'':
//   2 s (1 - s) w' + x s (1 - s) ((1 - 2 s) w'² + w'')
Value gelu_tanh_curvature(const Value& in) {
  constexpr double kB = 1.5957691216057308, kC = kB * 0.044715;
  constexpr double kEnd = 1e4;  // beyond, the function is straight, and w would overflow
  const Value end = full(in.type(), kEnd);
  const Value x = where(apply(Op::lt, apply(Op::abs, in), end), in, end);
  const Value square = x * x;
  const Value s = apply(Op::sigmoid, x * (square * kC + kB));
  const Value slope = square * (3 * kC) + kB;
  const Value bend = (s * -2.0 + 1.0) * slope * slope + x * (6 * kC);
  return s * (-s + 1.0) * (slope * 2.0 + x * bend);
}

constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

// clang-format off
const GradientRow kRows[] = {
    {Op::neg,     [](const Context& c) -> Grads { return {-c.g()}; }},
    {Op::abs,     [](const Context& c) -> Grads { return {c.g() * apply(Op::sign, c.in(0))}; }},
    {Op::exp,     [](const Context& c) -> Grads { return {c.g() * c.out()}; }},
    // Not out + 1, which has no digits left where x is far below 0.
    {Op::expm1,   [](const Context& c) -> Grads { return {c.g() * apply(Op::exp, c.in(0))}; }},
    {Op::log,     [](const Context& c) -> Grads { return {c.g() / c.in(0)}; }},
    {Op::log1p,   [](const Context& c) -> Grads { return {c.g() / (c.in(0) + 1.0)}; }},
    {Op::log2,    [](const Context& c) -> Grads { return {c.g() / c.in(0) * std::numbers::log2e}; }},
    {Op::sqrt,    [](const Context& c) -> Grads { return {c.g() / c.out() * 0.5}; }},
    {Op::rsqrt,   [](const Context& c) -> Grads { return {c.g() * c.out() * c.out() * c.out() * -0.5}; }},
    {Op::reciprocal, [](const Context& c) -> Grads { return {-(c.g() * c.out() * c.out())}; }},
    {Op::sin,     [](const Context& c) -> Grads { return {c.g() * apply(Op::cos, c.in(0))}; }},
    {Op::cos,     [](const Context& c) -> Grads { return {-(c.g() * apply(Op::sin, c.in(0)))}; }},
    {Op::tan,     [](const Context& c) -> Grads { return {c.g() * (c.out() * c.out() + 1.0)}; }},
    {Op::asin,    [](const Context& c) -> Grads { return {c.g() * arc_slope(c.in(0))}; }},
    {Op::acos,    [](const Context& c) -> Grads { return {-(c.g() * arc_slope(c.in(0)))}; }},
    {Op::atan,    [](const Context& c) -> Grads { return {c.g() / (c.in(0) * c.in(0) + 1.0)}; }},
    {Op::sinh,    [](const Context& c) -> Grads { return {c.g() * apply(Op::cosh, c.in(0))}; }},
    {Op::cosh,    [](const Context& c) -> Grads { return {c.g() * apply(Op::sinh, c.in(0))}; }},
    {Op::tanh,    [](const Context& c) -> Grads { return {c.g() * (-(c.out() * c.out()) + 1.0)}; }},
    {Op::erf,     [](const Context& c) -> Grads {
       return {c.g() * (apply(Op::exp, -(c.in(0) * c.in(0))) * kTwoOverSqrtPi)}; }},
    {Op::sigmoid, [](const Context& c) -> Grads { return {c.g() * c.out() * (-c.out() + 1.0)}; }},
    {Op::gelu_tanh, [](const Context& c) -> Grads {
       return {c.g() * apply(Op::gelu_tanh_slope, c.in(0))}; }},
    {Op::gelu_tanh_slope, [](const Context& c) -> Grads {
       return {c.g() * gelu_tanh_curvature(c.in(0))}; }},
    {Op::sign, nullptr}, {Op::floor, nullptr}, {Op::ceil, nullptr}, {Op::round, nullptr},
    {Op::trunc, nullptr}, {Op::isnan, nullptr}, {Op::isinf, nullptr}, {Op::isfinite, nullptr},
    {Op::bitwise_not, nullptr}, {Op::logical_not, nullptr},

    {Op::add,     [](const Context& c) -> Grads { return {c.g(), c.g()}; }},
    {Op::sub,     [](const Context& c) -> Grads { return {c.g(), -c.g()}; }},
    {Op::mul,     [](const Context& c) -> Grads { return {c.g() * c.in(1), c.g() * c.in(0)}; }},
    {Op::div,     [](const Context& c) -> Grads {
       const Value da = c.g() / c.in(1);
       return {da, -(da * c.out())}; }},
    {Op::floor_div, nullptr},
    {Op::mod,     [](const Context& c) -> Grads {
       return {c.g(), -(c.g() * apply(Op::floor_div, c.in(0), c.in(1)))}; }},
    {Op::atan2,   [](const Context& c) -> Grads {
       const Value scaled = c.g() / (c.in(0) * c.in(0) + c.in(1) * c.in(1));
       return {scaled * c.in(1), -(scaled * c.in(0))}; }},
    {Op::pow, pow_grad},
    {Op::maximum, [](const Context& c) { return max_binary_grad(c, Op::gt); }},
    {Op::minimum, [](const Context& c) { return max_binary_grad(c, Op::lt); }},
    {Op::eq, nullptr}, {Op::ne, nullptr}, {Op::lt, nullptr}, {Op::le, nullptr}, {Op::gt, nullptr},
    {Op::ge, nullptr}, {Op::logical_and, nullptr}, {Op::logical_or, nullptr},
    {Op::bitwise_and, nullptr}, {Op::bitwise_or, nullptr}, {Op::bitwise_xor, nullptr},
    {Op::shift_left, nullptr}, {Op::shift_right, nullptr},
    {Op::where,   [](const Context& c) -> Grads {
       const Value zero = zeros_like(c.g());
       return {{}, where(c.in(0), c.g(), zero), where(c.in(0), zero, c.g())}; }},
    {Op::cast,    [](const Context& c) -> Grads { return {cast(c.g(), c.in(0).dtype())}; }},

    {Op::leaf, nullptr}, {Op::constant, nullptr}, {Op::iota, nullptr}, {Op::uniform, nullptr},
    {Op::argmax, nullptr}, {Op::stop_gradient, nullptr},

    {Op::sum,     [](const Context& c) -> Grads { return {expand(c.g(), c.in(0).shape())}; }},
    {Op::prod, prod_grad},
    {Op::max, max_reduce_grad},
    {Op::min, max_reduce_grad},
    {Op::reshape, [](const Context& c) -> Grads { return {reshape(c.g(), c.in(0).shape())}; }},
    {Op::permute, [](const Context& c) -> Grads {
       return {permute(c.g(), inverse(c.node->attrs.a))}; }},
    {Op::expand,  [](const Context& c) -> Grads { return {sum_to(c.g(), c.in(0).shape())}; }},
    {Op::slice, slice_grad},
    {Op::window, window_grad},
    {Op::pad, pad_grad},
    {Op::concat, concat_grad},
    {Op::gather,  [](const Context& c) -> Grads {
       return {scatter_add(zeros_like(c.in(0)), c.in(1), c.g(), int(c.node->attrs.axis)), {}}; }},
    {Op::scatter_add, [](const Context& c) -> Grads {
       return {c.g(), {}, gather(c.g(), c.in(1), int(c.node->attrs.axis))}; }},
    {Op::scatter, scatter_grad},
    {Op::dynamic_slice, [](const Context& c) -> Grads {
       return {dynamic_update_slice(zeros_like(c.in(0)), c.g(), c.in(1), int(c.node->attrs.axis)), {}}; }},
    {Op::dynamic_update_slice, update_slice_grad},
    {Op::matmul, matmul_grad},
    {Op::region_enter, [](const Context& c) -> Grads { return {c.g()}; }},
    {Op::region_exit,  [](const Context& c) -> Grads { return {c.g()}; }},
    {Op::custom_vjp, custom_grad},

    // A kernel op's rule that returns nothing, and a kernel op whose rule is null, go through the
    // composite (autodiff/backward.cpp).
    {Op::cumsum, [](const Context& c) -> Grads {
       const int axis = int(c.node->attrs.axis);
       return {flip(cumsum(flip(c.g(), axis), axis), axis)}; }},
    {Op::cumprod, nullptr},
    {Op::sort, ordered_grad},
    {Op::topk, ordered_grad},
    {Op::softmax, [](const Context& c) -> Grads {
       const Value y = c.out();
       return {y * (c.g() - reduce(Op::sum, c.g() * y, {y.shape().rank() - 1}))}; }},
    {Op::layer_norm, layer_norm_grad},
    {Op::layer_norm_backward, nullptr},
    {Op::linear, nullptr},  // made by the compiler, of what has a gradient
    {Op::linear_slope, nullptr},
    {Op::matmul_add, nullptr},
    {Op::matmul_sums, nullptr},
    {Op::cross_entropy, cross_entropy_grad},
    {Op::attention, attention_grad},
    {Op::attention_backward, nullptr},
    {Op::custom, custom_op_grad},
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
