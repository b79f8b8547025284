"""Philox on JAX: the words of a key's stream in 32-bit arithmetic alone, inside programs and without 64-bit integers.

Keys and offsets are arrays of two words, the lower one first. See `numpy/random.py`, which makes the same words.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_LOW = np.uint32(0xFFFF)


def moved_on(words: Any, count: int) -> Any:
    """The offset `count` words further on."""
    return jnp.stack(_added(words[0], words[1], count))


def philox(key: Any, offset: Any, count: int) -> Any:
    """Words `offset` to `offset + count` of the stream of `key`; the offset is a multiple of four."""
    blocks = -(-count // 4)
    first = (offset[0] >> 2) | (offset[1] << 30), offset[1] >> 2
    index = jnp.arange(blocks, dtype=jnp.uint32)
    low = first[0] + index
    high = first[1] + (low < index).astype(jnp.uint32)

    def mixed(_: Any, state: Any) -> Any:
        a, b, c, d, key_low, key_high = state
        (left_high, left_low), (right_high, right_low) = _product(a, _MULTIPLIERS[0]), _product(c, _MULTIPLIERS[1])
        a, b, c, d = right_high ^ b ^ key_low, right_low, left_high ^ d ^ key_high, left_low
        return a, b, c, d, key_low + np.uint32(_KEY_STEPS[0]), key_high + np.uint32(_KEY_STEPS[1])

    nothing = jnp.zeros(blocks, jnp.uint32)
    # a loop: written out, it would be compiled for long, and computed again for each of the four
    *words, _, _ = jax.lax.fori_loop(0, _ROUNDS, mixed, (low, high, nothing, nothing, key[0], key[1]))
    return jnp.stack(words, axis=-1).reshape(-1)[:count]


def dropout_mask(shape: tuple[int, ...], p: float, key: Any, offset: Any) -> Any:
    """Which elements are kept: those whose word is not among the lowest."""
    count = prod(shape)
    threshold = round(p * 2**32)
    if threshold >= 2**32:
        return jnp.zeros(shape, bool)
    return (philox(key, offset, count) >= np.uint32(threshold)).reshape(shape)


def _product(x: Any, factor: int) -> tuple[Any, Any]:
    """The upper and the lower word of a product of words, from products of halves."""
    x_low, x_high = x & _LOW, x >> 16
    f_low, f_high = np.uint32(factor & 0xFFFF), np.uint32(factor >> 16)
    low, first, second = x_low * f_low, x_high * f_low, x_low * f_high
    middle = (low >> 16) + (first & _LOW) + (second & _LOW)
    high = x_high * f_high + (first >> 16) + (second >> 16) + (middle >> 16)
    return high, x * np.uint32(factor)


def _added(low: Any, high: Any, count: int) -> tuple[Any, Any]:
    more_low, more_high = np.uint32(count & 0xFFFFFFFF), np.uint32(count >> 32)
    total = low + more_low
    return total, high + more_high + (total < more_low).astype(jnp.uint32)
