"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any, Sequence

import triton
import triton.language as tl

from ...custom_kernels import Running
from .addressing import OPTIONS, below, itemsize_of, language_type, offset_of, summed_in, without_bool
from .timeline import ONE_WARP, column_walks, in_time, last_of, timeline_of


@triton.jit
def _product(x, y):
    return x * y


@triton.jit
def _sum(x, y):
    return x + y


@triton.jit
def _run(x, is_product: tl.constexpr):  # type: ignore[no-untyped-def]
    """What is come to at each step of a tile."""
    if is_product:
        return tl.associative_scan(x, 0, _product)
    else:
        return tl.associative_scan(x, 0, _sum)


@triton.jit
def _total(x, is_product: tl.constexpr):  # type: ignore[no-untyped-def]
    """What a tile comes to."""
    if is_product:
        return tl.reduce(x, 0, _product, keep_dims=True)
    else:
        return tl.sum(x, 0, keep_dims=True)


@triton.jit
def _combine(x, y, is_product: tl.constexpr):  # type: ignore[no-untyped-def]
    if is_product:
        return x * y
    else:
        return x + y


@triton.jit
def _chunk_totals(  # type: ignore[no-untyped-def]
    x, totals,
    length: tl.constexpr, columns: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    number: tl.constexpr, is_product: tl.constexpr, x_time: tl.constexpr, x_walk: tl.constexpr, kind: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + width - 1) // width
    chunk = (tl.program_id(0) // column_programs).to(number)
    column = (tl.program_id(0) % column_programs).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    at = offset_of(column, x_walk) + x_time[0]
    carry = tl.full((1, width), is_product, kind)
    for start in range(0, span, steps):
        step = chunk * span + start + tl.arange(0, steps)[:, None]
        given = tl.load(x + at + step * x_time[1], mask=is_column & (step < length), other=is_product).to(kind)
        carry = _combine(carry, _total(given, is_product), is_product)
    tl.store(totals + chunk * columns + column, carry, mask=is_column)


@triton.jit
def _chunk_carries(  # type: ignore[no-untyped-def]
    totals, carries, columns: tl.constexpr, chunks: tl.constexpr, all_chunks: tl.constexpr, width: tl.constexpr,
    number: tl.constexpr, is_product: tl.constexpr,
):  # fmt: skip
    """What each chunk begins with."""
    column = tl.program_id(0).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    chunk = tl.arange(0, all_chunks)[:, None]
    at = chunk.to(number) * columns + column
    total = _run(tl.load(totals + at, mask=is_column & (chunk < chunks), other=is_product), is_product)
    tl.store(carries + column, tl.full((1, width), is_product, totals.dtype.element_ty), mask=is_column)
    tl.store(carries + at + columns, total, mask=is_column & (chunk + 1 < chunks))


@triton.jit
def _running(  # type: ignore[no-untyped-def]
    x, carries, out,
    length: tl.constexpr, columns: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    number: tl.constexpr, is_product: tl.constexpr, x_time: tl.constexpr, x_walk: tl.constexpr, kind: tl.constexpr,
    out_time: tl.constexpr, out_walk: tl.constexpr, is_exclusive: tl.constexpr, has_carries: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + width - 1) // width
    chunk = (tl.program_id(0) // column_programs).to(number)
    column = (tl.program_id(0) % column_programs).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    at = offset_of(column, x_walk) + x_time[0]
    to = offset_of(column, out_walk) + out_time[0]
    carry = tl.full((1, width), is_product, kind)
    if has_carries:
        carry = tl.load(carries + chunk * columns + column, mask=is_column, other=is_product)
    if is_exclusive:
        if chunk == 0:
            tl.store(out + to, carry.to(out.dtype.element_ty), mask=is_column)
    for start in range(0, span, steps):
        step = chunk * span + start + tl.arange(0, steps)[:, None]
        given = tl.load(x + at + step * x_time[1], mask=is_column & (step < length), other=is_product).to(kind)
        result = _combine(carry, _run(given, is_product), is_product)
        after = step + is_exclusive
        tl.store(out + to + after * out_time[1], result.to(out.dtype.element_ty), mask=is_column & (after < length))
        carry = last_of(result, steps).to(kind)


class RunningKernel:
    """Running sums or products; small integers wrap round, half precision is rounded when it is written."""

    def __init__(self, kernel: Running) -> None:
        axis, length = kernel.axis, kernel.shape[kernel.axis]
        line = self._line = timeline_of(itemsize_of(kernel.dtype), kernel.shape, axis, kernel.x, kernel.out)
        x_walk, out_walk = column_walks(kernel.shape, axis, kernel.x, kernel.out)
        self._is_empty, self._is_product = 0 in kernel.shape, int(kernel.op == "prod")
        kind = summed_in(kernel.dtype)
        self.scratch = [(kind, line.chunks * line.columns)] * 2 if line.chunks > 1 else []
        self._reading = (
            *line.constants, self._is_product, in_time(kernel.x, axis, length, kernel.reverse), x_walk,
            language_type(kind),
        )  # fmt: skip
        self._writing = (
            in_time(kernel.out, axis, length, kernel.reverse), out_walk, int(kernel.exclusive), line.chunks > 1,
        )  # fmt: skip

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x and out."""
        x, out = (without_bool(array) for array in arrays)
        if self._is_empty:
            return
        line, carries = self._line, out
        if line.chunks > 1:
            totals, carries = scratch
            _chunk_totals[line.grid](x, totals, *self._reading, **ONE_WARP)
            grid, constants = line.joining
            _chunk_carries[grid](totals, carries, *constants, self._is_product, **OPTIONS)
        _running[line.grid](x, carries, out, *self._reading, *self._writing, **ONE_WARP)
