#include "tessera/tensor/elementwise.h"

#include <cmath>
#include <numbers>

#include "tessera/graph/scope.h"
#include "tessera/tensor/op_support.h"

namespace tessera {

namespace {

// What an op takes instead of operands of `dtype`.
DType operand_type(Op op, DType dtype) {
  const ScalarIn in = info(scalar_op(op)).in;
  if (in == ScalarIn::logical) return DType::boolean;
  return in == ScalarIn::floating && !is_float(dtype) ? DType::f32 : dtype;
}

bool rounds(Op op) {
  return op == Op::floor || op == Op::ceil || op == Op::trunc || op == Op::round;
}

Tensor unary(Op op, const Tensor& a) {
  if (rounds(op) && is_integer(a.dtype())) return a;
  if (op == Op::bitwise_not && a.dtype() == DType::boolean) op = Op::logical_not;
  return Tensor(graph::apply(op, graph::cast(a.value(), operand_type(op, a.dtype()))));
}

Tensor binary(Op op, const Tensor& a, const Tensor& b) {
  const DType dtype = operand_type(op, promote(a.dtype(), b.dtype()));
  return Tensor(graph::apply(op, graph::cast(a.value(), dtype), graph::cast(b.value(), dtype)));
}

// f(x), which must be a float: in f32 where x is of a half type.
template <class F>
Tensor widened(const Tensor& x, F f) {
  return cast(f(as_wide(x)), as_float(x).dtype());
}

// For functions that have gone to 0 long before, so that -inf · 0 does not occur.
Tensor above_minus_infinity(const Tensor& x) { return where(x < -1e4, -1e4, x); }

Tensor at_least(const Tensor& x, const Tensor& low) {
  return where(logical_or(x < low, isnan(low)), low, x);
}
Tensor at_most(const Tensor& x, const Tensor& high) {
  return where(logical_or(x > high, isnan(high)), high, x);
}

}  // namespace

#define TESSERA_DEFINE_1(name) \
  Tensor name(In a) { return unary(Op::name, a); }
#define TESSERA_DEFINE_2(name)                                                             \
  Tensor name(In a, In b) { return binary(Op::name, a, b); }                               \
  Tensor name(In a, const Scalar& b) { return binary(Op::name, a, literal_beside(a, b)); } \
  Tensor name(const Scalar& a, In b) { return binary(Op::name, literal_beside(b, a), b); }
#define SCALAR_OP(name, arity, ...) TESSERA_DEFINE_##arity(name)
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
#undef TESSERA_DEFINE_1
#undef TESSERA_DEFINE_2

Tensor logical_xor(In a, In b) { return cast(a, DType::boolean) != cast(b, DType::boolean); }

// clang-format off
#define TESSERA_OPERATOR(symbol, name)                              \
  Tensor operator symbol(In a, In b) { return name(a, b); }         \
  Tensor operator symbol(In a, const Scalar& b) { return name(a, b); } \
  Tensor operator symbol(const Scalar& a, In b) { return name(a, b); }
TESSERA_OPERATOR(+, add)
TESSERA_OPERATOR(-, sub)
TESSERA_OPERATOR(*, mul)
TESSERA_OPERATOR(/, div)
TESSERA_OPERATOR(%, mod)
TESSERA_OPERATOR(&, bitwise_and)
TESSERA_OPERATOR(|, bitwise_or)
TESSERA_OPERATOR(^, bitwise_xor)
TESSERA_OPERATOR(<, lt)
TESSERA_OPERATOR(<=, le)
TESSERA_OPERATOR(>, gt)
TESSERA_OPERATOR(>=, ge)
TESSERA_OPERATOR(==, eq)
TESSERA_OPERATOR(!=, ne)
#undef TESSERA_OPERATOR
// clang-format on

Tensor operator-(In a) { return neg(a); }
Tensor operator~(In a) { return bitwise_not(a); }

Tensor where(In condition, In a, In b) {
  const DType dtype = promote(a.dtype(), b.dtype());
  return Tensor(graph::where(condition.value(), graph::cast(a.value(), dtype),
                             graph::cast(b.value(), dtype)));
}
Tensor where(In condition, In a, const Scalar& b) {
  return where(condition, a, literal_beside(a, b));
}
Tensor where(In condition, const Scalar& a, In b) {
  return where(condition, literal_beside(b, a), b);
}

Tensor cast(In x, DType dtype) { return Tensor(graph::cast(x.value(), dtype)); }
Tensor Tensor::to(DType dtype) const { return Tensor(graph::cast(value(), dtype)); }

Tensor square(In x) { return x * x; }

Tensor clamp(In x, In low, In high) { return at_most(at_least(x, low), high); }

Tensor clamp(In x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  if (!low && !high) fail_here("clamp: expected a low or a high bound, got neither");
  // Not maximum and minimum, which halve the gradient at the bounds.
  const Tensor raised = low ? where(x < *low, *low, x) : Tensor(x);
  return high ? where(raised > *high, *high, raised) : raised;
}

Tensor lerp(In a, In b, In weight) {
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  return widened(cast(a, dtype), [&](const Tensor& from) {
    const Tensor to = cast(b, from.dtype()), w = cast(weight, from.dtype());
    const Tensor distance = to - from;
    return where(abs(w) < 0.5, from + w * distance, to - (1 - w) * distance);
  });
}

Tensor lerp(In a, In b, const Scalar& weight) {
  return widened(cast(a, promote(a.dtype(), b.dtype())), [&](const Tensor& from) {
    const Tensor to = cast(b, from.dtype());
    const double w = weight.real();
    return std::fabs(w) < 0.5 ? from + w * (to - from) : to - (1 - w) * (to - from);
  });
}

Tensor relu(In x) { return where(x <= 0, 0, x); }  // NaN stays NaN

Tensor leaky_relu(In x, double slope) {
  return widened(x, [&](const Tensor& wide) { return where(wide > 0, wide, slope * wide); });
}

Tensor elu(In x, double alpha) {
  return widened(x, [&](const Tensor& wide) {
    // Above 0, eˣ may overflow, and even unused it would make the gradient NaN.
    const Tensor below = where(wide > 0, 0, wide);
    return where(wide > 0, wide, alpha * expm1(below));
  });
}

Tensor softplus(In x, double beta) {
  if (!(beta > 0)) fail_here("softplus: expected a beta above 0, got ", beta);
  return widened(x, [&](const Tensor& wide) {
    const Tensor scaled = beta * wide, is_above = scaled > 0;
    // Spelled with abs and maximum, its second derivative would be wrong at 0.
    const Tensor falling = where(is_above, -scaled, scaled);
    return (where(is_above, scaled, 0) + log1p(exp(falling))) / beta;
  });
}

Tensor silu(In x) {
  return widened(x, [](const Tensor& wide) {
    const Tensor bounded = above_minus_infinity(wide);
    return bounded * sigmoid(bounded);
  });
}

Tensor gelu(In x) {
  return widened(x, [](const Tensor& wide) {
    const Tensor bounded = above_minus_infinity(wide);
    return 0.5 * bounded * (1.0 + erf(bounded * (std::numbers::sqrt2 / 2)));
  });
}

}  // namespace tessera
