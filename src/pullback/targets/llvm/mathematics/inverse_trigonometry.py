"""asin, acos, atan, atan2 and hypot, in float64."""

from __future__ import annotations

import math

from . import coefficients as table
from .lanes import Lanes, copysign, fma, polynomial, select, sqrt

_HALF_PI, _HALF_PI_LOW, _ = table.HALF_PI_PARTS
_TAN_EIGHTH_PI = math.sqrt(2) - 1


def _arc_parts(x: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Whether |x| <= 0.5; then asin(|x|) = y + rest, else acos(|x|) = 2 (y + rest)."""
    size = abs(x)
    near = size <= 0.5
    square = select(near, x * x, (1.0 - size) * 0.5)
    y = select(near, size, sqrt(square))
    # What the root lacks: y**2 + 2 y low = square. A root of zero lacks nothing.
    low = fma(y, -y, square) / (y + select(y == 0.0, y.of(1.0), y))
    low = select(near, 0.0, low)
    return near, y, polynomial(square, table.ASIN) * square * y, low


def asin(x: Lanes) -> Lanes:
    near, y, rest, low = _arc_parts(x)
    twice = 2.0 * y
    far = _HALF_PI - twice
    lost = (_HALF_PI - far) - twice
    far = far + (lost - (2.0 * (rest + low) - _HALF_PI_LOW))
    return copysign(select(near, y + rest, far), x)


def acos(x: Lanes) -> Lanes:
    near, y, rest, low = _arc_parts(x)
    signed_rest = copysign(rest, x)
    signed = copysign(y, x)
    inner = _HALF_PI - (signed - (_HALF_PI_LOW - signed_rest))
    outer = 2.0 * (y + (rest + low))
    opposite = 2.0 * (_HALF_PI - (y + ((rest + low) - _HALF_PI_LOW)))
    return select(near, inner, select(x < 0.0, opposite, outer))


def _atan_of_ratio(smaller: Lanes, larger: Lanes) -> tuple[Lanes, Lanes]:
    """atan(smaller / larger), 0 <= smaller <= larger, and a correction to it.

    Where the ratio is above tan(pi/8) it is pi/4 - atan((larger - smaller) / (larger + smaller)).
    """
    steep = smaller > larger * _TAN_EIGHTH_PI
    numerator = select(steep, smaller - larger, smaller)
    denominator = select(steep, smaller + larger, larger)
    t = numerator / denominator
    square = t * t
    rest = polynomial(square, table.ATAN) * square * t
    base = select(steep, t.of(0.5 * _HALF_PI), 0.0)
    base_low = select(steep, t.of(0.5 * _HALF_PI_LOW), 0.0)
    total = base + t
    return total, (t - (total - base)) + (rest + base_low)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y), with all the directions that zeros and infinities have."""
    # Halved, or their sum may overflow; doubled enough first where they are tiny, or halving would lose a bit.
    height, breadth = abs(y), abs(x)
    large = (height > 2.0**1000) | (breadth > 2.0**1000)
    factor = select(large, height.of(0.25), 4.0)
    both_infinite = (height == math.inf) & (breadth == math.inf)
    height = select(both_infinite, 1.0, height * factor)
    breadth = select(both_infinite, 1.0, breadth * factor)
    upright = height > breadth
    smaller, larger = select(upright, breadth, height), select(upright, height, breadth)
    origin = larger == 0.0
    angle, low = _atan_of_ratio(select(origin, 0.0, smaller), select(origin, 1.0, larger))
    # pi/2 - angle where the point is upright, then pi - angle where x is negative.
    half, half_low = _HALF_PI, _HALF_PI_LOW
    turned = half - angle
    turned_low = ((half - turned) - angle) - low + half_low
    angle, low = select(upright, turned, angle), select(upright, turned_low, low)
    behind = x.bits() < 0
    turned = 2 * half - angle
    turned_low = ((2 * half - turned) - angle) - low + 2 * half_low
    angle, low = select(behind, turned, angle), select(behind, turned_low, low)
    return select(y.is_nan() | x.is_nan(), x + y, copysign(angle + low, y))


def atan(x: Lanes) -> Lanes:
    size = abs(x)
    upright = size > 1.0
    larger = select(upright, size, 1.0)
    infinite = size == math.inf
    angle, low = _atan_of_ratio(select(upright, size.of(1.0), size), select(infinite, 2.0**1000, larger))
    turned = _HALF_PI - angle
    turned_low = ((_HALF_PI - turned) - angle) - low + _HALF_PI_LOW
    return copysign(select(upright, turned + turned_low, angle + low), x)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x**2 + y**2) without overflow or underflow on the way; infinite if either is, even beside a NaN."""
    x, y = abs(x), abs(y)
    infinite = (x == math.inf) | (y == math.inf)
    swapped = x < y
    larger, smaller = select(swapped, y, x), select(swapped, x, y)
    # By a power of two that brings the larger near 1: the squares' errors are then all that counts.
    huge, tiny = larger > 2.0**500, larger < 2.0**-500
    down = select(huge, larger.of(2.0**-600), select(tiny, larger.of(2.0**600), 1.0))
    up = select(huge, larger.of(2.0**600), select(tiny, larger.of(2.0**-600), 1.0))
    larger, smaller = larger * down, smaller * down
    square = larger * larger
    low = fma(smaller, smaller, fma(larger, larger, -square))
    total = square + low
    root = sqrt(total)
    # One step of Newton's method with what the sums lost.
    lost = (square - total) + low
    error = fma(root, -root, total) + lost
    root = root + select(root == 0.0, 0.0, error / (root + root))
    return select(infinite, math.inf, root * up)
