"""Random numbers of the counter-based generator Philox4x32-10, bit for bit those of the NumPy kernels.

Key and offset are read from memory. A program makes blocks of four words, and numbers of these in the order of the
stream; those before the first that is wanted, up to three, are not written.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
import triton
import triton.language as tl

from ...custom_kernels import Philox
from .addressing import OPTIONS, power, programs

_BLOCK = 512  # blocks of words, or numbers made of two words, of a program
_NUMBERS = {"uint32": torch.int32, "bool": torch.int8, "float32": torch.float32, "float64": torch.float64}


@triton.jit
def _words(block, key, domain: tl.constexpr):  # type: ignore[no-untyped-def]
    """The four words of each block of a key's stream; `block` and `key` are of 64 bits."""
    x = (block & 0xFFFFFFFF).to(tl.uint32)
    y = (block >> 32).to(tl.uint32)
    z = tl.full(x.shape, domain & 0xFFFFFFFF, tl.uint32)
    w = tl.full(x.shape, domain >> 32, tl.uint32)
    low = tl.zeros_like(x) + (key & 0xFFFFFFFF).to(tl.uint32)
    high = tl.zeros_like(x) + (key >> 32).to(tl.uint32)
    left = tl.full(x.shape, 0xD2511F53, tl.uint32)
    right = tl.full(x.shape, 0xCD9E8D57, tl.uint32)
    low_step = tl.full(x.shape, 0x9E3779B9, tl.uint32)
    high_step = tl.full(x.shape, 0xBB67AE85, tl.uint32)
    for _ in tl.static_range(10):
        left_high, left_low = tl.umulhi(x, left), x * left
        right_high, right_low = tl.umulhi(z, right), z * right
        x = right_high ^ y ^ low
        y = right_low
        z = left_high ^ w ^ high
        w = left_low
        low += low_step
        high += high_step
    return x, y, z, w


@triton.jit
def _one_word(  # type: ignore[no-untyped-def]
    keys, offsets, out, made: tl.constexpr, count: tl.constexpr, threshold: tl.constexpr, domain: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Numbers of a word each."""
    offset = tl.load(offsets).to(tl.uint64)
    first = tl.program_id(0).to(tl.int64) * block
    number = (first + tl.arange(0, block)).to(tl.uint64)
    x, y, z, w = _words((offset >> 2) + number, tl.load(keys).to(tl.uint64), domain)
    word = tl.reshape(tl.join(tl.join(x, z), tl.join(y, w)), (4 * block,))
    if made == "bool":
        if threshold > 0xFFFFFFFF:
            value = tl.zeros_like(word).to(tl.int8)
        else:
            value = (word >= tl.full(word.shape, threshold, tl.uint32)).to(tl.int8)
    elif made == "float32":
        value = (word >> 8).to(tl.float32) * 5.9604644775390625e-08
    else:
        value = word.to(tl.int32, bitcast=True)
    place = first * 4 + tl.arange(0, 4 * block)
    skip = (offset & 3).to(tl.int64)
    if skip == 0:  # the compiler sees that numbers can be written four at a time
        tl.store(out + place, value, mask=place < count)
    else:
        tl.store(out + (place - skip), value, mask=(place >= skip) & (place - skip < count))


@triton.jit
def _two_words(  # type: ignore[no-untyped-def]
    keys, offsets, out, count: tl.constexpr, domain: tl.constexpr, block: tl.constexpr
):
    """Numbers of two words each, which may be of two blocks."""
    offset = tl.load(offsets).to(tl.uint64)
    key = tl.load(keys).to(tl.uint64)
    number = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    upper = _word_at(offset, key, number.to(tl.uint64) * 2, domain) >> 5
    lower = _word_at(offset, key, number.to(tl.uint64) * 2 + 1, domain) >> 6
    value = (upper.to(tl.float64) * 67108864.0 + lower.to(tl.float64)) * 1.1102230246251565e-16
    tl.store(out + number, value, mask=number < count)


@triton.jit
def _word_at(offset, key, number, domain: tl.constexpr):  # type: ignore[no-untyped-def]
    """Word `number` of those from `offset` on: their sum may have more than 64 bits."""
    along = (offset & 3) + number
    x, y, z, w = _words((offset >> 2) + (along >> 2), key, domain)
    lane = along & 3
    return tl.where(lane < 2, tl.where(lane == 0, x, y), tl.where(lane == 2, z, w))


class PhiloxKernel:
    """Random words and what is made of them."""

    def __init__(self, kernel: Philox) -> None:
        self.scratch: list[tuple[str, int]] = []
        self._kernel = kernel
        self._of_two = kernel.made == "float64"
        words = kernel.count if self._of_two else -(-(kernel.count + 3) // 4)
        self._block = min(_BLOCK, power(words))
        self._grid = (programs(words, self._block),)

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on key, offset and out."""
        kernel = self._kernel
        key, offset = (array.view(torch.int64) for array in arrays[:2])
        out = arrays[2].view(_NUMBERS[kernel.made])
        if not kernel.count:
            return
        if self._of_two:
            _two_words[self._grid](key, offset, out, kernel.count, kernel.domain, self._block, **OPTIONS)
        else:
            _one_word[self._grid](
                key, offset, out, kernel.made, kernel.count, kernel.threshold, kernel.domain, self._block, **OPTIONS
            )
