"""log and what is made of it: log1p, log2, log10, logaddexp and the inverse hyperbolic functions.

x = 2**k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and log(x) = k log(2) + log(1 + f), the latter from a polynomial.
"""

from __future__ import annotations

import math

from ..code import F32
from . import coefficients as table
from .exponentials import exp
from .lanes import Lanes, at_most, copysign, fma, polynomial, select, sqrt

_LN2 = table.LN2_PARTS[0]
#: By float32 or not: bits of the mantissa, bits of sqrt(1/2), the least normal number.
_FORMATS = {True: (23, 0x3F3504F3, 2.0**-126), False: (52, 0x3FE6A09E667F3BCD, 2.0**-1022)}


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """f and k (an integer, as a floating-point number) for positive finite x, down to the subnormal ones."""
    mantissa, root_half, normal = _FORMATS[x.lane == F32]
    tiny = x < normal
    bits = select(tiny, x * 2.0**mantissa, x).bits()
    above = bits - root_half
    k = (above >> mantissa).to_float(x.lane) + select(tiny, x.of(float(-mantissa)), 0.0)
    one_over = (above & ((1 << mantissa) - 1)) + root_half
    return one_over.as_float() - 1.0, k


def _with_limits(x: Lanes, value: Lanes) -> Lanes:
    """A logarithm's value, for x that is not a positive finite number, too."""
    value = select(x < math.inf, value, x)
    return select(x > 0.0, value, select(x == 0.0, x.of(-math.inf), math.nan))


def _sum(f: Lanes, k: Lanes, low: Lanes | None = None) -> Lanes:
    """k log(2) + log(1 + f) + low, adding what is small first."""
    if f.lane == F32:
        leading, trailing = table.LN2_SHORT_PARTS_SINGLE
        square = f * f
        small = fma(k, trailing, polynomial(f, table.LOG_SINGLE) * f * square)
        if low is not None:
            small = small + low
        return fma(k, leading, fma(square, -0.5, small) + f)
    leading, trailing = table.LN2_SHORT_PARTS
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    small = fma(s, fma(polynomial(z, table.LOG), z, half_square), k * trailing)
    if low is not None:
        small = small + low
    return fma(k, leading, f - (half_square - small))


def log(x: Lanes) -> Lanes:
    return _with_limits(x, _sum(*split(x)))


def _log_of_sum(x: Lanes, low: Lanes) -> Lanes:
    """log(x + low) for low less than half a unit in the last place of x > 0."""
    f, k = split(x)
    return _sum(f, k, low / x)


def log1p(x: Lanes) -> Lanes:
    total = x + 1.0
    lost = x - (total - 1.0)  # by rounding: exact unless x is so large that it does not matter
    finite = x < math.inf
    value = _with_limits(total, _log_of_sum(total, select(finite, lost, 0.0)))
    return select(x == 0.0, x, value)


def _in_base(x: Lanes, scale: tuple[float, float], unit: tuple[float, float]) -> Lanes:
    """k unit + log(1 + f) scale: exact for powers of the base two."""
    f, k = split(x)
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    # log(1 + f) = f + rest, and f is exact: only the rest's rounding counts.
    rest = s * fma(polynomial(z, table.LOG), z, half_square) - half_square
    value = fma(f, scale[1], fma(rest, scale[0], k * unit[1]))
    product = f * scale[0]
    value = value + fma(f, scale[0], -product)
    whole = k * unit[0]
    # k unit is larger than the product unless it is zero.
    total = whole + product
    value = value + select(k == 0.0, 0.0, product - (total - whole))
    return _with_limits(x, total + value)


def log2(x: Lanes) -> Lanes:
    return _in_base(x, table.LOG2_E_PARTS, (1.0, 0.0))


def log10(x: Lanes) -> Lanes:
    return _in_base(x, table.LOG10_E_PARTS, table.LOG10_2_SHORT_PARTS)


def logaddexp(x: Lanes, y: Lanes) -> Lanes:
    """log(exp(x) + exp(y)): the larger plus log1p of the exponential of what the other is below it."""
    larger = select(x > y, x, y)
    value = larger + log1p(exp(-abs(x - y)))
    return select(x == y, x + _LN2, value)


def asinh(x: Lanes) -> Lanes:
    size = abs(x)
    large = size > 2.0**28
    square = at_most(size, 2.0**28) * at_most(size, 2.0**28)
    near = size + square / (sqrt(square + 1.0) + 1.0)
    value = log1p(select(large, size - 1.0, near))
    return copysign(select(large, value + _LN2, value), x)


def acosh(x: Lanes) -> Lanes:
    above = x - 1.0
    large = x > 2.0**28
    near = above + sqrt(fma(above, above, above * 2.0))
    value = log1p(select(large, above, near))
    return select(x < 1.0, math.nan, select(large, value + _LN2, value))


def atanh(x: Lanes) -> Lanes:
    size = abs(x)
    return copysign(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)
