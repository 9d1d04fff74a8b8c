"""Creation, and what integers, bools and mixed types give: equal to the last bit."""

import torch

from .registry import booleans, case, exact, given, integers


def creation(name, function):
    case(name, [], function, takes_dtype=True)


creation("zeros", lambda d: torch.zeros(2, 3, dtype=d))
creation("ones", lambda d: torch.ones(4, dtype=d))
creation("full", lambda d: torch.full((2, 2), -1.625, dtype=d))
creation("arange_fractions", lambda d: torch.arange(-1, 2, 0.375, dtype=d))
creation("linspace", lambda d: torch.linspace(-1, 2, 7, dtype=d))
creation("linspace_downwards", lambda d: torch.linspace(3, -0.5, 8, dtype=d))
creation("linspace_one", lambda d: torch.linspace(0.75, 2, 1, dtype=d))
creation("eye", lambda d: torch.eye(3, dtype=d))
creation("eye_wide", lambda d: torch.eye(2, 4, dtype=d))
exact("arange", [], lambda: [torch.arange(5), torch.arange(2, 9), torch.arange(1, 10, 3),
                             torch.arange(4, -5, -2)])
exact("eye_of_integers", [], lambda: torch.eye(3, 2, dtype=torch.int64))
exact("ones_like", [integers(2, 3, below=9, dtype="i32")],
      lambda x: [torch.ones_like(x), torch.zeros_like(x), torch.full_like(x, 7)])
exact("one_hot", [integers(2, 3, below=4)], lambda i: torch.nn.functional.one_hot(i, 4))

# Integers ---------------------------------------------------------------------------------------

for dtype in ("i8", "i32", "i64", "u8"):
    low = 0 if dtype == "u8" else -100
    wide = [integers(12, low=low, below=100, dtype=dtype),
            integers(12, low=low, below=100, dtype=dtype)]
    divisors = given([3, 5, 7, 2, 9, 4] if low == 0 else [3, -5, 7, -2, 9, -4], dtype)
    exact(f"{dtype}_arithmetic", wide,
          lambda a, b: [a + b, a - b, a * b, torch.maximum(a, b), torch.minimum(a, b)])
    exact(f"{dtype}_division", [integers(6, low=low, below=100, dtype=dtype), divisors],
          lambda a, b: [torch.floor_divide(a, b), torch.remainder(a, b)])
    exact(f"{dtype}_bitwise", wide, lambda a, b: [a & b, a | b, a ^ b, ~a])
    exact(f"{dtype}_shifts", [integers(6, low=low, below=100, dtype=dtype),
                              given([0, 1, 2, 3, 4, 5], dtype)],
          lambda a, n: [torch.bitwise_left_shift(a, n), torch.bitwise_right_shift(a, n)])
    exact(f"{dtype}_comparisons", [integers(9, below=3, dtype=dtype),
                                   integers(9, below=3, dtype=dtype)],
          lambda a, b: [a == b, a != b, a < b, a <= b, a > b, a >= b])
    exact(f"{dtype}_reductions", [integers(3, 4, low=low, below=100, dtype=dtype)],
          lambda x: [torch.sum(x), torch.sum(x, 0), torch.prod(x[:, :2], 1), torch.amax(x, 1),
                     torch.amin(x, 0), torch.cumsum(x, 1)])
    exact(f"{dtype}_order", [integers(3, 6, below=5, dtype=dtype)],
          lambda x: [*torch.sort(x, dim=1, stable=True),
                     torch.argsort(x, dim=0, descending=True, stable=True)])
    exact(f"{dtype}_as_numbers", [integers(2, 3, low=1, below=9, dtype=dtype)],
          lambda x: [x + 2, x * 0.5, x / 2, x > 3, x == 4])
exact("integer_abs_and_sign", [given([-3, 0, 5, -128], "i32")],
      lambda x: [torch.abs(x), torch.sign(x), -x])
exact("integer_product", [integers(3, 4, low=-9, below=9), integers(4, 2, low=-9, below=9)],
      torch.matmul)
exact("integer_structure", [integers(3, 4, low=-9, below=9, dtype="i32")],
      lambda x: [x.T, x[1:, ::2], torch.flip(x, (0,)), torch.tril(x), torch.roll(x, 1, 1)])

# Bools ------------------------------------------------------------------------------------------

exact("logical_and", [booleans(8), booleans(8)], torch.logical_and)
exact("logical_or", [booleans(8), booleans(8)], torch.logical_or)
exact("logical_xor", [booleans(8), booleans(8)], torch.logical_xor)
exact("logical_not", [booleans(8)], torch.logical_not)
exact("bool_bitwise", [booleans(8), booleans(8)], lambda a, b: [a & b, a | b, a ^ b])
exact("bool_reductions", [booleans(3, 4)],
      lambda x: [torch.sum(x), torch.sum(x, 1), torch.any(x, 0), torch.all(x, 1),
                 torch.cumsum(x, 1)])
exact("bool_sort", [booleans(3, 5)], lambda x: torch.sort(x, dim=1, stable=True))
exact("bool_where", [booleans(6), booleans(6), booleans(6)], torch.where)

# Promotion: each type beside every other ----------------------------------------------------------

TYPES = ("f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "bool")
NUMBERS = {dtype: given([0, 1, 1] if dtype == "bool" else [3, 0, 5], dtype) for dtype in TYPES}
for first in TYPES:
    exact(f"promote_{first}", [NUMBERS[first], *(NUMBERS[second] for second in TYPES)],
          lambda a, *others: [torch.where(b == b, a, b) for b in others])
    if first != "bool":
        exact(f"promote_sum_{first}", [NUMBERS[first], *(NUMBERS[second] for second in TYPES)],
              lambda a, *others: [a + b for b in others])
