// Functions of elements. Operands broadcast by NumPy's rule and promote to a common dtype; a
// literal takes the dtype of the tensor beside it; a function of floating-point numbers takes
// integers as f32. docs/dtypes.md has all the rules.
#pragma once

#include <concepts>
#include <optional>

#include "tessera/tensor/tensor.h"

namespace tessera {

// One function per row of base/scalar_ops.def; of two operands, either may be a literal.
#define TESSERA_DECLARE_1(name) Tensor name(In a);
#define TESSERA_DECLARE_2(name)       \
  Tensor name(In a, In b);            \
  Tensor name(In a, const Scalar& b); \
  Tensor name(const Scalar& a, In b);
#define SCALAR_OP(name, arity, ...) TESSERA_DECLARE_##arity(name)
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
#undef TESSERA_DECLARE_1
#undef TESSERA_DECLARE_2
// Of these,
//   floor, ceil, trunc and round (half to even) leave integers as they are;
//   floor_div rounds towards minus infinity and mod has the sign of the divisor, as in Python: both
//     keep integers, and x // 0 and x mod 0 are then 0; mod of floats by 0 is NaN;
//   shift_right of signed integers is arithmetic; shifting by less than 0, or by the width and
//   more,
//     shifts everything out;
//   bitwise_* take integers and bool, shift_* integers;
//   logical_* take numbers too, of which all but 0 are true;
//   gelu_tanh is GPT-2's approximation of gelu, gelu_tanh_slope its derivative.
Tensor logical_xor(In a, In b);

// clang-format off
#define TESSERA_OPERATOR(symbol)                     \
  Tensor operator symbol(In a, In b);                \
  Tensor operator symbol(In a, const Scalar& b);     \
  Tensor operator symbol(const Scalar& a, In b);
TESSERA_OPERATOR(+)
TESSERA_OPERATOR(-)
TESSERA_OPERATOR(*)
TESSERA_OPERATOR(/)   // integers divide as f32
TESSERA_OPERATOR(%)   // mod
TESSERA_OPERATOR(&)   // bitwise; of bool, logical
TESSERA_OPERATOR(|)
TESSERA_OPERATOR(^)
TESSERA_OPERATOR(<)
TESSERA_OPERATOR(<=)
TESSERA_OPERATOR(>)
TESSERA_OPERATOR(>=)
TESSERA_OPERATOR(==)  // elementwise
TESSERA_OPERATOR(!=)
#undef TESSERA_OPERATOR
// clang-format on
Tensor operator-(In a);
Tensor operator~(In a);

Tensor where(In condition, In a, In b);
Tensor where(In condition, In a, const Scalar& b);
Tensor where(In condition, const Scalar& a, In b);
Tensor cast(In x, DType dtype);

Tensor square(In x);
// min(max(x, low), high); the gradient passes inside and at the bounds. NaN stays NaN. With
// literals either bound may be std::nullopt, but not both.
Tensor clamp(In x, In low, In high);
Tensor clamp(In x, const std::optional<Scalar>& low, const std::optional<Scalar>& high);
// a + weight (b - a), exact at weights 0 and 1.
Tensor lerp(In a, In b, In weight);
Tensor lerp(In a, In b, const Scalar& weight);

// Activations. Half types compute in f32 inside. At -inf they have their limits, not NaN.
Tensor relu(In x);
Tensor leaky_relu(In x, double slope = 0.01);  // slope · x below 0
Tensor elu(In x, double alpha = 1);            // alpha (eˣ - 1) below 0
Tensor softplus(In x, double beta = 1);        // log(1 + e^(beta x)) / beta
Tensor silu(In x);                             // x · sigmoid(x)
Tensor gelu(In x);                             // x · Φ(x), by erf

}  // namespace tessera
