"""Values while a loop runs: read, computed, kept for later, written; and where in the arrays it is."""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from ...kernels import Access
from ..code import I64, STORED, Code
from ..mathematics.operations import scalar_operation
from ..registers import REGISTER, computed, converted, from_memory, number, spread, to_memory
from ..strided import iota, load_lanes, store_lanes
from .accumulators import kind_of
from .column_sums import Place
from .plan import AT_ELEMENT, AT_ROW, Plan, register_bytes


class LoopValues:
    """The values of a loop's steps at the present row, line and vector.

    `width` lanes; `vectors` is how many of them a row is written out as, 0 for a loop over the row's vectors.
    """

    def __init__(self, code: Code, plan: Plan, width: int, vectors: int) -> None:
        self.code = code
        self.b: Any = code.b
        self.plan = plan
        self.loop = plan.loop
        self.steps = plan.loop.steps
        self.width = width
        self.vectors = vectors
        self.scratch = 0
        loop = plan.loop
        self.outer_axes = len(loop.outer)
        self.length = loop.inner[-1] if loop.inner else 1
        self.accesses: list[Access] = [*loop.reads, *(write.access for write in loop.writes)]
        self.bases = [code.pointer(i, access.dtype) for i, access in enumerate(self.accesses)]
        self.step = 1 if plan.by_rows else width  # of the loop along a row's last axis
        self.per_line = -(-self.length // self.step)
        self.per_row = self.per_line * prod(loop.inner[:-1])
        self.group_mask: Any = None
        self.axis_index: dict[int, Any] = {}
        self.row: dict[int, Any] = {}  # values of the row
        self.line: dict[int, Any] = {}  # values of the line
        self.row_pointers: list[Any] = []
        self.line_pointers: list[Any] = []
        self.written_out: list[dict[int, Any]] = [{} for _ in range(vectors)]  # values of each of a row's vectors
        self.kept: dict[int, Any] = {}
        for one in plan.passes:
            for step in one.keeps:
                if not vectors:
                    room = plan.columns * (width if plan.by_rows else 1)
                    dtype = loop.steps[step].dtype
                    self.kept[step] = self._memory(memory_type(dtype), room * register_bytes(dtype))

    def _computed(self, number_: int, values: dict[int, Any], place: Place | None) -> Any:
        """A step's value; `place` is None for those of rows and lines."""
        b, step = self.b, self.steps[number_]
        if step.op == "read":
            return self._read(number_, place)
        if step.op == "number":
            return number(step.dtype, step.number)
        if step.op == "position":
            return self._position(number_, place)
        operands = [values[operand] for operand in step.operands]
        dtypes = [self.steps[operand].dtype for operand in step.operands]
        if any(isinstance(operand.type, ir.VectorType) for operand in operands):
            operands = [spread(b, operand, self.width) for operand in operands]
        if step.op == "convert":
            return converted(b, operands[0], dtypes[0], step.dtype)
        return scalar_operation(b, step.op, operands, computed(step.dtype), [computed(dtype) for dtype in dtypes])

    def _read(self, number_: int, place: Place | None) -> Any:
        b, plan = self.b, self.plan
        array = self.steps[number_].index
        access = self.accesses[array]
        pointers = self.row_pointers if plan.level[number_] == AT_ROW else self.line_pointers
        index, mask = I64(0), self.group_mask
        if plan.level[number_] == AT_ELEMENT:
            assert place is not None
            index, mask = b.mul(place.index, I64(access.strides[-1])), place.mask
        width = self.width if plan.varies(number_) else 1
        stride = access.strides[plan.lane_axis] if width > 1 else 0
        return from_memory(b, load_lanes(b, pointers[array], index, stride, width, mask), access.dtype)

    def _position(self, number_: int, place: Place | None) -> Any:
        b, step, plan = self.b, self.steps[number_], self.plan
        last = len(self.loop.outer) + len(self.loop.inner) - 1
        inner = step.index == last and step.index >= self.outer_axes
        index = place.index if inner and place is not None else self.axis_index[step.index]
        if step.index == plan.lane_axis and self.width > 1:
            index = b.add(spread(b, index, self.width), iota(self.width))
        return index if step.dtype == "int64" else converted(b, index, "int64", step.dtype)

    def _store(self, number_: int, value: Any, pointers: list[Any], index: Any, mask: Any) -> None:
        b, write = self.b, self.loop.writes[number_]
        source, dtype = self.steps[write.step].dtype, write.access.dtype
        if source != dtype:
            value = converted(b, value, source, dtype)
        stride = 0
        if write.access.strides and self.plan.lane_axis >= 0:
            stride = write.access.strides[self.plan.lane_axis]
        per_lane = index is not None and (self.plan.by_rows or number_ in self.plan.element_writes)
        if per_lane:
            value = spread(b, value, self.width)
        store_lanes(b, to_memory(b, value, dtype), pointers[len(self.loop.reads) + number_], index, stride, mask)

    def _enter_row(self) -> None:
        """Nothing is known of the row yet but where it is."""
        self.row = {}
        self.row_pointers = [
            self._moved(base, access, range(self.outer_axes)) for base, access in zip(self.bases, self.accesses)
        ]

    def _moved(self, pointer: Any, access: Access, axes: range) -> Any:
        """A pointer moved to the present index along some axes."""
        b, offset = self.b, None
        for axis in axes:
            if access.strides[axis]:
                part = b.mul(self.axis_index[axis], I64(access.strides[axis]))
                offset = part if offset is None else b.add(offset, part)
        return pointer if offset is None else b.gep(pointer, [offset])

    # -- memory of the thread's own ---------------------------------------------------------------

    def _memory(self, kind: Any, nbytes: int) -> Any:
        place = self.b.gep(self.code.scratch, [I64(self.scratch)])
        self.scratch += -(-nbytes // 64) * 64
        return self.b.bitcast(place, kind.as_pointer())

    def _keep(self, step: int, value: Any, place: Place) -> None:
        b, dtype = self.b, self.steps[step].dtype
        value = spread(b, value, self.width)
        if dtype == "bool":
            value = to_memory(b, value, "bool")
        mask = None if self.plan.by_rows else place.mask
        store_lanes(b, value, self.kept[step], place.linear, 1, mask)

    def _found(self, step: int, place: Place) -> Any:
        mask = None if self.plan.by_rows else place.mask
        value = load_lanes(self.b, self.kept[step], place.linear, 1, self.width, mask)
        return from_memory(self.b, value, "bool") if self.steps[step].dtype == "bool" else value

    def _operand(self, step: Any, values: dict[int, Any]) -> Any:
        """What a reduction takes in, in all lanes and of its own dtype."""
        operand = step.operands[0]
        source = self.steps[operand].dtype
        dtype = "bool" if kind_of(step.op) in ("any", "all") else step.dtype
        value = values[operand]
        return spread(self.b, value if source == dtype else converted(self.b, value, source, dtype), self.width)


def memory_type(dtype: str) -> Any:
    """The type of a dtype in memory of the thread's own, where values stay as they are computed."""
    return STORED["bool"] if dtype == "bool" else REGISTER[dtype]
