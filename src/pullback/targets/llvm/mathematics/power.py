"""pow: |x|**y = exp(y log|x|), the logarithm to more digits than the result has; and powers of integers."""

from __future__ import annotations

import math
from typing import Callable

from llvmlite import ir

from ..code import F32
from . import coefficients as table
from .exponentials import exp
from .lanes import (
    Lanes,
    at_least,
    at_most,
    fma,
    nearest_multiple,
    outlined,
    polynomial,
    power_of_two,
    select,
    sqrt,
)  # fmt: skip
from .logarithms import split


def power(x: Lanes, y: Lanes) -> Lanes:
    exponent = _known(y)
    if exponent in _SIMPLE:
        return _SIMPLE[exponent](x)
    return outlined("pow", _power, x, y)


def _known(y: Lanes) -> float | None:
    """The number that is in every lane, where it is a constant of the program."""
    if not isinstance(y.value, ir.Constant):
        return None
    number = y.value.constant
    numbers = {getattr(lane, "constant", lane) for lane in number} if y.width > 1 else {number}
    return float(numbers.pop()) if len(numbers) == 1 else None


#: Powers that a few multiplications give to within 1.5 units in the last place.
_SIMPLE: dict[float | None, Callable[[Lanes], Lanes]] = {
    0.0: lambda x: x.of(1.0),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: (1.0 / x) * (1.0 / x),
    # Adding zero makes the negative zero positive; the power of -inf is that of inf.
    0.5: lambda x: select(x == -math.inf, math.inf, sqrt(x) + 0.0),
    -0.5: lambda x: select(x == -math.inf, 0.0, 1.0 / (sqrt(x) + 0.0)),
}


def _power(x: Lanes, y: Lanes) -> Lanes:
    size = abs(x)
    value = _of_positive_single(size, y) if x.lane == F32 else _of_positive(size, y)
    # |x| = 1 and y infinite or anything, y = 0 and x anything, x = 1 and y NaN: one.
    one = (y == 0.0) | (x == 1.0) | ((size == 1.0) & (abs(y) == math.inf))
    value = select(one, 1.0, value)
    half = y * 0.5
    whole = y.call("trunc") == y
    odd = whole & (half.call("trunc") != half)
    negative = x.bits() < 0
    value = select(negative & odd, -value, value)
    undefined = (x < 0.0) & (x > -math.inf) & ~whole  # infinite y is whole
    return select(undefined, math.nan, value)


def _of_positive_single(x: Lanes, y: Lanes) -> Lanes:
    """In float64, to about 40 bits: the exponent is at most 104 in size, so that is enough."""
    f, k = split(x.widen())
    s = f / (f + 2.0)
    z = s * s
    near = fma(polynomial(z, table.LOG_SHORT), z, 2.0) * s
    logarithm = _at_limits(x.widen(), fma(k, table.LN2_PARTS[0], near))
    product = at_least(at_most(logarithm * y.widen(), 200.0), -200.0)
    whole, n = nearest_multiple(product, table.LOG2_E)
    r = fma(whole, -table.LN2_PARTS[0], product)
    value = fma(polynomial(r, table.EXP_SHORT), r * r, r) + 1.0
    return (value * power_of_two(n)).narrow()


def _at_limits(x: Lanes, logarithm: Lanes) -> Lanes:
    """The logarithm of x >= 0, for zero, infinity and NaN too."""
    return select(x == 0.0, -math.inf, select(x < math.inf, logarithm, x))


def _of_positive(x: Lanes, y: Lanes) -> Lanes:
    """For float64: the logarithm in two parts, about 66 bits, so that y times it is right to the last bit of exp."""
    f, k = split(x)
    denominator = f + 2.0
    denominator_low = f - (denominator - 2.0)
    inverse = 1.0 / denominator
    s = f * inverse
    s_low = inverse * fma(s, -denominator_low, fma(s, -denominator, f))
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    # log(1 + f) = s (2 + 2/3 z + tail)
    third, third_low = table.TWO_THIRDS_PARTS
    tail = polynomial(z, table.LOG_TAIL) * z * z
    linear = z * third
    linear_low = fma(z, third, -linear) + fma(z_low, third, z * third_low)
    rest = linear + tail
    rest_low = ((linear - rest) + tail) + linear_low
    factor = rest + 2.0
    factor_low = ((2.0 - factor) + rest) + rest_low
    near = s * factor
    near_low = fma(s, factor, -near) + fma(s, factor_low, s_low * factor)
    leading, trailing = table.LN2_SHORT_PARTS
    far = k * leading  # exact
    total = far + near
    total_low = ((far - total) + near) + fma(k, trailing, near_low)
    total = _at_limits(x, total)
    product = y * total
    product_low = fma(y, total_low, fma(y, total, -product))
    return exp(product, select(abs(product) < 1000.0, product_low, 0.0))


def integer_power(x: Lanes, y: Lanes, signed: bool) -> Lanes:
    """x**y modulo the type's range, by squaring. A negative y is for x = 1 and -1; other x give 0, as 1/x**-y does."""
    name = "signed_power" if signed else "unsigned_power"
    return outlined(name, lambda x, y: _integer_power(x, y, signed), x, y)


def _integer_power(x: Lanes, y: Lanes, signed: bool) -> Lanes:
    b = x.b
    exponent = select(y < 0, -y, y) if signed else y
    before = b.block
    head, done = b.append_basic_block("square"), b.append_basic_block("squared")
    b.branch(head)
    b.position_at_end(head)
    result, base, left = (Lanes(b, b.phi(x.type)) for _ in range(3))
    following = select((left & 1) == 0, result, result * base)
    rest = left.logical_shift(1)
    for phi, start, again in ((result, x.of(1), following), (base, x, base * base), (left, exponent, rest)):
        phi.value.add_incoming(start.value, before)
        phi.value.add_incoming(again.value, b.block)
    b.cbranch((rest != 0).any(), head, done)
    b.position_at_end(done)
    if not signed:
        return following
    return select((y < 0) & (x != 1) & (x != -1), 0, following)
