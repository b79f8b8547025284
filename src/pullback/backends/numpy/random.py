"""Random bits, and numbers made of them: Philox4x32-10, a function of a key and a counter that keeps no state.

Philox is the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(2011). Word number `i` of a key's stream depends on the key and on `i` alone, so that any stretch of it can be made
by itself, again, in parallel, or on another backend. Numbers are made from words by exactly rounded arithmetic alone
(addition, multiplication, division, square root), so that every machine and backend can make the same ones.
"""

from __future__ import annotations

import math as _math
from typing import Any

import numpy as _np

_MULTIPLIERS = (_np.uint64(0xD2511F53), _np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_MASK = _np.uint64(0xFFFFFFFF)
_HALF = _np.uint64(32)
_LN2 = 0.6931471805599453
_TWO_PI = 6.283185307179586
_CHUNK = 1 << 12  # blocks computed at once: eight arrays of this length fit a second-level cache


def philox_uint32(key: int, offset: int, count: int, domain: int = 0) -> Any:
    """Words `offset` to `offset + count` of the stream of `key`, as uint32.

    `key` has 64 bits and `offset` 66; each of the 64 bits of `domain` names a stream of its own for the same key.
    """
    key, offset = int(key), int(offset)  # traced ones are arrays without axes
    first = offset // 4
    blocks = -(-(offset + count) // 4) - first
    out = _np.empty((blocks, 4), _np.uint32)
    for start in range(0, blocks, _CHUNK):
        _fill(out[start : start + _CHUNK], key, first + start, domain)
    skip = offset - 4 * first
    return out.reshape(-1)[skip : skip + count]


def _fill(out: Any, key: int, block: int, domain: int) -> None:
    """Write the blocks from number `block` on into the rows of `out`."""
    length = len(out)
    index = _np.arange(length, dtype=_np.uint64)
    index += _np.uint64(block & 0xFFFFFFFFFFFFFFFF)  # wraps around as the 64-bit counter does
    a, b = index & _MASK, index >> _HALF
    c = _np.full(length, domain & 0xFFFFFFFF, _np.uint64)
    d = _np.full(length, domain >> 32, _np.uint64)
    left, right = _np.empty_like(a), index
    key_low, key_high = key & 0xFFFFFFFF, key >> 32
    for _ in range(_ROUNDS):
        _np.multiply(a, _MULTIPLIERS[0], out=left)
        _np.multiply(c, _MULTIPLIERS[1], out=right)
        _np.right_shift(right, _HALF, out=a)
        a ^= b
        a ^= _np.uint64(key_low)
        _np.bitwise_and(right, _MASK, out=b)
        _np.right_shift(left, _HALF, out=c)
        c ^= d
        c ^= _np.uint64(key_high)
        _np.bitwise_and(left, _MASK, out=d)
        key_low = (key_low + _KEY_STEPS[0]) & 0xFFFFFFFF
        key_high = (key_high + _KEY_STEPS[1]) & 0xFFFFFFFF
    for column, words in enumerate((a, b, c, d)):
        out[:, column] = words


# -- from words to numbers: `words` has one row per word that a number takes -------------------------


def joined(words: Any) -> Any:
    """Two words as one 64-bit number."""
    return words[0].astype(_np.uint64) | words[1].astype(_np.uint64) << _np.uint64(32)


def unit_of_two_words(words: Any) -> Any:
    """53 bits as a float64 in [0, 1), exactly."""
    return ((words[0] >> _np.uint32(5)) * 67108864.0 + (words[1] >> _np.uint32(6))) * 2.0**-53


def minus_log(words: Any) -> Any:
    """Minus the logarithm of a number in (0, 1]: from the exponential distribution."""
    return 0.0 - _log(1.0 - unit_of_two_words(words))


def gumbel(words: Any) -> Any:
    """Minus the logarithm of such a number: from the Gumbel distribution."""
    return 0.0 - _log(_np.maximum(minus_log(words), 2.0**-54))


def high_part(words: Any, bound: tuple[int, ...]) -> Any:
    """floor(w * bound / 2**(32 n)) for the number w made of n words: long multiplication, 32 bits at a time."""
    limbs = [word.astype(_np.uint64) for word in words]
    product = [_np.zeros(limbs[0].shape, _np.uint64) for _ in range(len(limbs) + len(bound))]
    for j, factor in enumerate(bound):
        carry: Any = _np.uint64(0)
        for i, limb in enumerate(limbs):
            total = limb * _np.uint64(factor) + product[i + j] + carry
            product[i + j] = total & _np.uint64(0xFFFFFFFF)
            carry = total >> _np.uint64(32)
        product[j + len(limbs)] = product[j + len(limbs)] + carry
    high = product[len(limbs) :]
    return high[0] if len(high) == 1 else high[0] | high[1] << _np.uint64(32)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's rule, in this order and without fused multiply-add, so that every machine rounds alike."""
    value = _np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += coefficient
    return value


def _log(x: Any) -> Any:
    """The logarithm of positive float64 numbers, to about one unit in the last place, equal on every machine."""
    fraction, exponent = _np.frexp(x)
    small = fraction < 0.7071067811865476
    fraction = _np.where(small, fraction * 2.0, fraction)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    return (exponent - small) * _LN2 + ratio * _polynomial(ratio * ratio, _LOG)


def _sine_and_cosine(turns: Any) -> tuple[Any, Any]:
    """sin and cos of 2 pi times a number in [0, 1)."""
    quarter = _np.floor(turns * 4.0 + 0.5)
    angle = (turns - quarter * 0.25) * _TWO_PI
    squared = angle * angle
    sine, cosine = angle * _polynomial(squared, _SIN), _polynomial(squared, _COS)
    quadrant = quarter.astype(_np.int8) & 3
    swapped = (quadrant & 1).astype(bool)
    sine, cosine = _np.where(swapped, cosine, sine), _np.where(swapped, sine, cosine)
    return _np.where(quadrant >= 2, -sine, sine), _np.where((quadrant == 1) | (quadrant == 2), -cosine, cosine)


_LOG = tuple(2.0 / (2 * k + 1) for k in range(12))  # log((1+r)/(1-r)) / r in powers of r**2
_SIN = tuple((-1.0) ** k / _math.factorial(2 * k + 1) for k in range(9))
_COS = tuple((-1.0) ** k / _math.factorial(2 * k) for k in range(10))


def normal_pairs(unit: Any) -> Any:
    """Normal numbers from uniform ones in [0, 1), two from two (Box and Muller)."""
    pairs = unit.reshape(-1, 2)
    radius = _np.sqrt(-2.0 * _log(1.0 - pairs[:, 0]))
    sine, cosine = _sine_and_cosine(pairs[:, 1])
    out = _np.empty_like(pairs)
    _np.multiply(radius, cosine, out=out[:, 0])
    _np.multiply(radius, sine, out=out[:, 1])
    return out.reshape(-1)
