"""erf, erfc, and the normal distribution function."""

from __future__ import annotations

import math

from .... import coefficients as special
from ..code import F32
from . import coefficients as table
from .exponentials import exp, expm1_in_range
from .lanes import Lanes, at_least, at_most, copysign, fma, polynomial, select


def erf(x: Lanes) -> Lanes:
    size = abs(x)
    if x.lane == F32:
        square = size * size
        near = fma(polynomial(square, table.ERF_SINGLE), size, size)
        beyond = at_least(at_most(size, 3.95), 0.9)
        far = -expm1_in_range(polynomial(beyond, table.ERF_FAR_SINGLE) * beyond)
        return copysign(select(size < 0.9, near, far), x)
    near = _near_zero(at_most(size, 0.75))
    return copysign(select(size < 0.75, near, 1.0 - _complement(size)), x)


def erfc(x: Lanes) -> Lanes:
    """For float64; down to where it underflows it keeps its relative precision."""
    size = abs(x)
    far = _complement(size)
    far = select(x < 0.0, 2.0 - far, far)
    return select(size < 0.75, 1.0 - copysign(_near_zero(at_most(size, 0.75)), x), far)


def ndtr(x: Lanes) -> Lanes:
    """The normal distribution function: erfc(-x / sqrt(2)) / 2.

    For negative x exp(-x**2 / 2) times a slowly varying function, with the square in two parts: down to where it
    underflows it keeps its relative precision.
    """
    single = x.lane == F32
    size = at_most(abs(x), 14.6 if single else 40.0)
    square = size * size
    low = fma(size, size, -square)
    if single:
        t = 1.0 / (size + 2.5)
        slow = t * polynomial(t, table.NORMAL_TAIL_SINGLE)
    else:
        slow = _scaled_complement(size * math.sqrt(0.5)) * 0.5
    tail = exp(square * -0.5, low * -0.5) * slow
    return select(x < 0.0, tail, 1.0 - tail)


def _near_zero(x: Lanes) -> Lanes:
    """erf(x) for 0 <= x <= 0.75."""
    return fma(polynomial(x * x, table.ERF), x, x)


def _complement(x: Lanes) -> Lanes:
    """erfc(x) for x >= 0: exp(-x**2) times a slowly varying function, with the square in two parts."""
    x = at_most(x, 30.0)
    square = x * x
    low = fma(x, x, -square)
    return exp(-square, -low) * _scaled_complement(x)


def _scaled_complement(x: Lanes) -> Lanes:
    """exp(x**2) erfc(x) for 0 <= x <= 30."""
    shifted = x + 2.0
    t = 1.0 / shifted
    # t's relative error; it is about 1 + 2.5 t times as large in the function of t.
    lost = fma(t, -shifted, 1.0) - t * (x - (shifted - 2.0))
    slow = t * (polynomial(t, special.ERFCX_NUMERATOR) / polynomial(t, special.ERFCX_DENOMINATOR))
    return fma(slow, lost * fma(t, 2.5, 1.0), slow)
