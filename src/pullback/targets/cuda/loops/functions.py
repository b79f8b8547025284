"""What generated kernels call: scalar operations that are more than an expression, with NumPy's meaning."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


def _jit(function: Any) -> Any:
    return triton.jit(function)


# -- how reductions combine ----------------------------------------------------------------------------


@_jit
def larger(a, b):
    """The larger number; NaN if either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@_jit
def smaller(a, b):
    """The smaller number; NaN if either is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@_jit
def product(a, b):
    return a * b


# -- floating-point numbers ------------------------------------------------------------------------------


@_jit
def sign(x):
    """1, 0 or -1; NaN of NaN."""
    return tl.where(x > 0, 1, tl.where(x < 0, -1, tl.where(x == 0, 0, x))).to(x.dtype)


@_jit
def sigmoid(x):
    below = 1.0 + libdevice.exp(-x)
    if x.dtype == tl.float32:  # to two units in the last place, in a third of the instructions
        return libdevice.fast_dividef(tl.full(x.shape, 1.0, tl.float32), below)
    return 1.0 / below


@_jit
def logaddexp(x, y):
    top = larger(x, y)
    low = smaller(x, y)
    return tl.where(top == low, top + 0.6931471805599453, top + libdevice.log1p(libdevice.exp(low - top)))


@_jit
def remainder(x, y):
    """What x leaves when it is divided by y, with the sign of y."""
    rest = libdevice.fmod(x, y)
    wrong = (rest != 0) & ((rest < 0) ^ (y < 0))
    return tl.where(rest == 0, libdevice.copysign(rest, y), tl.where(wrong, rest + y, rest))


@_jit
def floor_divide(x, y):
    quotient = x / y
    rest = libdevice.fmod(x, y)
    exact = (x - rest) / y
    exact = tl.where((rest != 0) & ((rest < 0) ^ (y < 0)), exact - 1.0, exact)
    down = tl.floor(exact)
    down = tl.where(exact - down > 0.5, down + 1.0, down)
    down = tl.where(exact == 0.0, libdevice.copysign(down, quotient), down)
    limit = (y == 0.0) | (tl.abs(x) == float("inf")) | (tl.abs(y) == float("inf"))
    return tl.where(limit, tl.where(y == 0.0, quotient, tl.floor(quotient)), down)


# -- integers ----------------------------------------------------------------------------------------------


@_jit
def integer_quotient(x, y):
    """The quotient rounded down; 0 for a zero y."""
    safe = tl.where(y == 0, 1, y).to(y.dtype)
    quotient = x // safe
    rest = x - quotient * safe
    quotient = tl.where((rest != 0) & ((rest < 0) ^ (y < 0)), quotient - 1, quotient)
    return tl.where(y == 0, 0, quotient).to(x.dtype)


@_jit
def integer_remainder(x, y):
    return tl.where(y == 0, 0, x - integer_quotient(x, y) * y).to(x.dtype)


@_jit
def integer_power(x, y, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    """x multiplied by itself y times, wrapping round; y is not negative."""
    made = tl.full(x.shape, 1, x.dtype)
    for _ in range(bits):
        made = tl.where((y & 1) != 0, made * x, made)
        x = x * x
        y = y >> 1
    return made


@_jit
def left_shift(x, y, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    """0 for all the bits or more, and for a negative y."""
    fits = (y >= 0) & (y < bits)
    return tl.where(fits, x << tl.where(fits, y, 0).to(x.dtype), 0).to(x.dtype)


@_jit
def right_shift(x, y, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    """All the bits or more, and a negative y, leave the sign alone."""
    fits = (y >= 0) & (y < bits)
    return x >> tl.where(fits, y, bits - 1).to(x.dtype)


@_jit
def unsigned_right_shift(x, y, bits: tl.constexpr):  # type: ignore[no-untyped-def]
    fits = (y >= 0) & (y < bits)
    return tl.where(fits, x >> tl.where(fits, y, 0).to(x.dtype), 0).to(x.dtype)
