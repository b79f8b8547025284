"""Portable kernels: products with quantized constants, and numbers of few bits to and from bytes.

Two codes of four bits are in a byte: of a row of codes, the first half is in the lower bits, the second in the higher.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .core import raw_dtype

#: The levels of NF4, and the middles between them, above which a value belongs to the next one.
NF4_LEVELS = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_MIDDLES = tuple([(low + high) / 2 for low, high in pairwise(NF4_LEVELS)])


def quantized_matmul(xp: Any, x: Any, weight: Any, transposed: bool = False) -> Any:
    """`x @ weight`, or `x @ weight.T`, where `weight` is a quantized matrix."""
    values = weight.dequantize()
    return xp.matmul(x, xp.matrix_transpose(values) if transposed else values)


def straight_through(xp: Any, x: Any, value: Any) -> Any:
    """`value`, which only counts as made of `x`."""
    return value


def unpack_int4(xp: Any, codes: Any, scales: Any) -> Any:
    """`(code - 8) * scale` of rows of codes, two in a byte; a scale for each row."""
    low = xp.astype(codes & 15, raw_dtype(scales)) - 8
    high = xp.astype(codes & 240, raw_dtype(scales)) / 16 - 8
    return xp.concat([low * scales, high * scales], -1)


def unpack_nf4(xp: Any, codes: Any, scales: Any) -> Any:
    """`level * scale` of rows of codes, two in a byte; a scale for each row."""
    return xp.concat([_levels(xp, codes, first, scales) * scales for first in (1, 16)], -1)


def _levels(xp: Any, codes: Any, first: int, like: Any) -> Any:
    """The level that four bits say, of which the lowest is `first`: chosen bit by bit."""
    left: list[Any] = [xp.full((), level, raw_dtype(like), like) for level in NF4_LEVELS]
    for bit in (first, 2 * first, 4 * first, 8 * first):
        left = [xp.where((codes & bit) != 0, high, low) for low, high in zip(left[::2], left[1::2])]
    return left[0]


def pack_nf4(xp: Any, x: Any) -> Any:
    """The codes of the levels nearest to numbers from -1 to 1, two of a row in a byte."""
    low, high = xp.split(_count(xp, [x > middle for middle in _MIDDLES]), (x.shape[-1] // 2, x.shape[-1] // 2), -1)
    return low + 16 * high


def unpack_float8(xp: Any, codes: Any, scales: Any) -> Any:
    """The numbers whose bits are these (e4m3), times scales."""
    is_small = (codes & 120) == 0  # its exponent is that of the next ones, and its mantissa has no leading one
    mantissa = xp.astype(codes & 7, raw_dtype(scales))
    power = _choice(xp, is_small, 2.0, 1.0, scales)
    for bit, factor in ((8, 2.0), (16, 4.0), (32, 16.0), (64, 256.0)):
        power = power * _choice(xp, (codes & bit) != 0, factor, 1.0, scales)
    sign = _choice(xp, (codes & 128) != 0, -(2.0**-10), 2.0**-10, scales)
    return (mantissa + _choice(xp, is_small, 0.0, 8.0, scales)) * sign * power * scales  # float16 holds all of these


def pack_float8(xp: Any, x: Any) -> Any:
    """The bits of the numbers (e4m3) nearest to those of size 448 at most, of two the even one."""
    size = xp.minimum(xp.abs(x), 448)  # a scale may have been rounded
    above = [size >= 2.0**exponent for exponent in range(-5, 9)]
    inverse = xp.full((), 512.0, raw_dtype(x), x)  # of the distance of the numbers around
    for is_above in above:
        inverse = inverse * _choice(xp, is_above, 0.5, 1.0, x)
    steps = xp.astype(xp.round(size * inverse), _byte(x))
    sign = xp.astype(x < 0, _byte(x)) * 128
    return _count(xp, above) * 8 + steps + sign


def _choice(xp: Any, condition: Any, one: float, other: float, like: Any) -> Any:
    return xp.where(condition, xp.full((), one, raw_dtype(like), like), xp.full((), other, raw_dtype(like), like))


def _count(xp: Any, conditions: list[Any]) -> Any:
    """How many of these hold, as bytes."""
    total = None
    for condition in conditions:
        one = xp.astype(condition, _byte(condition))
        total = one if total is None else total + one
    return total


def _byte(x: Any) -> Any:
    from ..quantization.scheme import named_dtype

    return named_dtype(x, "uint8")
