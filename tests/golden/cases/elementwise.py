"""Functions of elements."""

import torch
import torch.nn.functional as F

from .registry import apart, away, between, booleans, case, coarse, constant, given, real

INF = float("inf")
NAN = float("nan")

# One operand ------------------------------------------------------------------------------------

case("neg", [real(3, 5)], torch.neg)
case("abs", [away(3, 5)], torch.abs)
case("sign", [away(3, 5)], torch.sign)
case("exp", [real(3, 5)], torch.exp)
case("expm1", [real(3, 5)], torch.expm1)
case("expm1_small", [real(3, 5, low=-0.01, high=0.01)], torch.expm1)
case("log", [real(3, 5, low=0.125, high=4)], torch.log)
case("log1p", [real(3, 5, low=-0.75, high=3)], torch.log1p)
case("log1p_small", [real(3, 5, low=-0.01, high=0.01)], torch.log1p)
case("log2", [real(3, 5, low=0.125, high=4)], torch.log2)
case("sqrt", [real(3, 5, low=0.125, high=4)], torch.sqrt)
case("rsqrt", [real(3, 5, low=0.125, high=4)], torch.rsqrt)
case("reciprocal", [away(3, 5)], torch.reciprocal)
case("square", [real(3, 5)], torch.square)
case("sin", [real(3, 5, low=-8, high=8)], torch.sin)
case("cos", [real(3, 5, low=-8, high=8)], torch.cos)
case("tan", [real(3, 5, low=-1.25, high=1.25)], torch.tan)
case("asin", [real(3, 5, low=-0.875, high=0.875)], torch.asin)
case("acos", [real(3, 5, low=-0.875, high=0.875)], torch.acos)
case("atan", [real(3, 5, low=-4, high=4)], torch.atan)
case("sinh", [real(3, 5)], torch.sinh)
case("cosh", [real(3, 5)], torch.cosh)
case("tanh", [real(3, 5)], torch.tanh)
case("erf", [real(3, 5)], torch.erf)
case("sigmoid", [real(3, 5, low=-6, high=6)], torch.sigmoid)
case("softplus", [real(3, 5, low=-6, high=6)], F.softplus)
case("softplus_beta", [real(3, 5, low=-3, high=3)], lambda x: F.softplus(x, beta=2))
case("relu", [away(3, 5)], F.relu)
case("relu_at_zero", [coarse(3, 5)], F.relu)
case("leaky_relu", [away(3, 5)], F.leaky_relu)
case("leaky_relu_slope", [away(3, 5)], lambda x: F.leaky_relu(x, 0.25))
case("elu", [away(3, 5)], F.elu)
case("elu_alpha", [away(3, 5)], lambda x: F.elu(x, 1.5))
case("gelu", [real(3, 5, low=-4, high=4)], F.gelu)
case("gelu_tanh", [real(3, 5, low=-4, high=4)], lambda x: F.gelu(x, approximate="tanh"))
case("silu", [real(3, 5, low=-6, high=6)], F.silu)
case("floor", [between(3, 5)], torch.floor)
case("ceil", [between(3, 5)], torch.ceil)
case("round", [between(3, 5)], torch.round)
case("round_halves", [given([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])], torch.round)
case("trunc", [between(3, 5)], torch.trunc)

# Values at the ends of the range, where a gradient would say little.
ENDS = [INF, -INF, NAN, 0.0, -0.0, 1.0, -1.0]
case("isnan", [constant(given(ENDS))], torch.isnan)
case("isinf", [constant(given(ENDS))], torch.isinf)
case("isfinite", [constant(given(ENDS))], torch.isfinite)
for name, function in {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "atan": torch.atan,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "relu": F.relu,
    "floor": torch.floor,
}.items():
    case(f"ends_{name}", [constant(given(ENDS))], function)

# Two operands -----------------------------------------------------------------------------------

case("add", [real(3, 5), real(3, 5)], torch.add)
case("add_broadcast", [real(2, 1, 5), real(3, 1)], torch.add)
case("add_scalar", [real(3, 5)], lambda x: x + 0.75)
case("sub", [real(3, 5), real(3, 5)], torch.sub)
case("sub_scalar_left", [real(3, 5)], lambda x: 1.5 - x)
case("mul", [real(3, 5), real(3, 5)], torch.mul)
case("mul_broadcast", [real(4, 3), real(3)], torch.mul)
case("mul_by_itself", [real(3, 5)], lambda x: x * x)
case("div", [real(3, 5), away(3, 5)], torch.div)
case("div_broadcast", [real(2, 3, 2), away(3, 1)], torch.div)
case("div_scalar_left", [away(3, 5)], lambda x: 2.5 / x)
case("floor_div", [constant(apart(3, 5)), constant(apart(3, 5, phase=2))], torch.floor_divide)
case("mod", [apart(3, 5), apart(3, 5, phase=2)], torch.remainder)
case("mod_scalar", [apart(3, 5)], lambda x: torch.remainder(x, 1.5))
case("atan2", [away(3, 5), away(3, 5)], torch.atan2)
case("pow", [real(3, 5, low=0.25, high=3), real(3, 5)], torch.pow)
case("pow_cube", [real(3, 5)], lambda x: x**3)
case("pow_root", [real(3, 5, low=0.25, high=4)], lambda x: x**0.5)
case("pow_inverse_square", [away(3, 5)], lambda x: x**-2)
case("pow_fraction", [real(3, 5, low=0.25, high=4)], lambda x: x**1.75)
case("maximum", [apart(3, 5), apart(3, 5, phase=2)], torch.maximum)
case("minimum", [apart(3, 5), apart(3, 5, phase=2)], torch.minimum)
case("maximum_ties", [coarse(3, 5), coarse(3, 5)], torch.maximum)
case("minimum_ties", [coarse(3, 5), coarse(3, 5)], torch.minimum)
case("maximum_scalar", [apart(3, 5)], lambda x: torch.clamp(x, min=0.5))
case("minimum_scalar", [apart(3, 5)], lambda x: torch.clamp(x, max=0.5))
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    case(name, [coarse(3, 5), coarse(3, 5)], getattr(torch, name))
case("comparison_scalar", [coarse(3, 5)], lambda x: [x > 0, x <= 0.5, x == -0.5, x != 1, 0 < x])
case(
    "comparison_ends",
    [constant(given([INF, NAN, -0.0, NAN])), constant(given([INF, NAN, 0.0, 1.0]))],
    lambda a, b: [a == b, a != b, a < b, a >= b],
)
case("maximum_nan", [constant(given([NAN, 1.0, INF])), constant(given([1.0, NAN, -INF]))],
     lambda a, b: [torch.maximum(a, b), torch.minimum(a, b)])
case("logical_of_numbers", [coarse(3, 5), coarse(3, 5)],
     lambda a, b: [torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b),
                   torch.logical_not(a)])

# Three ------------------------------------------------------------------------------------------

case("where", [booleans(3, 5), real(3, 5), real(3, 5)], torch.where)
case("where_broadcast", [booleans(3, 1), real(5), real(3, 5)], torch.where)
case("where_scalar", [booleans(3, 5), real(3, 5)], lambda c, x: torch.where(c, x, -1.5))
case("where_scalar_first", [booleans(3, 5), real(3, 5)], lambda c, x: torch.where(c, 0.5, x))
case("clamp", [apart(3, 5)], lambda x: torch.clamp(x, -1.5, 1.0))
case("clamp_at_bounds", [coarse(3, 5)], lambda x: torch.clamp(x, -0.5, 0.5))
case("clamp_low", [apart(3, 5)], lambda x: torch.clamp(x, min=-0.25))
case("clamp_high", [apart(3, 5)], lambda x: torch.clamp(x, max=0.25))
case("clamp_tensors", [real(3, 5, low=-4, high=4), real(5, low=-2, high=-1),
                       real(3, 1, low=1, high=2)], torch.clamp)
case("lerp", [real(3, 5), real(3, 5)], lambda a, b: torch.lerp(a, b, 0.25))
case("lerp_tensor", [real(3, 5), real(3, 5), real(3, 5, low=0, high=1)], torch.lerp)

# Casts ------------------------------------------------------------------------------------------

case("cast_to_floats", [real(3, 5)],
     lambda x: [x.to(torch.float64), x.to(torch.float32), x.to(torch.float16),
                x.to(torch.bfloat16)])
case("cast_to_integers", [constant(between(3, 5))],
     lambda x: [x.to(torch.int8), x.to(torch.int32), x.to(torch.int64)])
case("cast_to_bool", [constant(coarse(3, 5))], lambda x: x.to(torch.bool))
