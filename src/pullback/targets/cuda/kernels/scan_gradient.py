"""Gradients of linear recurrences: the same recurrence against time, and products with the states.

The cotangent of a state is that of the result, plus that of the next state times the factor there. That of a factor is
the cotangent of its state times the state before.
"""

from __future__ import annotations

from typing import Any, Sequence

import triton
import triton.language as tl

from ...axes import Shape
from ...custom_kernels import ScanGradient
from .addressing import OPTIONS, below, itemsize_of, offset_of
from .scan import Carries, behind, narrow, tile, wide
from .timeline import ONE_WARP, column_walks, in_time, last_of, timeline_of


@triton.jit
def _scan_gradient(  # type: ignore[no-untyped-def]
    g, a, h0, states, carries, grad_x, grad_a, grad_h0,
    length: tl.constexpr, columns: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    number: tl.constexpr, first: tl.constexpr, lag: tl.constexpr, g_time: tl.constexpr, g_walk: tl.constexpr,
    a_time: tl.constexpr, a_walk: tl.constexpr, has_h0: tl.constexpr, h0_walk: tl.constexpr, chunks: tl.constexpr,
    states_time: tl.constexpr, states_walk: tl.constexpr, makes_x: tl.constexpr, x_time: tl.constexpr,
    x_walk: tl.constexpr, makes_a: tl.constexpr, sums_a: tl.constexpr, grad_a_time: tl.constexpr,
    grad_a_walk: tl.constexpr, makes_h0: tl.constexpr, grad_h0_walk: tl.constexpr,
):  # fmt: skip
    """Steps are counted from the last one to the first. Of a sum, each chunk has a part."""
    column_programs: tl.constexpr = (columns + width - 1) // width
    chunk = (tl.program_id(0) // column_programs).to(number)
    column = (tl.program_id(0) % column_programs).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    g_at = offset_of(column, g_walk) + g_time[0]
    a_at = offset_of(column, a_walk) + a_time[0]
    carry = tl.zeros((1, width), tl.float64)
    if chunks > 1:
        carry = tl.load(carries + chunk * columns + column, mask=is_column, other=0)
    begin = tl.zeros((1, width), tl.float64)
    if has_h0:
        begin = wide(tl.load(h0 + offset_of(column, h0_walk), mask=is_column, other=0))
    total = tl.zeros((1, width), tl.float64)
    for start in range(0, span, steps):
        step = chunk * span + start + tl.arange(0, steps)[:, None]
        factors, reached = tile(g, a, step, g_at, a_at, is_column, length, g_time[1], a_time[1], first, lag)
        cotangent = behind(carry, factors, reached)
        carry = last_of(cotangent, steps)
        is_there = is_column & (step < length)
        if makes_x:
            to = offset_of(column, x_walk) + x_time[0] + step * x_time[1]
            tl.store(grad_x + to, narrow(cotangent, grad_x.dtype.element_ty), mask=is_there)
        if makes_a:
            at = offset_of(column, states_walk) + states_time[0] + (step + 1) * states_time[1]
            state = wide(tl.load(states + at, mask=is_column & (step + 1 < length), other=0))
            product = cotangent * tl.where(step == length - 1, begin, state)
            if has_h0 == 0:
                product = tl.where(step == length - 1, tl.zeros_like(product), product)
            if sums_a:
                total += tl.sum(tl.where(step < length, product, tl.zeros_like(product)), 0, keep_dims=True)
            else:
                to = offset_of(column, grad_a_walk) + grad_a_time[0] + step * grad_a_time[1]
                tl.store(grad_a + to, narrow(product, grad_a.dtype.element_ty), mask=is_there)
    if sums_a:
        to = offset_of(column, grad_a_walk)
        if chunks > 1:
            to = chunk * columns + column
        tl.store(grad_a + to, narrow(total, grad_a.dtype.element_ty), mask=is_column)
    if makes_h0:
        if chunk == chunks - 1:  # what lies beyond the first step leaves its cotangent as it is
            made = carry
            if length > 0:
                factor = tl.load(a + a_at + (length - 1) * a_time[1], mask=is_column, other=0)
                made = carry * wide(factor)
            to = offset_of(column, grad_h0_walk)
            tl.store(grad_h0 + to, narrow(made, grad_h0.dtype.element_ty), mask=is_column)


@triton.jit
def _sum_chunks(  # type: ignore[no-untyped-def]
    parts, out, columns: tl.constexpr, chunks: tl.constexpr, all_chunks: tl.constexpr, width: tl.constexpr,
    number: tl.constexpr, walk: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    chunk = tl.arange(0, all_chunks)[:, None]
    part = tl.load(parts + chunk.to(number) * columns + column, mask=is_column & (chunk < chunks), other=0)
    total = tl.sum(part, 0, keep_dims=True)
    tl.store(out + offset_of(column, walk), narrow(total, out.dtype.element_ty), mask=is_column)


class ScanGradientKernel:
    """The gradients of a linear recurrence that are asked for."""

    def __init__(self, kernel: ScanGradient) -> None:
        shape, axis, length = kernel.shape, kernel.axis, kernel.shape[kernel.axis]
        self._kernel = kernel
        self._makes_a = kernel.grad_a is not None
        self._sums_a = self._makes_a and kernel.sums_a
        made = kernel.grad_a if self._makes_a and not self._sums_a else None
        with_time = [one for one in (kernel.out, made, kernel.g, kernel.grad_x) if one is not None]
        line = self._line = timeline_of(itemsize_of(kernel.dtype), shape, axis, kernel.a, *with_time)
        self._is_empty = not line.columns
        # Those that are not there stand in as any other: they are not touched.
        given: list[Shape | None] = [
            kernel.a, kernel.h0, kernel.out, kernel.grad_a, kernel.grad_h0, kernel.grad_x, kernel.g,
        ]  # fmt: skip
        strides: list[Shape] = [kernel.g if one is None else one for one in given]
        *walks, x_walk, g_walk = column_walks(shape, axis, *strides)
        a_walk, h0_walk, states_walk, self._grad_a_walk, grad_h0_walk = walks
        a_time, _, states_time, grad_a_time, _, x_time, g_time = [
            in_time(one, axis, length, not kernel.reverse) for one in strides
        ]
        reading = (*line.constants, 1, 1, g_time, g_walk, a_time, a_walk)
        self._carries = Carries(line, reading, (False, h0_walk))  # cotangents begin with nothing
        self._constants = (
            *reading, kernel.h0 is not None, h0_walk, line.chunks, states_time, states_walk,
            kernel.grad_x is not None, x_time, x_walk, self._makes_a, self._sums_a, grad_a_time, self._grad_a_walk,
            kernel.grad_h0 is not None, grad_h0_walk,
        )  # fmt: skip
        self.scratch = list(self._carries.scratch)
        self._has_parts = self._sums_a and line.chunks > 1
        if self._has_parts:
            self.scratch.append(("float64", line.chunks * line.columns))

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on g, a, h0, out, grad_x, grad_a and grad_h0, as far as they are there."""
        if self._is_empty:
            return
        kernel, line = self._kernel, self._line
        rest = iter(arrays)
        g, a = next(rest), next(rest)
        wanted = (kernel.h0, kernel.out, kernel.grad_x, kernel.grad_a, kernel.grad_h0)
        h0, states, grad_x, grad_a, grad_h0 = [g if one is None else next(rest) for one in wanted]
        carries = self._carries.launch(g, a, h0, scratch)
        parts = scratch[3] if self._has_parts else grad_a
        _scan_gradient[line.grid](g, a, h0, states, carries, grad_x, parts, grad_h0, *self._constants, **ONE_WARP)
        if self._has_parts:
            grid, constants = line.joining
            _sum_chunks[grid](parts, grad_a, *constants, self._grad_a_walk, **OPTIONS)
