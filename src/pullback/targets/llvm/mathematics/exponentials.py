"""exp, expm1, sigmoid and the hyperbolic functions as straight-line code.

x = n log(2) + r with |r| <= log(2) / 2, and exp(r) = 1 + q, where q comes from a polynomial. exp(x) is then
2**n (1 + q), and exp(x) - 1 is 2**n q + (2**n - 1), which loses nothing near zero.
"""

from __future__ import annotations

from ..code import F32
from . import coefficients as table
from .lanes import Lanes, at_least, at_most, copysign, fma, nearest_multiple, polynomial, power_of_two, scale, select

#: Beyond these the result is 0 or infinite whatever the fraction, and n stays within what `scale` takes.
_LIMITS = {True: (-104.0, 89.0), False: (-746.0, 710.5)}


def _reduce(x: Lanes, low: Lanes | None = None) -> tuple[Lanes, Lanes]:
    """q and n for x in range; for float64 `low` is added to x, much smaller than it."""
    single = x.lane == F32
    leading, trailing = table.LN2_PARTS_SINGLE if single else table.LN2_PARTS
    whole, n = nearest_multiple(x, table.LOG2_E)
    r = fma(whole, -trailing, fma(whole, -leading, x))
    if low is not None:
        r = r + low
    return fma(polynomial(r, table.EXP_SINGLE if single else table.EXP), r * r, r), n


def exp(x: Lanes, low: Lanes | None = None, shift: int = 0) -> Lanes:
    """exp(x + low) 2**shift: the factor does not overflow on the way."""
    least, most = _LIMITS[x.lane == F32]
    q, n = _reduce(at_least(at_most(x, most + 1), least), low)
    return scale(q + 1.0, n + shift if shift else n)


def expm1_in_range(x: Lanes) -> Lanes:
    """exp(x) - 1 for x from -50 to 80, or NaN."""
    q, n = _reduce(x)
    power = power_of_two(n)
    return fma(power, q, power - 1.0)


def expm1(x: Lanes) -> Lanes:
    least, most = (-20.0, 89.0) if x.lane == F32 else (-40.0, 709.9)  # enough to overflow, and no more
    q, n = _reduce(at_least(at_most(x, most), least))
    half = power_of_two(n - 1)  # 2**n itself may overflow where the result does not
    return copysign(select(n == 0, q, fma(half, q, half - 0.5) * 2.0), x)


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x)): the denominator is (1 + 2**n) + 2**n q, rounded once, or 2**n + (1 + 2**n q) for large n.

    Where 2**n is so large that it or the result may leave the range of normal numbers, both sides of the fraction are
    made smaller by a power of two.
    """
    least = _LIMITS[x.lane == F32][0]
    large, shift = (64, 40) if x.lane == F32 else (512, 200)
    q, n = _reduce(at_most(at_least(-x, -40.0), -least))
    far = n > large
    power = power_of_two(select(far, n - shift, n))
    one = select(far, x.of(2.0**-shift), 1.0)
    apart = n > 8
    return one / (fma(power, q, select(apart, one, power + one)) + select(apart, power, 0.0))


def tanh(x: Lanes) -> Lanes:
    """1 - 2 / (1 + exp(2|x|)) with the sign of x, and a polynomial near zero."""
    size = abs(x)
    square = size * size
    near = fma(polynomial(square, table.TANH_SINGLE if x.lane == F32 else table.TANH), square * size, size)
    q, n = _reduce(at_most(size + size, 20.0 if x.lane == F32 else 44.0))
    power = power_of_two(n)
    far = 1.0 - 2.0 / fma(power, q, power + 1.0)
    return copysign(select(size < 0.625, near, far), x)


def cosh(x: Lanes) -> Lanes:
    half = exp(abs(x), shift=-1)
    return half + 0.25 / half


def sinh(x: Lanes) -> Lanes:
    size = abs(x)
    half = exp(size, shift=-1)
    square = size * size
    near = fma(polynomial(square, table.SINH), square * size, size)
    return copysign(select(size < 1.0, near, half - 0.25 / half), x)
