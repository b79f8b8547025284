"""Code for a loop, following its plan: rows, passes over a row, lines, vectors of elements."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any, Callable, Iterator

from ..code import F64, I64, Code
from ..registers import FLOATS, converted, to_memory
from ..strided import below, first_or_all, store_lanes
from .accumulators import BLOCK, Reduction, kind_of
from .column_sums import ColumnsInMemory, ColumnsInRegisters, Place
from .loop_values import LoopValues, memory_type
from .plan import AT_LINE, AT_ROW, Pass, Plan, register_bytes

#: Rows whose elements are added up in the first level of sums over rows.
ROW_BLOCK = 64


class LoopWriter(LoopValues):
    """Writes the function of one loop; `shared`: the work is given by begin and end, else it is all that there is."""

    def __init__(self, code: Code, plan: Plan, width: int, vectors: int, shared: bool) -> None:
        super().__init__(code, plan, width, vectors)
        self.shared = shared

    def write(self) -> None:
        """The whole function."""
        plan, loop = self.plan, self.loop
        total_iterations = plan.rows * self.per_row
        self.totals = []
        for number_ in plan.total_writes:
            step = self.steps[loop.writes[number_].step]
            two_level = total_iterations > BLOCK
            self.totals.append(Reduction(self.b, kind_of(step.op), step.dtype, self.width, two_level))
        self.columns: list[Any] = []
        for number_ in plan.column_writes:
            dtype = self.steps[loop.writes[number_].step].dtype
            self.columns.append(self._column_sum(dtype, plan.rows > ROW_BLOCK))
        for reduction in (*self.totals, *self.columns):
            reduction.begin(self.b)
        if self.by_elements:
            self._elements()
        elif self.shared:
            self._rows(self.code.begin, self.code.end)
        else:
            with self.b.if_then(self.b.icmp_signed("<", self.code.begin, self.code.end)):
                self._rows(I64(0), I64(self.units()))
        self._write_reductions()
        self.code.end_function()

    @property
    def by_elements(self) -> bool:
        """Whether the only row is what is shared."""
        return not self.loop.outer and not any(one.reductions for one in self.plan.passes)

    def units(self) -> int:
        """Into how much the work can be cut: rows, groups of rows, or elements."""
        loop = self.loop
        if self.by_elements:
            return self.length
        if self.plan.by_rows:
            return prod(loop.outer[:-1]) * -(-loop.outer[-1] // self.width)
        return self.plan.rows

    def _elements(self) -> None:
        if self.shared:
            self._row(self.code.begin, self.code.end)
        else:
            with self.b.if_then(self.b.icmp_signed("<", self.code.begin, self.code.end)):
                self._row(I64(0), I64(self.length))

    def _rows(self, begin: Any, end: Any) -> None:
        b, code = self.b, self.code
        blocks = [r for r in (*self.totals, *self.columns) if r.two_level]
        if not blocks:
            with code.loop(begin, end) as (row,):
                self._one_row(row)
            return
        with code.loop(begin, end, ROW_BLOCK) as (start,):
            with code.loop(start, smaller(b, b.add(start, I64(ROW_BLOCK)), end)) as (row,):
                self._one_row(row)
            for reduction in blocks:
                reduction.fold(b)

    def _one_row(self, row: Any) -> None:
        """Find the row's place from its number, and compute it."""
        b, loop = self.b, self.loop
        if not self.plan.by_rows:
            self._find_row(row, loop.outer)
        else:
            axis = len(loop.outer) - 1
            self._find_row(row, (*loop.outer[:-1], -(-loop.outer[-1] // self.width)))
            first = b.mul(self.axis_index[axis], I64(self.width))
            self.axis_index[axis] = first
            if loop.outer[axis] % self.width:
                self.group_mask = below(b, first, I64(loop.outer[axis]), self.width)
        self._row(I64(0), I64(self.length))

    def _find_row(self, row: Any, sizes: tuple[int, ...]) -> None:
        """The index along each axis of the rows from a row's number."""
        b = self.b
        for axis in range(len(sizes) - 1, 0, -1):
            self.axis_index[axis] = b.urem(row, I64(sizes[axis]))
            row = b.udiv(row, I64(sizes[axis]))
        if sizes:
            self.axis_index[0] = row

    def _row(self, begin: Any, end: Any) -> None:
        """All passes over a row, then what is written once for it."""
        b, plan, loop = self.b, self.plan, self.loop
        self._enter_row()
        for values in self.written_out:
            values.clear()
        for one in plan.passes:
            self._row_steps(one.rows)
            reductions = []
            for step in one.reductions:
                kind = kind_of(self.steps[step].op)
                reductions.append(Reduction(b, kind, self.steps[step].dtype, self.width, self.per_row > BLOCK))
            for reduction in reductions:
                reduction.begin(b)
            folded = [r for r in reductions if r.two_level]
            if one.outputs and (self.per_row > 4 or self.by_elements):
                folded += [total for total in self.totals if total.two_level]
            self._each_vector(begin, end, one, partial(self._element, one, reductions), folded)
            for step, reduction in zip(one.reductions, reductions):
                self.row[step] = reduction.lanes(b) if plan.by_rows else reduction.result(b)
        written = [loop.writes[number_] for number_ in plan.row_writes]
        needed = sorted(plan.closure([write.step for write in written], set(self.row)))
        self._row_steps([step for step in needed if plan.level[step] == AT_ROW])
        for number_, write in zip(plan.row_writes, written):
            self._store(number_, self.row[write.step], self.row_pointers, I64(0), self.group_mask)

    def _row_steps(self, steps: list[int]) -> None:
        for step in steps:
            if step not in self.row:
                self.row[step] = self._computed(step, self.row, None)

    # -- along a row ------------------------------------------------------------------------------

    def _each_vector(
        self, begin: Any, end: Any, one: Pass | None, body: Callable[[Place], None], folded: list[Reduction]
    ) -> None:
        """`body` for each vector of a row; `folded` are the reductions whose blocks are to be ended on the way."""
        b, code, loop = self.b, self.code, self.loop
        with self._lines() as linear:
            self.line_pointers = [
                self._moved(pointer, access, range(self.outer_axes, len(loop.outer) + len(loop.inner) - 1))
                for pointer, access in zip(self.row_pointers, self.accesses)
            ]
            self.line = {}
            if one is not None:
                for step in one.steps:
                    if self.plan.level[step] == AT_LINE:
                        self.line[step] = self._computed(step, {**self.row, **self.line}, None)
            if folded and self.per_line > BLOCK:
                with code.loop(begin, end, BLOCK * self.step) as (start,):
                    stop = smaller(b, b.add(start, I64(BLOCK * self.step)), end)
                    self._along(start, stop, linear, body, static=False)
                    for reduction in folded:
                        reduction.fold(b)
            else:
                self._along(begin, end, linear, body, static=not (self.by_elements and self.shared))
                for reduction in folded:
                    reduction.fold(b)

    @contextmanager
    def _lines(self) -> Iterator[Any]:
        """Loops over all axes of a row but the last; gives the linear index of the line's first element."""
        inner = self.loop.inner

        @contextmanager
        def nested(axis: int, linear: Any) -> Iterator[Any]:
            if axis >= len(inner) - 1:
                yield linear
                return
            with self.code.loop(I64(0), I64(inner[axis])) as (index,):
                self.axis_index[self.outer_axes + axis] = index
                step = I64(prod(inner[axis + 1 :]))
                with nested(axis + 1, self.b.add(linear, self.b.mul(index, step))) as innermost:
                    yield innermost

        with nested(0, I64(0)) as linear:
            yield linear

    def _along(self, begin: Any, end: Any, linear: Any, body: Callable[[Place], None], static: bool) -> None:
        """`body` for the vectors from begin to end of a line; `static`: these are the line's own."""
        b, code, width, length = self.b, self.code, self.width, self.length

        def at(index: Any, mask: Any, number_: int = 0) -> None:
            place = b.add(linear, index)
            if self.plan.by_rows:
                place, mask = b.mul(place, I64(width)), self.group_mask
            body(Place(index, place, mask, number_))

        if self.vectors:
            for number_ in range(self.vectors):
                at(I64(number_ * width), first_or_all(width, length - number_ * width), number_)
        elif self.step == 1 or length % width == 0:
            with code.loop(begin, end, self.step) as (index,):
                at(index, None)
        elif static and length < width:
            if length:
                at(I64(0), first_or_all(width, length))
        elif self.plan.expensive() and length % width > 1:  # one lane left over is stored apart: see `store_lanes`
            with code.loop(begin, end, width) as (index,):
                at(index, below(b, index, end, width))
        elif static:
            full = length - length % width
            with code.loop(begin, I64(full), width) as (index,):
                at(index, None)
            at(I64(full), first_or_all(width, length - full))
        else:
            full = b.add(begin, b.and_(b.sub(end, begin), I64(-width)))
            with code.loop(begin, full, width) as (index,):
                at(index, None)
            with b.if_then(b.icmp_signed("<", full, end)):
                at(full, below(b, full, end, width))

    def _element(self, one: Pass, reductions: list[Reduction], place: Place) -> None:
        """One vector of elements in one pass: compute, reduce, and last of all write."""
        b, plan, loop = self.b, self.plan, self.loop
        own = self.written_out[place.vector] if self.vectors else {}
        values = {**self.row, **self.line, **own}
        for step in one.finds:
            if step not in values:
                values[step] = self._found(step, place)
        for step in one.steps:
            if step not in values:
                values[step] = self._computed(step, values, place)
                if step in one.keeps and not self.vectors:
                    self._keep(step, values[step], place)
        if self.vectors:
            own.update({step: values[step] for step in (*one.steps, *one.finds)})
        for step, reduction in zip(one.reductions, reductions):
            self._take(reduction, step, values, None if plan.by_rows else place.mask)
        if not one.outputs:
            return
        for number_, total in zip(plan.total_writes, self.totals):
            self._take(total, loop.writes[number_].step, values, place.mask)
        for number_, column in zip(plan.column_writes, self.columns):
            column.take(b, self._operand(self.steps[loop.writes[number_].step], values), place)
        for number_ in plan.element_writes:
            last = self.accesses[len(loop.reads) + number_].strides[-1] if loop.inner else 0
            index = b.mul(place.index, I64(last))
            self._store(number_, values[loop.writes[number_].step], self.line_pointers, index, place.mask)

    def _take(self, reduction: Reduction, step: int, values: dict[int, Any], mask: Any) -> None:
        reduction.take(self.b, self._operand(self.steps[step], values), mask)

    # -- reductions over rows ---------------------------------------------------------------------

    def _column_sum(self, dtype: str, two_level: bool) -> Any:
        if self.vectors:
            sums = [Reduction(self.b, "sum", dtype, self.width, two_level) for _ in range(self.vectors)]
            return ColumnsInRegisters(sums, dtype)
        two_level = two_level and dtype in FLOATS
        first = self._memory(memory_type(dtype), self.plan.columns * register_bytes(dtype))
        second = self._memory(F64, self.plan.columns * 8) if two_level else None
        return ColumnsInMemory(self.code, self.plan.columns, self.width, dtype, first, second)

    def _write_reductions(self) -> None:
        b, plan, loop = self.b, self.plan, self.loop
        for number_, total in zip(plan.total_writes, self.totals):
            write = loop.writes[number_]
            dtype = write.access.dtype
            value = total.result(b)
            made = "bool" if total.kind in ("any", "all") else total.dtype
            if made != dtype:
                value = converted(b, value, made, dtype)
            array = len(loop.reads) + number_
            store_lanes(b, to_memory(b, value, dtype), self.bases[array], self.code.part, 0)
        if not plan.column_writes:
            return
        for axis in range(self.outer_axes):
            self.axis_index[axis] = I64(0)
        self.row_pointers = list(self.bases)
        for number_ in plan.column_writes:
            array = len(loop.reads) + number_
            room = b.mul(self.code.part, I64(plan.columns))
            self.row_pointers[array] = b.gep(self.bases[array], [room])

        def body(place: Place) -> None:
            for number_, column in zip(plan.column_writes, self.columns):
                write = loop.writes[number_]
                value = column.lanes(b, place)
                if column.dtype != write.access.dtype:
                    value = converted(b, value, column.dtype, write.access.dtype)
                array = len(loop.reads) + number_
                stride = write.access.strides[-1]
                index = b.mul(place.index, I64(stride))
                stored = to_memory(b, value, write.access.dtype)
                store_lanes(b, stored, self.line_pointers[array], index, stride, place.mask)

        self._each_vector(I64(0), I64(self.length), None, body, [])


def smaller(b: Any, x: Any, y: Any) -> Any:
    """The smaller of two indices."""
    return b.select(b.icmp_signed("<", x, y), x, y)
