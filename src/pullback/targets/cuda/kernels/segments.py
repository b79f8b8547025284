"""Rows added up by a key of each: the same bits in every run.

Places are sorted by their keys, those with the same key in their own order. Sorted places are cut into chunks, and a
program has one chunk and some columns: it adds up the rows of each key by a scan that starts anew where the key
changes. A sum that is whole is written where it belongs. One that goes over the end of a chunk is written beside, and a
second kernel adds such parts in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from .addressing import OPTIONS, Walk, below, block_of, language_type, offset_of, power, programs, summed_in

_BLOCK = 4096  # elements of a program
_COLUMNS = 128  # of these, at most
_JOINED = 64  # parts that are added at a time
_COMPARED = 16384  # places that are sorted by comparing each with all: one launch, and no memory of the library's
_SORTED = 32, 128  # places of a program, and those that they are compared with at a time


@triton.jit
def _sort(  # type: ignore[no-untyped-def]
    keys, sorted_keys, order, count: tl.constexpr, own_block: tl.constexpr, block: tl.constexpr
):
    """Write each place where it belongs: behind smaller keys, and behind the same key at places before it."""
    own = tl.program_id(0) * own_block + tl.arange(0, own_block)[:, None]
    is_own = below(own, count, own_block)
    key = tl.load(keys + own, mask=is_own, other=0)
    before = tl.zeros((own_block, block), tl.int32)
    for start in range(0, count, block):
        other = start + tl.arange(0, block)[None, :]
        is_other = below(other, count, block)
        other_key = tl.load(keys + other, mask=is_other, other=0)
        is_before = (other_key < key) | ((other_key == key) & (other < own))
        before += (is_before & is_other).to(tl.int32)
    rank = tl.sum(before, 1, keep_dims=True)
    tl.store(sorted_keys + rank, key, mask=is_own)
    tl.store(order + rank, own.to(tl.int64), mask=is_own)


@triton.jit
def _added_within(is_first, total, is_next_first, following):
    """Sums of two stretches of rows: only the second's where a key begins in it."""
    return is_first | is_next_first, tl.where(is_next_first != 0, following, total + following)


@triton.jit
def _write(pointer, total, is_there, is_truth: tl.constexpr, adds: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write a sum that began with zero, or with what is there."""
    kind = pointer.dtype.element_ty
    began = tl.zeros_like(total)
    if adds:
        began = tl.load(pointer, mask=is_there, other=0).to(total.dtype)
    if is_truth:
        tl.store(pointer, (total + began != 0).to(kind), mask=is_there)
    else:
        tl.store(pointer, (total + began).to(kind), mask=is_there)


@triton.jit
def _sum_chunks(  # type: ignore[no-untyped-def]
    value, keys, order, out, heads, tails,
    count: tl.constexpr, columns: tl.constexpr,
    out_targets: tl.constexpr, value_places: tl.constexpr, value_beside: tl.constexpr, out_beside: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, kind: tl.constexpr, is_truth: tl.constexpr,
    adds: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + column_block - 1) // column_block
    program = tl.program_id(0)
    chunk = program // column_programs
    start = chunk * row_block
    row = start + tl.arange(0, row_block)
    column = (program % column_programs).to(number) * column_block + tl.arange(0, column_block)
    is_row = below(row, count, row_block)
    key = tl.load(keys + row, mask=is_row, other=-1)
    previous = tl.load(keys + row - 1, mask=is_row & (row > 0), other=-1)
    following = tl.load(keys + row + 1, mask=row + 1 < count, other=-1)
    is_first = (key != previous) | (row == start)
    is_last = is_row & ((key != following) | (row == start + row_block - 1))
    place = tl.load(order + row, mask=is_row, other=0).to(number)
    is_column = below(column, columns, column_block)[None, :]
    at = offset_of(place, value_places)[:, None] + offset_of(column, value_beside)[None, :]
    given = tl.load(value + at, mask=is_row[:, None] & is_column, other=0).to(kind)
    firsts = is_first.to(tl.int32)[:, None] + tl.zeros((1, column_block), tl.int32)
    _, total = tl.associative_scan((firsts, given), 0, _added_within)
    began = is_row & (key == tl.load(keys + start - 1, mask=start > 0, other=-1))
    goes_on = is_row & (key == tl.load(keys + start + row_block, mask=start + row_block < count, other=-1))
    to = offset_of(key.to(number), out_targets)[:, None] + offset_of(column, out_beside)[None, :]
    is_whole = is_last & (began == 0) & (goes_on == 0)
    _write(out + to, total, is_whole[:, None] & is_column, is_truth, adds)
    if count > row_block:
        part = tl.zeros((row_block, 1), number) + chunk.to(number) * columns + column[None, :]
        tl.store(heads + part, total, mask=(is_last & began)[:, None] & is_column)
        tl.store(tails + part, total, mask=(is_last & (began == 0) & goes_on)[:, None] & is_column)


@triton.jit
def _join_chunks(  # type: ignore[no-untyped-def]
    keys, out, heads, tails,
    count: tl.constexpr, columns: tl.constexpr, out_targets: tl.constexpr, out_beside: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, joined: tl.constexpr, is_truth: tl.constexpr,
    adds: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + column_block - 1) // column_block
    program = tl.program_id(0)
    chunk = program // column_programs  # never the last one
    start = chunk * row_block
    key = tl.load(keys + start + row_block - 1)
    goes_on = key == tl.load(keys + start + row_block)
    began = key == tl.load(keys + start - 1, mask=start > 0, other=-1)
    if goes_on & (began == 0):
        column = (program % column_programs).to(number) * column_block + tl.arange(0, column_block)[None, :]
        is_column = below(column, columns, column_block)
        total = tl.load(tails + chunk.to(number) * columns + column, mask=is_column, other=0)
        first = chunk + 1
        is_same = goes_on
        while is_same:
            one = first + tl.arange(0, joined)[:, None]
            same = key == tl.load(keys + one * row_block, mask=one * row_block < count, other=-1)
            part = tl.load(heads + one.to(number) * columns + column, mask=same & is_column, other=0)
            total += tl.sum(part, 0, keep_dims=True)
            first += joined
            is_same = tl.sum(same.to(tl.int32)) == joined
        to = offset_of(key.to(number), out_targets) + offset_of(column, out_beside)
        _write(out + to, total, is_column, is_truth, adds)


@dataclass(frozen=True)
class SegmentSums:
    """Sums by key of `count` rows of `columns` elements. A key is a number below `targets`.

    Walks go over the result by key, over the values by row, and over both along a row. Sums are written, or added to
    what is there if it `adds`.
    """

    dtype: str
    count: int
    columns: int
    targets: int
    out_targets: Walk
    value_places: Walk
    value_beside: Walk
    out_beside: Walk
    number: Any
    adds: bool = False

    @property
    def column_block(self) -> int:
        return block_of(self.columns, _COLUMNS)

    @property
    def row_block(self) -> int:
        return min(_BLOCK // self.column_block, 1024, power(self.count))

    @property
    def key_dtype(self) -> str:
        """The integers of the keys: the shorter, the sooner they are sorted."""
        return "int16" if self.targets <= 2**15 else "int32" if self.targets <= 2**31 else "int64"

    @property
    def scratch(self) -> list[tuple[str, int]]:
        """Memory for keys, sorted keys, places in the order of these, and parts of sums."""
        made = [(self.key_dtype, self.count), (self.key_dtype, self.count), ("int64", self.count)]
        chunks = programs(self.count, self.row_block)
        parts = (summed_in(self.dtype), chunks * self.columns)
        return [*made, parts, parts] if chunks > 1 else made

    def launch(self, value: Any, out: Any, scratch: Any) -> None:
        """Add up `value` by the keys at the beginning of `scratch`. Elements of `out` without a key are not written."""
        keys, sorted_keys, order = (part[: self.count] for part in scratch[:3])
        if self.count <= _COMPARED:
            own_block, block = min(_SORTED[0], power(self.count)), min(_SORTED[1], power(self.count))
            _sort[(programs(self.count, own_block),)](keys, sorted_keys, order, self.count, own_block, block, **OPTIONS)
        else:
            torch.sort(keys, stable=True, out=(sorted_keys, order))
        chunks, column_programs = programs(self.count, self.row_block), programs(self.columns, self.column_block)
        heads, tails = scratch[3:] if chunks > 1 else (out, out)
        is_truth = self.dtype == "bool"
        _sum_chunks[(chunks * column_programs,)](
            value, sorted_keys, order, out, heads, tails, self.count, self.columns, self.out_targets,
            self.value_places, self.value_beside, self.out_beside, self.row_block, self.column_block,
            language_type(summed_in(self.dtype)), is_truth, self.adds, self.number, **OPTIONS,
        )  # fmt: skip
        if chunks > 1:
            _join_chunks[((chunks - 1) * column_programs,)](
                sorted_keys, out, heads, tails, self.count, self.columns, self.out_targets, self.out_beside,
                self.row_block, self.column_block, _JOINED, is_truth, self.adds, self.number, **OPTIONS,
            )  # fmt: skip
