"""Kernels in Triton for what PyTorch does in several passes over large arrays: cross-entropy."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 4096  # classes that a program looks at at once


@triton.jit
def _losses(x, target, losses, lse, stride, classes, ignored, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Minus the logarithm of the softmax at the right class, for a row; and that of its denominator."""
    row = tl.program_id(0).to(tl.int64)
    wanted = tl.load(target + row)
    x += row * stride
    largest = -float("inf")
    total = 0.0
    for first in range(0, classes, block):
        column = first + tl.arange(0, block)
        values = tl.load(x + column, mask=column < classes, other=-float("inf")).to(tl.float32)
        highest = tl.maximum(largest, tl.max(values, 0))
        shift = tl.where(highest == -float("inf"), 0.0, highest)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(values - shift), 0)
        largest = highest
    result = largest + tl.log(total)
    is_class = (wanted >= 0) & (wanted < classes)
    own = tl.load(x + wanted, mask=is_class, other=float("nan")).to(tl.float32)  # no class at all: not a number
    tl.store(losses + row, tl.where(wanted == ignored, 0.0, result - own))
    tl.store(lse + row, result)


@triton.jit
def _gradient(  # type: ignore[no-untyped-def]
    scale, x, target, lse, out, stride, classes, ignored, per_row: tl.constexpr, block: tl.constexpr
):
    """scale * (softmax(x) - one_hot(target)), for a row."""
    row = tl.program_id(0).to(tl.int64)
    wanted = tl.load(target + row)
    denominator = tl.load(lse + row)
    factor = tl.load(scale + row) if per_row else tl.load(scale)
    x += row * stride
    out += row * classes
    for first in range(0, classes, block):
        column = first + tl.arange(0, block)
        values = tl.load(x + column, mask=column < classes, other=0.0).to(tl.float32) - denominator
        share = tl.exp(values)
        # exp(v) - 1 for v near zero, where the difference would lose its digits
        less_one = tl.where(values > -0.01, values * (1 + values * (0.5 + values * (1.0 / 6))), share - 1)
        result = tl.where(column == wanted, less_one, share) * factor
        result = tl.where(wanted == ignored, 0.0, result)
        tl.store(out + column, result.to(out.dtype.element_ty), mask=column < classes)


def takes(x: Any) -> bool:
    """Whether the kernels take these logits."""
    return x.stride(1) == 1 and x.dtype in (torch.float16, torch.bfloat16, torch.float32)


def losses_and_lse(x: Any, target: Any, ignored: int) -> tuple[Any, Any]:
    rows, classes = x.shape
    losses, lse = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    with torch.cuda.device_of(x):
        _losses[(rows,)](x, target, losses, lse, x.stride(0), classes, ignored, _block(classes), num_warps=8)
    return losses, lse


def gradient(scale: Any, x: Any, target: Any, lse: Any, ignored: int) -> Any:
    """`scale` is one number, or one for each row."""
    rows, classes = x.shape
    out = torch.empty((rows, classes), dtype=x.dtype, device=x.device)
    with torch.cuda.device_of(x):
        _gradient[(rows,)](
            scale.contiguous(), x, target, lse, out, x.stride(0), classes, ignored, scale.ndim > 0, _block(classes),
            num_warps=8,
        )  # fmt: skip
    return out


def _block(classes: int) -> int:
    return min(_BLOCK, triton.next_power_of_2(classes))
