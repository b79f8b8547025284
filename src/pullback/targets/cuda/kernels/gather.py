"""Reading rows or elements named by integers. Elements are moved as they are, whatever their dtype."""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

import triton
import triton.language as tl

from ...custom_kernels import Gather, GatherAlong
from .addressing import (
    OPTIONS,
    as_bits,
    below,
    block_of,
    in_one_row,
    number_type,
    offset_along,
    offset_of,
    position,
    power,
    programs,
    walk_of,
    walks_in_order,
)

_BLOCK = 1024  # elements of a program


@triton.jit
def _gather(  # type: ignore[no-untyped-def]
    x, indices, out,
    rows: tl.constexpr, columns: tl.constexpr, places: tl.constexpr, sizes: tl.constexpr, x_sizes: tl.constexpr,
    x_outer: tl.constexpr, out_outer: tl.constexpr, index_places: tl.constexpr, index_axes: tl.constexpr,
    out_places: tl.constexpr,
    x_inner: tl.constexpr, out_inner: tl.constexpr,
    row_block: tl.constexpr, column_block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + column_block - 1) // column_block
    program = tl.program_id(0)
    row = (program // column_programs).to(number) * row_block + tl.arange(0, row_block)
    column = (program % column_programs).to(number) * column_block + tl.arange(0, column_block)
    is_row = below(row, rows, row_block)
    place = row % places
    before = row // places
    x_at = offset_of(before, x_outer)
    for axis in tl.static_range(len(sizes)):
        index = position(indices[axis], offset_along(place, index_places, axis, index_axes), is_row, sizes[axis])
        x_at += index.to(number) * x_sizes[axis]
    out_at = offset_of(before, out_outer) + offset_of(place, out_places)
    is_there = is_row[:, None] & below(column, columns, column_block)[None, :]
    value = tl.load(x + x_at[:, None] + offset_of(column, x_inner)[None, :], mask=is_there)
    tl.store(out + out_at[:, None] + offset_of(column, out_inner)[None, :], value, mask=is_there)


@triton.jit
def _gather_along(  # type: ignore[no-untyped-def]
    x, index, out, count: tl.constexpr, size: tl.constexpr, x_step: tl.constexpr,
    x_walk: tl.constexpr, index_walk: tl.constexpr, out_walk: tl.constexpr, block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    element = tl.program_id(0).to(number) * block + tl.arange(0, block)
    is_there = below(element, count, block)
    at = position(index, offset_of(element, index_walk), is_there, size).to(number) * x_step
    value = tl.load(x + offset_of(element, x_walk) + at, mask=is_there)
    tl.store(out + offset_of(element, out_walk), value, mask=is_there)


class GatherKernel:
    """Rows of an array: a program has some places and some columns of their rows."""

    def __init__(self, kernel: Gather) -> None:
        self.scratch: list[tuple[str, int]] = []
        before, axes, count = len(kernel.outer), len(kernel.sizes), len(kernel.places)
        places, inner = kernel.places, kernel.inner
        rows, columns = prod(kernel.outer) * prod(places), prod(inner)
        self._is_empty = not rows or not columns or 0 in kernel.sizes  # where no index is in bounds, nothing is read
        column_block = block_of(columns, _BLOCK)
        row_block = min(_BLOCK // column_block, power(rows))
        number = number_type(
            ((*kernel.outer, *kernel.sizes, *kernel.inner), kernel.x),
            ((*kernel.outer, *kernel.places, *kernel.inner), kernel.out),
            *((kernel.places, strides) for _, strides in kernel.indices),
        )
        self._grid = (programs(rows, row_block) * programs(columns, column_block),)
        self._constants = (
            rows, columns, prod(places), kernel.sizes, kernel.x[before : before + axes],
            walk_of(kernel.outer, kernel.x[:before]), walk_of(kernel.outer, kernel.out[:before]),
            *in_one_row([walk_of(places, strides) for _, strides in kernel.indices]),
            walk_of(places, kernel.out[before : before + count]), walk_of(inner, kernel.x[before + axes :]),
            walk_of(inner, kernel.out[before + count :]), row_block, column_block, number,
        )  # fmt: skip

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x, the indices and out."""
        x, *indices, out = arrays
        if not self._is_empty:
            _gather[self._grid](as_bits(x), tuple(indices), as_bits(out), *self._constants, **OPTIONS)


class GatherAlongKernel:
    """Elements along an axis, in the order in which the result lies in memory."""

    def __init__(self, kernel: GatherAlong) -> None:
        self.scratch: list[tuple[str, int]] = []
        shape = (*kernel.rows, kernel.count)
        walks = walks_in_order(shape, (*kernel.x[:-1], 0), kernel.index, kernel.out)
        count = prod(shape)
        self._is_empty = not count or not kernel.size
        number = number_type(((*kernel.rows, kernel.size), kernel.x), (shape, kernel.index), (shape, kernel.out))
        block = min(_BLOCK, power(count))
        self._grid = (programs(count, block),)
        self._constants = (count, kernel.size, kernel.x[-1], *walks, block, number)

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x, index and out."""
        x, index, out = arrays
        if not self._is_empty:
            _gather_along[self._grid](as_bits(x), index, as_bits(out), *self._constants, **OPTIONS)
