"""Portable kernels: special functions, in terms of exp, log, sqrt and where.

Every branch is computed and the right one chosen, so that the same code runs on any array library. The NumPy backend
runs this code too, block by block. Outside its own range a branch is given a harmless argument.
"""

from __future__ import annotations

import math
from typing import Any

from ... import coefficients as table

_SQRT_HALF = math.sqrt(0.5)
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_LOG_PI = math.log(math.pi)
_STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(table.BERNOULLI, 1))
_DIGAMMA_TAIL = tuple(b / (2 * k) for k, b in enumerate(table.BERNOULLI, 1))


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    value = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value *= x
        value += coefficient
    return value


def _ratio(x: Any, numerator: tuple[float, ...], denominator: tuple[float, ...]) -> Any:
    return _polynomial(x, numerator) / _polynomial(x, denominator)


def _is_single(x: Any) -> bool:
    return "float32" in str(x.dtype)


#: Formulas that lose too many digits in single precision.
IN_DOUBLE = frozenset(("gammaln", "digamma", "polygamma", "i0", "i0e", "i1", "i1e", "zeta"))


def logit(xp: Any, x: Any) -> Any:
    """log(x / (1 - x)), without losing the digits of numbers close to a half."""
    twice = 2 * (x - 0.5)
    middle = xp.where(xp.abs(twice) < 0.4, twice, xp.zeros_like(x))
    outer = xp.log(x / (1 - x))
    return xp.where(xp.abs(twice) < 0.4, xp.log1p(middle) - xp.log1p(-middle), outer)


# -- the error function and the normal distribution ----------------------------------------------


def _erf_near_zero(x: Any) -> Any:
    """erf for |x| <= 0.5."""
    if _is_single(x):
        return x * _polynomial(x * x, table.ERF_SINGLE)
    return x * _ratio(x * x, table.ERF_NUMERATOR, table.ERF_DENOMINATOR)


def _erfcx_positive(x: Any) -> Any:
    """erfc(x) exp(x**2) for x >= 0."""
    t = 1 / (x + 2)
    if _is_single(x):
        return t * _ratio(t, table.ERFCX_SINGLE_NUMERATOR, table.ERFCX_SINGLE_DENOMINATOR)
    return t * _ratio(t, table.ERFCX_NUMERATOR, table.ERFCX_DENOMINATOR)


def _exp_of_square(xp: Any, x: Any, factor: float) -> Any:
    """exp(factor x**2) without the error that rounding x**2 would cause: the leading part of x has an exact square."""
    leading = xp.floor(x * 32) / 32
    return xp.exp(factor * leading * leading) * xp.exp(factor * (x - leading) * (x + leading))


def _erfc_positive(xp: Any, x: Any) -> Any:
    """erfc(x) for x >= 0."""
    return _exp_of_square(xp, xp.minimum(x, 30.0), -1.0) * _erfcx_positive(x)


def _one_if_positive(xp: Any, x: Any) -> Any:
    """1 for positive numbers, 0 for negative ones: `where` would be slower, as the processor cannot foresee signs."""
    return 0.5 + xp.copysign(xp.zeros_like(x) + 0.5, x)


def erf(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    near_zero = xp.minimum(size, 0.5)
    inside = _erf_near_zero(near_zero)
    return xp.copysign(xp.where(size < 0.5, inside, 1 - _erfc_positive(xp, size)), x)


def erfc(xp: Any, x: Any) -> Any:
    return 2 - 2 * _one_if_positive(xp, x) + xp.copysign(_erfc_positive(xp, xp.abs(x)), x)


def erfcx(xp: Any, x: Any) -> Any:
    """erfc(x) exp(x**2)."""
    negative = x < 0
    size = xp.abs(x)
    growth = _exp_of_square(xp, xp.where(negative, xp.minimum(size, 30.0), 0.0), 1.0)
    positive = _erfcx_positive(size)
    return xp.where(negative, 2 * growth - positive, positive)


def erfinv(xp: Any, x: Any) -> Any:
    size = xp.abs(x)
    is_central = size <= 0.5
    central = xp.where(is_central, size, 0.0)
    central = central * _ratio(central * central, table.ERFINV_CENTER_NUMERATOR, table.ERFINV_CENTER_DENOMINATOR)
    rest = xp.where(is_central, 0.5, 1 - size)
    w = xp.sqrt(-xp.log(xp.where(rest == 0, 0.5, rest)))
    middle, tail = xp.where(w < 2.25, w, 2.25), xp.where(w < 2.25, 2.25, w)
    outer = w * xp.where(
        w < 2.25,
        _ratio(middle, table.ERFINV_MIDDLE_NUMERATOR, table.ERFINV_MIDDLE_DENOMINATOR),
        _ratio(tail, table.ERFINV_TAIL_NUMERATOR, table.ERFINV_TAIL_DENOMINATOR),
    )
    return xp.copysign(xp.where(is_central, central, xp.where(rest == 0, math.inf, outer)), x)


def ndtr(xp: Any, x: Any) -> Any:
    """The normal distribution function: as erfc(-x / sqrt(2)) / 2, but right to the last digits far out, too."""
    size = xp.abs(x)
    tail = 0.5 * _exp_of_square(xp, xp.minimum(size, 40.0), -0.5) * _erfcx_positive(size * _SQRT_HALF)
    return _one_if_positive(xp, x) - xp.copysign(tail, x)


def log_ndtr(xp: Any, x: Any) -> Any:
    negative = x < 0
    left = xp.where(negative, x, 0.0)
    below = xp.log(0.5 * _erfcx_positive(left * -_SQRT_HALF)) - 0.5 * left * left
    return xp.where(negative, below, xp.log1p(-ndtr(xp, -xp.where(negative, 0.0, x))))


# -- the gamma function ----------------------------------------------------------------------------


def _from_integer(xp: Any, x: Any) -> Any:
    """x minus the nearest integer: trigonometric functions of pi x need no more, and lose nothing then."""
    return x - xp.round(x)


def gammaln(xp: Any, x: Any) -> Any:
    """log |gamma(x)|."""
    reflected = x <= 0
    y = xp.where(reflected, 1 - x, x)
    below_one = y < 1
    s = xp.where(below_one, y, y - 1)  # near zero y itself is exact where 1 + y is not
    s = xp.where(s < 2, s, 0.0)
    low = s * (s - 1) * _ratio(s, table.GAMMALN_ONE_TO_THREE_NUMERATOR, table.GAMMALN_ONE_TO_THREE_DENOMINATOR)
    low = (0.0 - xp.log(xp.where(below_one, y, 1.0))) + low
    s = xp.where(y < 8, y - 3, 0.0)
    middle = _ratio(s, table.GAMMALN_THREE_TO_EIGHT_NUMERATOR, table.GAMMALN_THREE_TO_EIGHT_DENOMINATOR)
    large = xp.where(y < 8, 8.0, y)
    inverse = 1 / large
    high = (large - 0.5) * (xp.log(large) - 1) + (_HALF_LOG_TWO_PI - 0.5)
    high += inverse * _polynomial(inverse * inverse, _STIRLING)
    value = xp.where(y < 3, low, xp.where(y < 8, middle, high))
    sine = xp.abs(xp.sin(math.pi * _from_integer(xp, xp.where(reflected, x, 0.5))))
    value = xp.where(reflected, xp.where(sine == 0, math.inf, _LOG_PI - xp.log(sine) - value), value)
    return xp.where(x == -math.inf, math.inf, value)


def digamma(xp: Any, x: Any) -> Any:
    reflected = x < 0
    y = xp.where(reflected, 1 - x, x)
    below_one = y < 1
    s = xp.where(below_one, y, y - 1)
    s = xp.where(s < 2, s, 0.0)
    high_root, low_root = table.DIGAMMA_ROOT
    low = (s - (high_root - 1)) - low_root
    low *= _ratio(s, table.DIGAMMA_ONE_TO_THREE_NUMERATOR, table.DIGAMMA_ONE_TO_THREE_DENOMINATOR)
    low -= xp.where(below_one, 1 / xp.where(below_one, y, 1.0), 0.0)
    s = xp.where(y < 10, y - 3, 0.0)
    middle = _ratio(s, table.DIGAMMA_THREE_TO_TEN_NUMERATOR, table.DIGAMMA_THREE_TO_TEN_DENOMINATOR)
    large = xp.where(y < 10, 10.0, y)
    inverse = 1 / large
    square = inverse * inverse
    high = xp.log(large) - 0.5 * inverse - square * _polynomial(square, _DIGAMMA_TAIL)
    value = xp.where(y < 3, low, xp.where(y < 10, middle, high))
    offset = _from_integer(xp, xp.where(reflected, x, 0.5))
    value = xp.where(reflected, value - math.pi / xp.tan(math.pi * offset), value)
    return xp.where(offset == 0, math.nan, value)  # at its poles; one at zero has a sign of its own and is kept


def polygamma(xp: Any, x: Any, n: int) -> Any:
    """The derivative of order n >= 1 of digamma, by the Euler-Maclaurin sum for the Hurwitz zeta function."""
    reflected = x <= 0
    y = xp.where(reflected, 1 - x, x)
    s = n + 1
    shift = 10 + n
    total = y**-s
    for k in range(1, shift):
        total += (y + k) ** -s
    y = y + shift
    inverse = 1 / y
    square = inverse * inverse
    weights, factor = [], float(s)
    for k, bernoulli in enumerate(table.BERNOULLI, 1):
        weights.append(bernoulli * factor / math.factorial(2 * k))
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    total += inverse**n * (1 / n + inverse * (0.5 + inverse * _polynomial(square, tuple(weights))))
    value = (-1.0) ** (n + 1) * math.factorial(n) * total
    cotangent = 1 / xp.tan(math.pi * _from_integer(xp, xp.where(reflected, x, 0.5)))
    slope = _polynomial(cotangent, _cotangent_derivative(n))
    return xp.where(reflected, (-1.0) ** n * value - math.pi ** (n + 1) * slope, value)


def _cotangent_derivative(n: int) -> tuple[float, ...]:
    """The n-th derivative of cot as a polynomial in cot, because cot' = -(1 + cot**2)."""
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(coefficients)][1:]
        coefficients = [-c for c in slope] + [0.0, 0.0]
        for k, c in enumerate(slope):
            coefficients[k + 2] -= c
    return tuple(coefficients)


# -- the zeta function -----------------------------------------------------------------------------


def zeta(xp: Any, x: Any, q: Any) -> Any:
    """The sum of (q + k)**-x over k >= 0, which is Hurwitz' zeta function."""
    positive = q > 0
    value = _zeta_of_positive(xp, x, xp.where(positive, q, 1.0))
    return xp.where(positive, value, _zeta_of_others(xp, x, xp.where(positive, -0.5, q)))


def _zeta_of_positive(xp: Any, x: Any, q: Any) -> Any:
    """By the Euler-Maclaurin sum; where its terms grow, they are too small beside the first powers to count."""
    regular = x > 1
    s = xp.where(regular, x, 2.0)
    total = q**-s
    for k in range(1, 10):
        total = total + (q + k) ** -s
    y = q + 10
    slow = xp.minimum(s, 50 * y)
    inverse = 1 / y
    factor = slow * inverse
    series = table.BERNOULLI[0] / 2 * factor
    for k, bernoulli in enumerate(table.BERNOULLI[1:], 2):
        factor = factor * ((slow + (2 * k - 3)) * inverse) * ((slow + (2 * k - 2)) * inverse)
        series = series + bernoulli / math.factorial(2 * k) * factor
    total = total + y ** (1 - s) / (s - 1) + y**-s * (0.5 + series)
    return xp.where(x == 1, math.inf, xp.where(regular, total, math.nan))


def _zeta_of_others(xp: Any, x: Any, q: Any) -> Any:
    """For q <= 0, where powers exist for integers x alone: by its period 1 without the terms that it has more."""
    floor = xp.floor(q)
    is_pole = q == floor
    inside = xp.where(is_pole, -0.5, q)
    up, down = xp.ceil(inside) - inside, inside - xp.floor(inside)
    more = _zeta_of_positive(xp, x, up) - _zeta_of_positive(xp, x, 1 - inside)
    value = _zeta_of_positive(xp, x, down) + (1 - 2 * xp.remainder(x, 2.0)) * more
    value = xp.where(x == xp.floor(x), value, math.nan)
    is_infinite = xp.logical_or(x == 1, xp.logical_and(is_pole, x > 1))
    return xp.where(is_infinite, math.inf, value)


# -- modified Bessel functions ---------------------------------------------------------------------


def _bessel_parts(xp: Any, x: Any, small: Any, large: Any) -> tuple[Any, Any, Any, Any]:
    """|x|, whether it is at most 15, the series there, and the function times exp(-|x|) elsewhere."""
    size = xp.abs(x)
    is_small = size <= 15
    half = 0.5 * xp.where(is_small, size, 0.0)
    far = xp.where(is_small, 15.0, size)
    return size, is_small, _polynomial(half * half, small), _polynomial(1 / far, large) / xp.sqrt(far)


def _grown(xp: Any, size: Any, value: Any) -> Any:
    """value exp(size), which may be finite where exp(size) is not."""
    root = xp.exp(0.5 * size)
    return xp.where(value == 0, math.inf, value * root * root)


def i0(xp: Any, x: Any) -> Any:
    size, is_small, near, far = _bessel_parts(xp, x, table.I0_SMALL, table.I0_LARGE)
    return xp.where(is_small, near, _grown(xp, size, far))


def i0e(xp: Any, x: Any) -> Any:
    """i0(x) exp(-|x|)."""
    size, is_small, near, far = _bessel_parts(xp, x, table.I0_SMALL, table.I0_LARGE)
    return xp.where(is_small, near * xp.exp(-xp.minimum(size, 15.0)), far)


def i1(xp: Any, x: Any) -> Any:
    size, is_small, near, far = _bessel_parts(xp, x, table.I1_SMALL, table.I1_LARGE)
    return xp.where(is_small, 0.5 * x * near, xp.sign(x) * _grown(xp, size, far))


def i1e(xp: Any, x: Any) -> Any:
    """i1(x) exp(-|x|)."""
    size, is_small, near, far = _bessel_parts(xp, x, table.I1_SMALL, table.I1_LARGE)
    return xp.where(is_small, 0.5 * x * near * xp.exp(-xp.minimum(size, 15.0)), xp.sign(x) * far)


def xlogy(xp: Any, x: Any, y: Any) -> Any:
    """x log(y), and zero where x is zero, whatever the logarithm is (unless y is NaN)."""
    vanishes = xp.logical_and(x == 0, xp.logical_not(xp.isnan(y)))
    return xp.where(vanishes, xp.zeros_like(x * y), x * xp.log(xp.where(vanishes, xp.ones_like(x * y), y)))
