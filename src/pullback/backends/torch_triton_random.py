"""Dropout in one pass, in Triton: Philox makes four words of a counter, for four elements in a row."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 1024  # counters of a program


# Numbers that change from call to call are not compiled for, and all words are passed as int32.
@triton.jit(do_not_specialize=["first", "first_high", "key_low", "key_high", "threshold"])
def _dropout(  # type: ignore[no-untyped-def]
    x, out, kept, count, first, first_high, key_low, key_high, threshold, scale, block: tl.constexpr
):
    number = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    total = number + tl.cast(tl.cast(first, tl.uint32), tl.int64)
    a = (total & 0xFFFFFFFF).to(tl.uint32)
    b = (total >> 32).to(tl.uint32) + tl.cast(first_high, tl.uint32)
    c = tl.zeros_like(a)
    d = tl.zeros_like(a)
    low = tl.zeros_like(a) + tl.cast(key_low, tl.uint32)
    high = tl.zeros_like(a) + tl.cast(key_high, tl.uint32)
    left = tl.full((block,), 0xD2511F53, tl.uint32)
    right = tl.full((block,), 0xCD9E8D57, tl.uint32)
    low_step = tl.full((block,), 0x9E3779B9, tl.uint32)
    high_step = tl.full((block,), 0xBB67AE85, tl.uint32)
    for _ in tl.static_range(10):
        left_high, left_low = tl.umulhi(a, left), a * left
        right_high, right_low = tl.umulhi(c, right), c * right
        a = right_high ^ b ^ low
        b = right_low
        c = left_high ^ d ^ high
        d = left_low
        low += low_step
        high += high_step
    place = number * 4
    least = tl.zeros_like(a) + tl.cast(threshold, tl.uint32)
    _write(x, out, kept, place, count, a >= least, scale)
    _write(x, out, kept, place + 1, count, b >= least, scale)
    _write(x, out, kept, place + 2, count, c >= least, scale)
    _write(x, out, kept, place + 3, count, d >= least, scale)


@triton.jit
def _write(x, out, kept, place, count, keep, scale):
    """The elements at `place`, and which of them are kept."""
    inside = place < count
    value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) * scale
    tl.store(out + place, tl.where(keep, value, 0.0).to(out.dtype.element_ty), mask=inside)
    tl.store(kept + place, keep.to(tl.int8), mask=inside)


def takes(x: Any, threshold: int, offset: int) -> bool:
    """Whether the kernel takes these arguments."""
    return x.dtype in (torch.float16, torch.bfloat16, torch.float32) and threshold < 2**32 and offset % 4 == 0


def dropout(x: Any, threshold: int, scale: float, key: int, offset: int) -> tuple[Any, Any]:
    """The result and which elements were kept."""
    x = x.contiguous()
    out, kept = torch.empty_like(x), torch.empty(x.shape, dtype=torch.bool, device=x.device)
    first = offset // 4
    words = [_signed(word) for word in (first, first >> 32, key, key >> 32, threshold)]
    with torch.cuda.device_of(x):
        _dropout[(triton.cdiv(x.numel(), 4 * _BLOCK),)](x, out, kept.view(torch.int8), x.numel(), *words, scale, _BLOCK)
    return out, kept


def _signed(word: int) -> int:
    """The lowest 32 bits, as a signed number."""
    return ((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
