"""How work along an axis of time is cut: columns are all other axes, and a program has some of these.

A program goes over time a tile of steps after the other. Where there are few columns, time is cut into chunks as well,
each for programs of its own: what chunks come to is computed first, then what each begins with. How it is cut depends
on shapes alone, and so do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import triton
import triton.language as tl

from ...axes import Shape
from .addressing import OPTIONS, Walk, block_of, number_type, power, programs, walks_in_order

_TILE = 1024  # elements of a tile
_ROW = 512  # bytes of a tile's row, where neighbours in memory are columns: each thread has all steps of some columns
_STEPS = 128  # of a tile, where neighbours in memory are steps
_MOST_STEPS = 512
_ENOUGH = 264  # programs that keep a GPU busy enough: two for each multiprocessor of the largest
_BUSY = 1056  # those that keep it as busy as it can be
_MOST_CHUNKS = 256
_LONG = 16  # tiles that are not worth more launches
_SPAN = 4  # tiles of a chunk, at least: what it comes to is written and read again

#: How kernels whose programs have one tile at a time are compiled: steps of a warp are joined without waiting.
ONE_WARP: dict[str, Any] = {**OPTIONS, "num_warps": 1}


@dataclass(frozen=True)
class Timeline:
    """A time of `length` steps for a number of columns: chunks of `span` steps, in tiles of steps by columns."""

    length: int
    columns: int
    tile_steps: int
    tile_columns: int
    chunks: int
    span: int
    number: Any

    @property
    def column_programs(self) -> int:
        return programs(self.columns, self.tile_columns)

    @property
    def grid(self) -> tuple[int]:
        """A program for each chunk and block of columns."""
        return (self.chunks * self.column_programs,)

    @property
    def joining(self) -> tuple[tuple[int], tuple[Any, ...]]:
        """Programs that have all chunks of some columns at once, and what their kernels take."""
        all_chunks = power(self.chunks)
        width = max(_TILE // all_chunks, 1)
        return (programs(self.columns, width),), (self.columns, self.chunks, all_chunks, width, self.number)

    @property
    def constants(self) -> tuple[Any, ...]:
        """What kernels take first."""
        return self.length, self.columns, self.tile_steps, self.tile_columns, self.span, self.number


@triton.jit
def last_of(x, steps: tl.constexpr):  # type: ignore[no-untyped-def]
    """The last step of a tile."""
    is_last = tl.arange(0, steps)[:, None] == steps - 1
    return tl.sum(tl.where(is_last, x, tl.zeros_like(x)), 0, keep_dims=True)


def without_time(strides: Shape, axis: int) -> Shape:
    return (*strides[:axis], *strides[axis + 1 :])


def timeline_of(itemsize: int, shape: Shape, axis: int, *strides: Shape) -> Timeline:
    """How arrays of a shape are cut; neighbours in memory are those of the last one."""
    length, columns = shape[axis], prod(without_time(shape, axis))
    number = number_type(*((shape, one) for one in strides))
    most_columns = max(_ROW // itemsize, 1)
    if abs(strides[-1][axis]) == 1 and length > 1:
        most_columns = max(_TILE // min(_STEPS, power(length)), 1)
    tile_columns = block_of(columns, most_columns, 16)
    tile_steps = min(max(_TILE // tile_columns, 1), _MOST_STEPS, power(length))
    chunks, busy = 1, max(programs(columns, tile_columns), 1)
    if busy < _ENOUGH and length > _LONG * tile_steps:
        chunks = min(programs(length, _SPAN * tile_steps), programs(_BUSY, busy), _MOST_CHUNKS)
    span = programs(programs(length, chunks), tile_steps) * tile_steps
    chunks = max(programs(length, span), 1) if span else 1
    return Timeline(length, columns, tile_steps, tile_columns, chunks, span, number)


def column_walks(shape: Shape, axis: int, *strides: Shape) -> tuple[Walk, ...]:
    """Walks over the columns of several arrays, in the order of the last one."""
    return walks_in_order(without_time(shape, axis), *(without_time(one, axis) for one in strides))


def in_time(strides: Shape, axis: int, length: int, is_backwards: bool) -> tuple[int, int]:
    """Where the first step of an array lies, and how far apart steps are."""
    step = strides[axis]
    return (max(length - 1, 0) * step, -step) if is_backwards else (0, step)
