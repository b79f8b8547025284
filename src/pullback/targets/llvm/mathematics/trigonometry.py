"""sin, cos and tan, right for arguments of any size.

|x| = n pi/2 + r with |r| <= pi/4 (a little more where n is rounded the other way); which of the two polynomials, for
sin and for cos, is the result's, and its sign, are in the last two bits of n. r comes from subtracting n times pi/2 in
parts. Where that is not enough, a lane at a time, 2/pi is multiplied with as many bits as it takes.
"""

from __future__ import annotations

from functools import partial
from typing import Callable

from llvmlite import ir

from ..code import F32, F64, I32, I64
from . import coefficients as table
from .lanes import Lanes, fma, nearest_multiple, outlined, polynomial, select

#: Up to here n is known well enough, and n times what the parts of pi/2 lack stays below what matters.
_LIMITS = {True: 2.0**17, False: 2.0**45}

_PADDING = 63  # zero bits before the first of 2/pi's
#: 64 zero bits, then 2/pi's binary digits: as many as the largest float64 needs.
_TWO_OVER_PI_WORDS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip


def sin(x: Lanes) -> Lanes:
    return outlined("sin", partial(_by_size, _sine), x)


def cos(x: Lanes) -> Lanes:
    return outlined("cos", partial(_by_size, _cosine), x)


def tan(x: Lanes) -> Lanes:
    """For float64."""
    return outlined("tan", partial(_by_size, _tangent), x)


_Finish = Callable[[Lanes, Lanes, Lanes, Lanes], Lanes]


def _by_size(finish: _Finish, x: Lanes) -> Lanes:
    """finish(x, n, sin(r), cos(r)), by the fast way if every lane allows it."""
    b = x.b
    size = abs(x)
    ordinary = size <= _LIMITS[x.lane == F32]
    fast_block, slow_block, done = (b.append_basic_block(name) for name in ("ordinary", "large", "done"))
    b.cbranch((~ordinary).any(), slow_block, fast_block)
    b.position_at_end(fast_block)
    fast = finish(x, *(_near_single if x.lane == F32 else _near)(size))
    fast_end = b.block
    b.branch(done)
    b.position_at_end(slow_block)
    slow = _large(finish, x, size)
    slow_end = b.block
    b.branch(done)
    b.position_at_end(done)
    result = b.phi(x.type)
    result.add_incoming(fast.value, fast_end)
    result.add_incoming(slow.value, slow_end)
    return Lanes(b, result)


def _large(finish: _Finish, x: Lanes, size: Lanes) -> Lanes:
    if x.width > 1:
        return _lane_by_lane(_OF[finish], x)
    if x.lane == F32:
        return _OF[finish](x.widen()).narrow()
    return finish(x, *_far(size))


def _lane_by_lane(function: Callable[[Lanes], Lanes], x: Lanes) -> Lanes:
    b = x.b
    before = b.block
    head, done = b.append_basic_block("lane"), b.append_basic_block("lanes_done")
    b.branch(head)
    b.position_at_end(head)
    index, results = b.phi(I32), b.phi(x.type)
    index.add_incoming(I32(0), before)
    results.add_incoming(ir.Constant(x.type, ir.Undefined), before)
    value = function(Lanes(b, b.extract_element(x.value, index)))
    following = b.insert_element(results, value.value, index)
    next_index = b.add(index, I32(1))
    index.add_incoming(next_index, b.block)
    results.add_incoming(following, b.block)
    b.cbranch(b.icmp_unsigned("<", next_index, I32(x.width)), head, done)
    b.position_at_end(done)
    return Lanes(b, following)


# -- n, sin(r) and cos(r) ------------------------------------------------------------------------------


def _near_single(size: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    whole, n = nearest_multiple(size, table.TWO_OVER_PI)
    r = size
    for part in table.HALF_PI_PARTS_SINGLE:
        r = fma(whole, -part, r)
    z = r * r
    sine = fma(polynomial(z, table.SIN_SINGLE), z * r, r)
    cosine = fma(polynomial(z, table.COS_SINGLE), z * z, fma(z, -0.5, 1.0))
    return n, sine, cosine


def _near(size: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    whole, n = nearest_multiple(size, table.TWO_OVER_PI)
    first, second, third = table.HALF_PI_PARTS
    start = fma(whole, -first, size)  # exact: a small multiple of the last bit of pi/2
    product = whole * second
    r = start - product
    # What the subtraction and the product lost (either of start and product may be the larger).
    back = r - start
    lost = (start - (r - back)) - (product + back)
    low = lost - fma(whole, second, -product) - whole * third
    return n, *_sine_and_cosine(r, low)


def _sine_and_cosine(r: Lanes, low: Lanes) -> tuple[Lanes, Lanes]:
    """Of r + low, |r| <= 0.8."""
    z = r * r
    half = z * 0.5
    leading = 1.0 - half
    sine = r + fma(low, leading, polynomial(z, table.SIN) * (z * r))
    rest = fma(polynomial(z, table.COS), z * z, (1.0 - leading) - half)
    return sine, leading + fma(low, -r, rest)


def _far(size: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """For a scalar from 2**-9 up: size is an integer of 53 bits times 2**e, and so is all of it modulo 4 quadrants.

    Of 2/pi the digits worth 2**(1 - e) and less matter; 192 of them leave more than the 53 bits of the result even
    where it is next to a multiple of pi/2.
    """
    b = size.b
    long, wide = ir.IntType(192), ir.IntType(256)
    bits = size.bits()
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    start = bits.logical_shift(52) + (_PADDING - 1 - 1075)
    words = _words(b)
    window: ir.Value = wide(0)
    for k in range(4):
        index = b.add(start.logical_shift(6).value, I64(k))
        word = b.zext(b.load(b.gep(words, [I64(0), index], inbounds=True)), wide)
        window = b.or_(window, b.shl(word, wide(192 - 64 * k)))
    window = b.shl(window, b.zext((start & 63).value, wide))
    # The product modulo 2**192, from 64 bits at a time.
    product: ir.Value = long(0)
    double = ir.IntType(128)
    for k in range(3):
        digits = b.trunc(b.lshr(window, wide(64 * (k + 1))), I64)
        partial_product = b.mul(b.zext(digits, double), b.zext(mantissa.value, double))
        product = b.add(product, b.shl(b.zext(partial_product, long), long(64 * k)))
    # Two bits of quadrants, then the fraction; a half or more belongs to the next quadrant.
    quadrant = b.trunc(b.lshr(b.add(product, long(1 << 189)), long(190)), I64)
    fraction = b.shl(product, long(2))
    negative = b.icmp_signed("<", fraction, long(0))
    magnitude = b.select(negative, b.neg(fraction), fraction)
    zeros = b.call(_count_zeros(b), [magnitude, ir.IntType(1)(0)])
    digits = b.shl(magnitude, zeros)
    upper = Lanes(b, b.trunc(b.lshr(digits, long(192 - 53)), I64)).to_float(F64)
    lower = Lanes(b, b.trunc(b.lshr(digits, long(192 - 53 - 53)), I64)) & ((1 << 53) - 1)
    unit = ((1023 - 53 - Lanes(b, b.trunc(zeros, I64))) << 52).as_float()
    sign = select(Lanes(b, negative), upper.of(-1.0), upper.of(1.0))
    turn = upper * unit * sign
    turn_low = lower.to_float(F64) * unit * sign * 2.0**-53
    leading, trailing, _ = table.HALF_PI_PARTS
    r = turn * leading + (size - size)  # infinities have no angle
    low = fma(turn, leading, -r) + fma(turn, trailing, turn_low * leading)
    return Lanes(b, quadrant), *_sine_and_cosine(r, low)


def _words(b: ir.IRBuilder) -> ir.Value:
    name = "pullback.two_over_pi"
    words = b.module.globals.get(name)
    if words is None:
        kind = ir.ArrayType(I64, len(_TWO_OVER_PI_WORDS))
        words = ir.GlobalVariable(b.module, kind, name)
        words.initializer = ir.Constant(kind, list(_TWO_OVER_PI_WORDS))
        words.linkage = "internal"
        words.global_constant = True
    return words


def _count_zeros(b: ir.IRBuilder) -> ir.Function:
    name = "llvm.ctlz.i192"
    function = b.module.globals.get(name)
    if function is None:
        long = ir.IntType(192)
        function = ir.Function(b.module, ir.FunctionType(long, [long, ir.IntType(1)]), name)
    return function


# -- the results ---------------------------------------------------------------------------------------


def _signed(value: Lanes, n: Lanes) -> Lanes:
    """value, or its opposite if n has 2 in it."""
    top = 62 if value.lane == F64 else 30
    return (value.bits() ^ ((n & 2) << top)).as_float()


def _sine(x: Lanes, n: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    value = _signed(select((n & 1) == 0, sine, cosine), n)
    sign = x.bits() & (-1 << (63 if x.lane == F64 else 31))
    return (value.bits() ^ sign).as_float()


def _cosine(x: Lanes, n: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    return _signed(select((n & 1) == 0, cosine, sine), n + 1)


def _tangent(x: Lanes, n: Lanes, sine: Lanes, cosine: Lanes) -> Lanes:
    even = (n & 1) == 0
    value = select(even, sine, -cosine) / select(even, cosine, sine)
    return (value.bits() ^ (x.bits() & (-1 << 63))).as_float()


_OF: dict[_Finish, Callable[[Lanes], Lanes]] = {_sine: sin, _cosine: cos, _tangent: tan}
