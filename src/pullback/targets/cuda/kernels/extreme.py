"""Positions of the largest or smallest elements of rows.

Every lane of a block keeps the best element that it has seen and where it was; lanes are compared at the end. Where
there are few rows they are cut into chunks, and the best of these are compared by the same kernel.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any, Sequence

import triton
import triton.language as tl

from ...custom_kernels import Extreme
from .addressing import (
    OPTIONS,
    below,
    block_of,
    number_type,
    offset_of,
    power,
    programs,
    walks_in_order,
    without_bool,
)

_BLOCK = 1024  # elements that a program sees at once
_ROWS = 64  # of these, where neighbours in memory are of different rows
_ENOUGH = 264  # programs that keep a GPU busy: two for each multiprocessor of the largest
_LONG = 4  # blocks that are not worth another launch
_COMPARED = {"float16": "float32", "bfloat16": "float32", "bool": "int32", "int8": "int32", "int16": "int32",
             "uint8": "int32", "uint16": "int32", "uint32": "int64"}  # fmt: skip


@triton.jit
def _extreme(  # type: ignore[no-untyped-def]
    x, candidates, out,
    rows: tl.constexpr, length: tl.constexpr, span: tl.constexpr, has_candidates: tl.constexpr, is_max: tl.constexpr,
    worst: tl.constexpr, kind: tl.constexpr, x_walk: tl.constexpr, x_step: tl.constexpr, out_walk: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    """The best of `span` elements of each row, of `length` in all; with candidates, of the elements named by these."""
    chunks: tl.constexpr = (length + span - 1) // span
    chunk = (tl.program_id(0) % chunks).to(number)
    row = (tl.program_id(0) // chunks).to(number) * row_block + tl.arange(0, row_block)[:, None]
    is_row = below(row, rows, row_block)
    x_at = offset_of(row, x_walk)
    best = tl.full((row_block, column_block), worst, kind)
    where = tl.full((row_block, column_block), -1, tl.int64)
    for start in range(0, span, column_block):
        along = start + tl.arange(0, column_block)[None, :]
        column = chunk * span + along
        is_there = is_row & (along < span) & (column < length)
        if has_candidates:
            index = tl.load(candidates + row * length + column, mask=is_there, other=0)
        else:
            index = tl.zeros((row_block, 1), tl.int64) + column
        given = tl.load(x + x_at + index.to(number) * x_step, mask=is_there, other=0).to(kind)
        is_better = (where < 0) | ((given != given) & (best == best))
        if is_max:
            is_better = is_better | (given > best)
        else:
            is_better = is_better | (given < best)
        is_better = is_better & is_there
        best = tl.where(is_better, given, best)
        where = tl.where(is_better, index, where)
    is_seen = where >= 0
    is_nan = is_seen & (best != best)
    has_nan = tl.max(is_nan.to(tl.int32), 1, keep_dims=True) > 0
    compared = tl.where(is_seen & (is_nan == 0), best, tl.full(best.shape, worst, kind))
    if is_max:
        is_top = best == tl.max(compared, 1, keep_dims=True)
    else:
        is_top = best == tl.min(compared, 1, keep_dims=True)
    is_top = is_seen & ((has_nan & is_nan) | ((has_nan == 0) & is_top))
    first = tl.min(tl.where(is_top, where, 0x7FFFFFFFFFFFFFFF), 1, keep_dims=True)
    tl.store(out + offset_of(row, out_walk) + chunk, first, mask=is_row)


class ExtremeKernel:
    """Positions of extremes: the first of several, that of the first NaN if there is one."""

    def __init__(self, kernel: Extreme) -> None:
        self.scratch: list[tuple[str, int]] = []
        rows, length, step = prod(kernel.shape), kernel.length, kernel.x[-1]
        self._is_empty = not rows or not length
        out_walk, x_walk = walks_in_order(kernel.shape, kernel.out, kernel.x[:-1])
        number = number_type(((*kernel.shape, length), kernel.x), (kernel.shape, kernel.out))
        if x_walk[1] and abs(x_walk[1][-1]) < abs(step):
            row_block = block_of(rows, _ROWS, 16)
            column_block = min(_BLOCK // row_block, power(length))
        else:
            column_block = min(_BLOCK, power(length))
            row_block = min(_BLOCK // column_block, power(rows))
        self._rows = programs(rows, row_block)
        self._chunks = 1
        if 0 < self._rows < _ENOUGH and length > _LONG * column_block:
            self._chunks = min(programs(length, column_block), programs(2 * _ENOUGH, self._rows))
        blocks = programs(programs(length, self._chunks), column_block)
        span = max(blocks, 1) * column_block
        self._chunks = programs(length, span)
        kind = _COMPARED.get(kernel.dtype, kernel.dtype)
        is_max = kernel.op == "argmax"
        end = (is_max, _worst(kind, is_max), getattr(tl, kind), x_walk, step)
        blocks_of = (row_block, column_block, number)
        self._last: tuple[Any, ...] = (rows, length, span, False, *end, out_walk, *blocks_of)
        self._first: tuple[Any, ...] | None = None
        if self._chunks > 1:
            self.scratch = [("int64", rows * self._chunks)]
            self._first = (rows, length, span, False, *end, ((rows,), (self._chunks,)), *blocks_of)
            all_chunks = power(self._chunks)
            self._last = (rows, self._chunks, all_chunks, True, *end, out_walk, *blocks_of)

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x and out."""
        x, out = without_bool(arrays[0]), arrays[1]
        if self._is_empty:
            return
        parts = scratch[0] if scratch else out
        if self._first is not None:
            _extreme[(self._rows * self._chunks,)](x, parts, parts, *self._first, **OPTIONS)
        _extreme[(self._rows,)](x, parts, out, *self._last, **OPTIONS)


def _worst(kind: str, is_max: bool) -> float | int:
    """A number that no other is worse than."""
    if kind.startswith("float"):
        return -inf if is_max else inf
    bits = int(kind.removeprefix("u").removeprefix("int"))
    if kind.startswith("u"):
        return 0 if is_max else 2**bits - 1
    return -(2 ** (bits - 1)) if is_max else 2 ** (bits - 1) - 1
