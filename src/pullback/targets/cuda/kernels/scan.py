"""Linear recurrences along an axis: h[t] = a[t] h[t-1] + x[t].

Steps of a tile are joined by an associative scan: a stretch of steps is a factor, the product of theirs, and the state
that it leaves behind a state of zero. Both are float64: products of factors of float32 do not overflow before the
states themselves do.
"""

from __future__ import annotations

from typing import Any, Sequence

import triton
import triton.language as tl

from ...custom_kernels import Scan
from .addressing import OPTIONS, below, itemsize_of, offset_of
from .timeline import ONE_WARP, Timeline, column_walks, in_time, last_of, timeline_of


@triton.jit
def wide(x):
    """Numbers as float64; those of half precision by way of float32, as everywhere."""
    if x.dtype.primitive_bitwidth < 32:
        return x.to(tl.float32).to(tl.float64)
    else:
        return x.to(tl.float64)


@triton.jit
def narrow(x, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """Numbers of float64 as they are written."""
    if kind.primitive_bitwidth < 32:
        return x.to(tl.float32).to(kind)
    else:
        return x.to(kind)


@triton.jit
def linear(factor, state, next_factor, next_state):
    """Two stretches as one. A state of zero stays zero, however large the product of the factors behind it."""
    is_nothing = (state == 0) & (next_factor == next_factor)
    return factor * next_factor, tl.where(is_nothing, next_state, next_factor * state + next_state)


@triton.jit
def behind(carry, factors, states):
    """The states of a tile that begins with `carry`."""
    is_nothing = (carry == 0) & (factors == factors)
    return tl.where(is_nothing, states, factors * carry + states)


@triton.jit
def tile(  # type: ignore[no-untyped-def]
    x, a, step, x_at, a_at, is_column, length: tl.constexpr, x_step: tl.constexpr, a_step: tl.constexpr,
    first: tl.constexpr, lag: tl.constexpr,
):  # fmt: skip
    """Factors and states from the beginning of a tile to each of its steps.

    Steps before `first` have a factor of zero, which is not read; each has that of `lag` steps before it. What lies
    beyond the end changes nothing.
    """
    is_there = is_column & (step < length)
    given = wide(tl.load(x + x_at + step * x_step, mask=is_there, other=0))
    factor = wide(tl.load(a + a_at + (step - lag) * a_step, mask=is_there & (step >= first), other=0))
    factor = tl.where(step < length, factor, tl.full(factor.shape, 1, tl.float64))
    return tl.associative_scan((factor, given), 0, linear)


@triton.jit
def _chunk_totals(  # type: ignore[no-untyped-def]
    x, a, factors, states,
    length: tl.constexpr, columns: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    number: tl.constexpr, first: tl.constexpr, lag: tl.constexpr, x_time: tl.constexpr, x_walk: tl.constexpr,
    a_time: tl.constexpr, a_walk: tl.constexpr,
):  # fmt: skip
    """The factor and the state that each chunk comes to."""
    column_programs: tl.constexpr = (columns + width - 1) // width
    chunk = (tl.program_id(0) // column_programs).to(number)
    column = (tl.program_id(0) % column_programs).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    x_at = offset_of(column, x_walk) + x_time[0]
    a_at = offset_of(column, a_walk) + a_time[0]
    factor = tl.full((1, width), 1, tl.float64)
    state = tl.zeros((1, width), tl.float64)
    for start in range(0, span, steps):
        step = chunk * span + start + tl.arange(0, steps)[:, None]
        along, reached = tile(x, a, step, x_at, a_at, is_column, length, x_time[1], a_time[1], first, lag)
        factor, state = linear(factor, state, last_of(along, steps), last_of(reached, steps))
    tl.store(factors + chunk * columns + column, factor, mask=is_column)
    tl.store(states + chunk * columns + column, state, mask=is_column)


@triton.jit
def _chunk_carries(  # type: ignore[no-untyped-def]
    factors, states, h0, carries, columns: tl.constexpr, chunks: tl.constexpr, all_chunks: tl.constexpr,
    width: tl.constexpr, number: tl.constexpr, has_h0: tl.constexpr, h0_walk: tl.constexpr,
):  # fmt: skip
    """The state that each chunk begins with."""
    column = tl.program_id(0).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    chunk = tl.arange(0, all_chunks)[:, None]
    is_there = is_column & (chunk < chunks)
    at = chunk.to(number) * columns + column
    factor = tl.load(factors + at, mask=is_there, other=1)
    state = tl.load(states + at, mask=is_there, other=0)
    factor, state = tl.associative_scan((factor, state), 0, linear)
    begin = tl.zeros((1, width), tl.float64)
    if has_h0:
        begin = wide(tl.load(h0 + offset_of(column, h0_walk), mask=is_column, other=0))
    tl.store(carries + column, begin, mask=is_column)
    tl.store(carries + at + columns, behind(begin, factor, state), mask=is_column & (chunk + 1 < chunks))


@triton.jit
def _scan(  # type: ignore[no-untyped-def]
    x, a, h0, carries, out,
    length: tl.constexpr, columns: tl.constexpr, steps: tl.constexpr, width: tl.constexpr, span: tl.constexpr,
    number: tl.constexpr, first: tl.constexpr, lag: tl.constexpr, x_time: tl.constexpr, x_walk: tl.constexpr,
    a_time: tl.constexpr, a_walk: tl.constexpr, has_h0: tl.constexpr, h0_walk: tl.constexpr, has_carries: tl.constexpr,
    out_time: tl.constexpr, out_walk: tl.constexpr,
):  # fmt: skip
    column_programs: tl.constexpr = (columns + width - 1) // width
    chunk = (tl.program_id(0) // column_programs).to(number)
    column = (tl.program_id(0) % column_programs).to(number) * width + tl.arange(0, width)[None, :]
    is_column = below(column, columns, width)
    x_at = offset_of(column, x_walk) + x_time[0]
    a_at = offset_of(column, a_walk) + a_time[0]
    to = offset_of(column, out_walk) + out_time[0]
    carry = tl.zeros((1, width), tl.float64)
    if has_carries:
        carry = tl.load(carries + chunk * columns + column, mask=is_column, other=0)
    elif has_h0:
        carry = wide(tl.load(h0 + offset_of(column, h0_walk), mask=is_column, other=0))
    for start in range(0, span, steps):
        step = chunk * span + start + tl.arange(0, steps)[:, None]
        factors, states = tile(x, a, step, x_at, a_at, is_column, length, x_time[1], a_time[1], first, lag)
        state = behind(carry, factors, states)
        tl.store(out + to + step * out_time[1], narrow(state, out.dtype.element_ty), mask=is_column & (step < length))
        carry = last_of(state, steps)


class Carries:
    """The state that each chunk of a timeline begins with; one of a single chunk needs none."""

    def __init__(self, line: Timeline, reading: tuple[Any, ...], start: tuple[Any, ...]) -> None:
        self._line, self._reading, self._start = line, reading, start
        elements = line.chunks * line.columns
        self.scratch = [("float64", elements)] * 3 if line.chunks > 1 else []

    def launch(self, x: Any, a: Any, h0: Any, scratch: Sequence[Any]) -> Any:
        """The array of these states."""
        line = self._line
        if line.chunks == 1:
            return x
        factors, states, carries = scratch[:3]
        _chunk_totals[line.grid](x, a, factors, states, *self._reading, **ONE_WARP)
        grid, constants = line.joining
        _chunk_carries[grid](factors, states, h0, carries, *constants, *self._start, **OPTIONS)
        return carries


class ScanKernel:
    """A linear recurrence."""

    def __init__(self, kernel: Scan) -> None:
        shape, axis, length = kernel.shape, kernel.axis, kernel.shape[kernel.axis]
        line = self._line = timeline_of(itemsize_of(kernel.dtype), shape, axis, kernel.x, kernel.a, kernel.out)
        self._is_empty, self._has_h0 = 0 in shape, kernel.h0 is not None
        h0 = kernel.h0 if kernel.h0 is not None else kernel.x
        x_walk, a_walk, h0_walk, out_walk = column_walks(shape, axis, kernel.x, kernel.a, h0, kernel.out)
        reading = (
            *line.constants, 0 if self._has_h0 else 1, 0, in_time(kernel.x, axis, length, kernel.reverse), x_walk,
            in_time(kernel.a, axis, length, kernel.reverse), a_walk,
        )  # fmt: skip
        start = (self._has_h0, h0_walk)
        self._carries = Carries(line, reading, start)
        self._constants = (
            *reading, *start, line.chunks > 1, in_time(kernel.out, axis, length, kernel.reverse), out_walk,
        )  # fmt: skip
        self.scratch = self._carries.scratch

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on x, a, h0 (if there is one) and out."""
        x, a, *rest, out = arrays
        if self._is_empty:
            return
        h0 = rest[0] if self._has_h0 else x
        carries = self._carries.launch(x, a, h0, scratch)
        _scan[self._line.grid](x, a, h0, carries, out, *self._constants, **ONE_WARP)
