"""Arithmetic, comparison, logic and bits, for integers and floating-point numbers, with NumPy's meaning."""

from __future__ import annotations

import math

from llvmlite import ir

from ..code import F32, F64, I64
from .lanes import Lanes, copysign, fma, outlined, power_of_two, select

# -- signs and sizes -----------------------------------------------------------------------------------


def absolute(x: Lanes, signed: bool) -> Lanes:
    if x.is_float:
        return abs(x)
    return select(x < 0, -x, x) if signed else x


def sign(x: Lanes, signed: bool) -> Lanes:
    """-1, 0 or 1, and NaN for NaN."""
    one, zero = x.of(1), x.of(0)
    if x.is_float:
        return select(x > 0.0, one, select(x < 0.0, x.of(-1), select(x == 0.0, zero, x)))
    positive = select(x != 0, one, zero)
    return select(x < 0, x.of(-1), positive) if signed else positive


def maximum(x: Lanes, y: Lanes, signed: bool) -> Lanes:
    """The larger, y if they are equal (zeros of either sign are); NaN if either is."""
    larger = select(x.compare(">", y, signed), x, y)
    return select(x.is_nan(), x, larger) if x.is_float else larger


def minimum(x: Lanes, y: Lanes, signed: bool) -> Lanes:
    smaller = select(x.compare("<", y, signed), x, y)
    return select(x.is_nan(), x, smaller) if x.is_float else smaller


def nextafter(x: Lanes, y: Lanes) -> Lanes:
    """The number next to x on the way to y: its bits plus or minus one, away from zero or towards it."""
    bits = x.bits()
    least = (bits.of(1) | (y.bits() & (-1 << (bits.lane.width - 1)))).as_float()
    outwards = (y > x) == (x > 0.0)
    moved = select(outwards, bits + 1, bits - 1).as_float()
    moved = select(x == 0.0, least, moved)
    moved = select(x == y, y, moved)
    return select(x.is_nan() | y.is_nan(), x + y, moved)


# -- division that rounds down --------------------------------------------------------------------------


def float_remainder(x: Lanes, y: Lanes) -> Lanes:
    """What floor division leaves: it has the sign of y. NaN for a zero y or an infinite x."""
    rest = truncated_remainder(x, y)
    wrong = (rest != 0.0) & ((rest < 0.0) ^ (y < 0.0))
    rest = select(rest == 0.0, copysign(rest, y), rest)
    return select(wrong, rest + y, rest)


def float_floor_divide(x: Lanes, y: Lanes) -> Lanes:
    quotient = x / y
    rest = truncated_remainder(x, y)
    wrong = (rest != 0.0) & ((rest < 0.0) ^ (y < 0.0))
    exact = (x - rest) / y
    exact = select(wrong, exact - 1.0, exact)
    down = exact.call("floor")
    down = select(exact - down > 0.5, down + 1.0, down)
    down = select(exact == 0.0, copysign(down, quotient), down)
    limit = (y == 0.0) | (abs(x) == math.inf) | (abs(y) == math.inf)
    return select(limit, select(y == 0.0, quotient, quotient.call("floor")), down)


def truncated_remainder(x: Lanes, y: Lanes) -> Lanes:
    """x - y trunc(x / y), exactly, as C's fmod."""
    if x.lane == F32:  # exact in float64, where all of float32's numbers are normal
        return truncated_remainder(x.widen(), y.widen()).narrow()
    return outlined("fmod", _truncated_remainder, x, y)


def _truncated_remainder(x: Lanes, y: Lanes) -> Lanes:
    size = abs(y)
    valid = (abs(x) < math.inf) & (size > 0.0)  # neither is NaN then
    rest = select(valid, abs(x), 0.0)
    divisor = select(valid & (size < math.inf), size, 1.0)
    # Where y is so small that it may be subnormal: first by a multiple of it, then with both made larger.
    up = select(divisor < 2.0**-900, x.of(2.0**120), 1.0)
    down = select(divisor < 2.0**-900, x.of(2.0**-120), 1.0)
    raised = divisor * up
    rest = _long_division(_long_division(rest, raised) * up, raised) * down
    return select(valid, copysign(select(size == math.inf, abs(x), rest), x), math.nan)


def _long_division(dividend: Lanes, divisor: Lanes) -> Lanes:
    """What is left: each round takes off a multiple of the divisor times a power of two, exactly."""
    b = dividend.b
    before = b.block
    head, done = b.append_basic_block("reduce"), b.append_basic_block("reduced")
    b.branch(head)
    b.position_at_end(head)
    rest = Lanes(b, b.phi(dividend.type))
    rest.value.add_incoming(dividend.value, before)
    # The quotient by `step` has at most 50 bits.
    gap = (rest.bits() >> 52) - (divisor.bits() >> 52) - 48
    gap = select(gap > 0, gap, 0)
    half = gap >> 1
    step = divisor * power_of_two(half) * power_of_two(gap - half)
    left = fma((rest / step).call("trunc"), -step, rest)
    left = select(left < 0.0, left + step, left)  # the quotient was rounded up to the next integer
    left = select(rest < divisor, rest, left)
    rest.value.add_incoming(left.value, b.block)
    b.cbranch((left >= divisor).any(), head, done)
    b.position_at_end(done)
    return left


def integer_divide(x: Lanes, y: Lanes, signed: bool) -> tuple[Lanes, Lanes]:
    """The quotient rounded down and what it leaves, both 0 for a zero y; the least number by -1 wraps round."""
    b = x.b
    zero = y == 0
    if x.lane.width <= 32:
        # Exact in float64, for which there are vector instructions.
        wide = y.like(I64)
        extend = b.sext if signed else b.zext
        numerator, denominator = (
            Lanes(b, b.sitofp(extend(v.value, wide), v.like(F64))) for v in (x, select(zero, y.of(1), y))
        )
        quotient = Lanes(b, b.trunc(b.fptosi((numerator / denominator).value, wide), x.type))
    elif signed:
        overflow = y == -1  # the processor traps there; -x wraps
        safe = select(zero | overflow, y.of(1), y)
        quotient = select(overflow, -x, Lanes(b, b.sdiv(x.value, safe.value)))
    else:
        quotient = Lanes(b, b.udiv(x.value, select(zero, y.of(1), y).value))
    rest = x - quotient * y
    if signed:
        wrong = (rest != 0) & ((rest ^ y) < 0)
        quotient = select(wrong, quotient - 1, quotient)
        rest = select(wrong, rest + y, rest)
    return select(zero, 0, quotient), select(zero, 0, rest)


# -- bits ---------------------------------------------------------------------------------------------


def left_shift(x: Lanes, y: Lanes) -> Lanes:
    """x 2**y; 0 for all the bits or more, and for a negative y."""
    fits = y.compare("<", x.lane.width, signed=False)
    return select(fits, x << select(fits, y, 0), 0)


def right_shift(x: Lanes, y: Lanes, signed: bool) -> Lanes:
    """x shifted down; all the bits or more (or a negative y) leave the sign alone."""
    fits = y.compare("<", x.lane.width, signed=False)
    if signed:
        return x >> select(fits, y, x.lane.width - 1)
    return select(fits, x.logical_shift(select(fits, y, 0)), 0)


def sign_bit(x: Lanes) -> Lanes:
    return x.bits() < 0


def truth(x: Lanes) -> Lanes:
    """Whether it is not zero; NaN is not."""
    return x if x.lane == ir.IntType(1) else x != 0
