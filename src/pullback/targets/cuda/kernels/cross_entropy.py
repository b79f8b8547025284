"""Cross-entropy of rows of logits, with the gradient written over the logits.

A program has a row and goes over it twice, in blocks: lanes of as many neighbours as a thread reads at once. First
every lane keeps the largest logit that it has seen and the sum of exponentials relative to it. The second time the row
is still in a cache: it goes backwards, from what was read last.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from ...custom_kernels import CrossEntropy
from .addressing import below, itemsize_of, language_type, power

_WARPS = 32  # so many that few rows are under way at once, and stay in the cache
_BYTES = 16  # of logits that a thread reads at once


@triton.jit
def _logits(x, bias, column, is_column, has_bias: tl.constexpr, bias_step: tl.constexpr, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """A block of a row, which ends with what has no share."""
    values = tl.load(x + column, mask=is_column, other=-float("inf")).to(kind)
    if has_bias:
        values += tl.load(bias + column * bias_step, mask=is_column, other=0).to(kind)
    return values


@triton.jit
def _exp(x, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """exp(x), which is 0 instead of less than a normal number: a third of the instructions."""
    if kind == tl.float32:
        return libdevice.fast_expf(x)
    else:
        return tl.exp(x)


@triton.jit
def _cross_entropy(  # type: ignore[no-untyped-def]
    x, target, bias, weight, scale, losses, out,
    length: tl.constexpr, row_step: tl.constexpr, target_step: tl.constexpr, has_bias: tl.constexpr,
    bias_step: tl.constexpr, has_weight: tl.constexpr, weight_step: tl.constexpr, has_gradient: tl.constexpr,
    scale_step: tl.constexpr, ignored: tl.constexpr, smoothing: tl.constexpr, lowest: tl.constexpr,
    kind: tl.constexpr, lanes: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    block: tl.constexpr = lanes * wide
    blocks: tl.constexpr = (length + block - 1) // block
    within = tl.arange(0, lanes)[:, None] * wide + tl.arange(0, wide)[None, :]
    x += row * row_step
    out += row * row_step
    wanted = tl.load(target + row * target_step).to(tl.int64)
    if wanted == ignored:
        tl.store(losses + row, tl.zeros((), kind))
        if has_gradient:
            for number in range(blocks):
                column = number * block + within
                nothing = tl.zeros((lanes, wide), out.dtype.element_ty)
                tl.store(out + column, nothing, mask=below(column, length, block))
    else:
        # What the row has of its own class is read before all sums, behind which others write over the row.
        is_class = (wanted >= 0) & (wanted < length)
        own = tl.load(x + wanted, mask=is_class, other=float("nan")).to(kind)  # no class at all: not a number
        if has_bias:
            own += tl.load(bias + wanted * bias_step, mask=is_class, other=0).to(kind)
        largest = tl.full((lanes,), lowest, kind)
        total = tl.zeros((lanes,), kind)
        weights = tl.zeros((lanes, wide), kind)
        for number in range(blocks):
            column = number * block + within
            is_column = below(column, length, block)
            values = _logits(x, bias, column, is_column, has_bias, bias_step, kind)
            above = tl.maximum(largest, tl.max(values, 1))
            total = total * _exp(largest - above, kind) + tl.sum(_exp(values - above[:, None], kind), 1)
            largest = above
            if has_weight and smoothing > 0:
                weights += tl.load(weight + column * weight_step, mask=is_column, other=0).to(kind)
        top = tl.max(largest, 0)
        denominator = tl.sum(total * _exp(largest - top, kind), 0)
        logarithm = tl.log(denominator)
        cost = logarithm + (top - own)  # a sum of `logarithm` and `top` would be rounded as `top` is large
        share_of_own = tl.full((), 1 - smoothing, kind)
        if has_weight:
            share_of_own *= tl.load(weight + wanted * weight_step, mask=is_class, other=0).to(kind)
        loss = share_of_own * cost
        if has_gradient or smoothing > 0:
            smooth: tl.constexpr = smoothing / length
            all_weights = tl.sum(tl.sum(weights, 1), 0) if has_weight else tl.full((), length, kind)
            costs = tl.zeros((lanes, wide), kind)
            factor = tl.load(scale + row * scale_step) if has_gradient else tl.zeros((), kind)
            of_own = share_of_own * factor
            at_own = libdevice.expm1(-cost) * of_own  # exact also where it is almost 0
            of_share = of_own / denominator
            own_block = (wanted // block).to(tl.int32)
            for number in range(blocks):
                column = (blocks - 1 - number) * block + within
                is_column = below(column, length, block)
                values = _logits(x, bias, column, is_column, has_bias, bias_step, kind) - top
                exponential = _exp(values, kind)
                result = exponential * of_share
                if number == blocks - 1 - own_block:
                    result = tl.where(column == wanted, at_own, result)
                if smoothing > 0:
                    of_class = tl.full((lanes, wide), 1, kind)
                    if has_weight:
                        of_class = tl.load(weight + column * weight_step, mask=is_column, other=0).to(kind)
                    result += (exponential * (all_weights / denominator) - of_class) * (factor * smooth)
                    costs += tl.where(is_column, of_class * (logarithm - values), 0)
                if has_gradient:
                    tl.store(out + column, result.to(out.dtype.element_ty), mask=is_column)
            if smoothing > 0:
                loss += smooth * tl.sum(tl.sum(costs, 1), 0)
        tl.store(losses + row, loss)


class CrossEntropyKernel:
    """Losses, and gradients over logits."""

    def __init__(self, kernel: CrossEntropy) -> None:
        self.scratch: list[tuple[str, int]] = []
        self._rows = kernel.rows
        self._has = [form is not None for form in (kernel.bias, kernel.weight, kernel.scale)]
        row_step, step = kernel.x
        if step != 1 and kernel.length > 1:
            raise ValueError(f"the classes of a row must be neighbours in memory, not {step} elements apart.")
        wide = _BYTES // itemsize_of(kernel.dtype)
        block = min(power(kernel.length), 32 * _WARPS * wide)
        self._options = {"num_warps": max(min(block // (32 * wide), _WARPS), 1), "enable_fp_fusion": True}
        self._constants = (
            kernel.length, row_step, kernel.target[1],
            kernel.bias is not None, kernel.bias[1] if kernel.bias else 0,
            kernel.weight is not None, kernel.weight[1] if kernel.weight else 0,
            kernel.scale is not None, kernel.scale or 0,
            kernel.ignored, float(kernel.smoothing), float(np.finfo(kernel.wide).min), language_type(kernel.wide),
            max(block // wide, 1), min(wide, block),
        )  # fmt: skip

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on the arrays that there are of x, target, bias, weight, scale, losses and the gradient."""
        if not self._rows:
            return
        x, target, *others = arrays
        rest = iter(others)
        bias, weight, scale = (next(rest) if there else x for there in self._has)
        losses = next(rest)
        out = next(rest) if self._has[2] else x
        _cross_entropy[(self._rows,)](
            x, target, bias, weight, scale, losses, out, *self._constants, **self._options
        )  # fmt: skip
