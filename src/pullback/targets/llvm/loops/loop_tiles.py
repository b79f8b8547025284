"""Loops that read arrays across: neighbours in such an array are in neighbouring rows, not in one row.

Rows are taken as many at a time as a vector has lanes. Of an array that lies across, a square of elements is read
row by row of its own, turned in registers, and put in memory of the thread's own, from where vectors along the loop's
rows are read.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ..code import I64, ITEMSIZE, STORED, Code
from ..registers import from_memory
from ..strided import below, load_lanes, store_lanes, transposed
from .column_sums import Place
from .plan import AT_ELEMENT, Plan
from .writer import LoopWriter, smaller

#: Lanes at most: turning takes a number of instructions that grows faster than they do.
TILE = 16


def reads_across(plan: Plan) -> list[int]:
    """The reads of a loop that lie across, if it is one to be written in tiles."""
    loop = plan.loop
    if plan.by_rows or not loop.outer or len(loop.inner) != 1 or plan.total_writes or plan.column_writes:
        return []
    if len(plan.passes) != 1 or plan.passes[0].reductions or plan.row_writes:
        return []
    if loop.outer[-1] < TILE // 2 or loop.inner[0] < TILE // 2:
        return []
    found = []
    for step in plan.passes[0].steps:
        if loop.steps[step].op == "read" and plan.level[step] == AT_ELEMENT:
            *_, across, along = loop.reads[loop.steps[step].index].strides
            if across == 1 and abs(along) > 1:
                found.append(step)
    return found


class TileWriter(LoopWriter):
    """Writes a loop of which some reads lie across; a unit of work is a group of `width` rows."""

    def __init__(self, code: Code, plan: Plan, width: int, shared: bool, across: list[int]) -> None:
        super().__init__(code, plan, width, 0, shared)
        self.tiles: dict[int, Any] = {}
        for step in across:
            dtype = plan.loop.steps[step].dtype
            self.tiles[step] = self._memory(STORED[dtype], width * width * ITEMSIZE[dtype])
        self.tile_row: Any = None

    def units(self) -> int:
        outer = self.loop.outer
        return prod(outer[:-1]) * -(-outer[-1] // self.width)

    def _one_row(self, row: Any) -> None:
        """A group of rows: tile after tile along them."""
        b, code, loop, width = self.b, self.code, self.loop, self.width
        axis = len(loop.outer) - 1
        sizes = (*loop.outer[:-1], -(-loop.outer[-1] // width))
        self._find_row(row, sizes)
        first = b.mul(self.axis_index[axis], I64(width))
        count = smaller(b, b.sub(I64(loop.outer[axis]), first), I64(width))
        self.axis_index[axis] = first
        corners = [self._moved(self.bases[i], access, range(axis + 1)) for i, access in enumerate(self.accesses)]
        (only,) = self.plan.passes
        with code.loop(I64(0), I64(self.length), width) as (column,):
            left = smaller(b, b.sub(I64(self.length), column), I64(width))
            for step in self.tiles:
                self._turn(step, corners, column, count, left)
            mask = below(b, column, I64(self.length), width) if self.length % width else None
            with code.loop(I64(0), count) as (self.tile_row,):
                self.axis_index[axis] = b.add(first, self.tile_row)
                self._enter_row()
                self.line_pointers = self.row_pointers
                self._row_steps(only.rows)
                self._element(only, [], Place(column, column, mask))

    def _turn(self, step: int, corners: list[Any], column: Any, rows: Any, columns: Any) -> None:
        """Fill a tile: its row r and column c is the element at row r of the group, column `column` + c."""
        b, code, width = self.b, self.code, self.width
        array = self.loop.steps[step].index
        pointer, tile = corners[array], self.tiles[step]
        stride = self.accesses[array].strides[-1]
        start = b.mul(column, I64(stride))
        whole = b.icmp_signed("==", b.add(rows, columns), I64(2 * width))
        with b.if_else(whole) as (then, otherwise):
            with then:
                lines = [
                    load_lanes(b, pointer, b.add(start, I64(line * stride)), 1, width) for line in range(width)
                ]  # fmt: skip
                for number, line in enumerate(transposed(b, lines)):
                    store_lanes(b, line, tile, I64(number * width), 1)
            with otherwise, code.loop(I64(0), columns) as (line,):
                at = b.add(start, b.mul(line, I64(stride)))
                with code.loop(I64(0), rows) as (row,):
                    value = load_lanes(b, pointer, b.add(at, row), 1, 1)
                    store_lanes(b, value, tile, b.add(b.mul(row, I64(width)), line), 1)

    def _read(self, number: int, place: Place | None) -> Any:
        if number not in self.tiles:
            return super()._read(number, place)
        value = load_lanes(self.b, self.tiles[number], self.b.mul(self.tile_row, I64(self.width)), 1, self.width)
        return from_memory(self.b, value, self.accesses[self.steps[number].index].dtype)
