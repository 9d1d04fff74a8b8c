"""Cases and the draws of their inputs.

Inputs come from Python's own generator, seeded by the case's name: they depend on no version of
PyTorch, and a new case changes no other. Every real number drawn is exact in bf16, so that f64, f32
and bf16 start from the same numbers.
"""

import random
import struct
from typing import Callable, NamedTuple


def to_bf16(value):
    """The bf16 number nearest to `value`, ties to even."""
    if value != value:
        return value
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


class Input(NamedTuple):
    """dtype "real" is stored as bf16 and runs in every floating type; others are what they are."""

    dtype: str
    shape: tuple
    values: list
    wants_gradient: bool = False


class Case(NamedTuple):
    name: str
    inputs: list
    function: Callable
    exact: bool = False  # no "real" input: runs once, results must be equal
    takes_dtype: bool = False  # the function's last argument is the floating type


class SecondOrder(NamedTuple):
    name: str
    inputs: list
    function: Callable  # of the inputs: a scalar
    of_gradient: Callable  # of (gradients, directions): a scalar
    directions: list


CASES = {}
SECOND_ORDER = {}


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


# Draws: functions of a random.Random that give an Input ---------------------------------------


def real(*shape, low=-2.0, high=2.0):
    def draw(rng):
        values = [to_bf16(rng.uniform(low, high)) for _ in range(count_of(shape))]
        return Input("real", shape, values, True)

    return draw


def away(*shape, low=0.25, high=2.0):
    """Of either sign, at least `low` away from 0."""

    def draw(rng):
        values = [
            rng.choice((-1, 1)) * to_bf16(rng.uniform(low, high)) for _ in range(count_of(shape))
        ]
        return Input("real", shape, values, True)

    return draw


def apart(*shape, phase=1):
    """Distinct, none 0, in (-4, 4): odd multiples of 1/16, or with phase 2 of 1/8: none in both."""

    def draw(rng):
        unit = phase / 16
        grid = [(2 * k + 1) * unit for k in range(-32 // phase, 32 // phase)]
        return Input("real", shape, rng.sample(grid, count_of(shape)), True)

    return draw


def between(*shape, reach=3):
    """Away from integers and from halves."""

    def draw(rng):
        parts = [k / 16 for k in (2, 3, 4, 5, 6, 10, 11, 12, 13, 14)]
        values = [rng.randrange(-reach, reach) + rng.choice(parts) for _ in range(count_of(shape))]
        return Input("real", shape, values, True)

    return draw


def coarse(*shape):
    """Multiples of 1/2 in [-1, 1]: many are equal, many 0."""

    def draw(rng):
        values = [rng.randrange(-2, 3) / 2 for _ in range(count_of(shape))]
        return Input("real", shape, values, True)

    return draw


def integers(*shape, low=0, below=1, dtype="i64"):
    def draw(rng):
        return Input(dtype, shape, [rng.randrange(low, below) for _ in range(count_of(shape))])

    return draw


def distinct(*shape, below):
    """Integers that differ along the last axis."""

    def draw(rng):
        rows = count_of(shape[:-1])
        return Input(
            "i64", shape, [v for _ in range(rows) for v in rng.sample(range(below), shape[-1])]
        )

    return draw


def booleans(*shape):
    def draw(rng):
        return Input("bool", shape, [rng.randrange(2) for _ in range(count_of(shape))])

    return draw


def given(values, dtype="real", shape=None):
    shape = (len(values),) if shape is None else shape
    return lambda rng: Input(dtype, shape, list(values), dtype == "real")


def constant(draw):
    """The same draw, but no gradient is asked for."""
    return lambda rng: draw(rng)._replace(wants_gradient=False)


# Registration -----------------------------------------------------------------------------------


def generator(name, purpose):
    return random.Random(f"{name}: {purpose}")


def inputs_of(name, draws):
    rng = generator(name, "inputs")
    return [draw(rng) for draw in draws]


def case(name, draws, function, **options):
    assert name not in CASES, name
    CASES[name] = Case(name, inputs_of(name, draws), function, **options)


def exact(name, draws, function):
    case(name, draws, function, exact=True)


def along(gradients, directions):
    """The derivative in a direction: its gradient is a Hessian-vector product."""
    return sum((g * v).sum() for g, v in zip(gradients, directions))


def second_order(name, draws, function, of_gradient=along):
    assert name not in SECOND_ORDER, name
    inputs = inputs_of(name, draws)
    rng = generator(name, "directions")
    directions = [
        real(*i.shape, low=-1, high=1)(rng)._replace(wants_gradient=False)
        for i in inputs
        if i.wants_gradient
    ]
    SECOND_ORDER[name] = SecondOrder(name, inputs, function, of_gradient, directions)
