"""What a loop computes when: once per row, once per line of a row, or at every element, and in which pass over the row.

A row with reductions is gone over several times: what depends on a reduction's result waits for the next pass. A pass
computes again what it needs of earlier passes; what is expensive is kept in memory of the thread's own instead, where
the row is short enough for that to be in cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ...kernels import Loop
from ..code import ITEMSIZE
from .loop_form import ROW, TOTAL, is_reduction

#: Scalar operations of one or a few instructions: not worth keeping.
CHEAP = frozenset((
    "read", "number", "position", "convert", "add", "subtract", "multiply", "negative", "positive", "square", "abs",
    "sign", "floor", "ceil", "round", "trunc", "copysign", "maximum", "minimum", "where", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "isfinite", "isnan",
    "isinf", "signbit",
))  # fmt: skip
#: Operations of some tens of cycles, but no more.
MODERATE = frozenset(("divide", "sqrt", "reciprocal"))
#: Elements of a row up to which expensive values are kept from pass to pass.
KEPT_ELEMENTS = 16384

AT_ROW, AT_LINE, AT_ELEMENT = 0, 1, 2


@dataclass
class Pass:
    """One way along a row: the reductions it makes, the steps it computes, and what it keeps and finds kept."""

    reductions: list[int]
    outputs: bool
    steps: list[int] = field(default_factory=list)  # of lines and elements, in order
    rows: list[int] = field(default_factory=list)  # of rows, to be computed before it
    keeps: list[int] = field(default_factory=list)
    finds: list[int] = field(default_factory=list)


class Plan:
    """When each step of a loop in its simplest form is computed. `by_rows`: the lanes of vectors are rows."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.rows = prod(loop.outer)
        self.columns = prod(loop.inner)
        self.by_rows = _lanes_are_rows(loop)
        self.lane_axis = len(loop.outer) - 1 if self.by_rows else len(loop.outer) + len(loop.inner) - 1
        self.axes = self._axes()
        self.level = [self._level(step) for step in range(len(loop.steps))]
        self.stage = self._stages()
        # Where results go: at each element, at each row, by column, or once in all.
        self.element_writes: list[int] = []
        self.row_writes: list[int] = []
        self.column_writes: list[int] = []
        self.total_writes: list[int] = []
        for number, write in enumerate(loop.writes):
            step = loop.steps[write.step]
            if step.op in TOTAL:
                self.total_writes.append(number)
            elif step.op == "column_sum":
                self.column_writes.append(number)
            elif self.level[write.step] == AT_ROW and not any(write.access.strides[len(loop.outer) :]):
                self.row_writes.append(number)
            else:
                self.element_writes.append(number)
        self.passes = self._passes()

    def varies(self, step: int) -> bool:
        """Whether the step has a value of its own in each lane."""
        return self.lane_axis in self.axes[step]

    def element_outputs(self) -> list[int]:
        """Steps whose value at each element is asked for: to be written, or for sums over rows."""
        loop = self.loop
        written = [loop.writes[number].step for number in self.element_writes]
        summed = [loop.writes[number].step for number in (*self.column_writes, *self.total_writes)]
        return [*written, *(loop.steps[step].operands[0] for step in summed)]

    def expensive(self) -> bool:
        """Whether an element takes so many instructions that code for it should stand only once."""
        weight = 0
        for plan in self.passes:
            for step in plan.steps:
                op = self.loop.steps[step].op
                weight += 1 if op in CHEAP else 3 if op in MODERATE else 12
        return weight > 12

    def _axes(self) -> list[frozenset[int]]:
        loop = self.loop
        outer = frozenset(range(len(loop.outer)))
        axes: list[frozenset[int]] = []
        for step in loop.steps:
            if step.op == "read":
                strides = loop.reads[step.index].strides
                axes.append(frozenset([axis for axis, stride in enumerate(strides) if stride]))
            elif step.op == "position":
                axes.append(frozenset((step.index,)))
            elif is_reduction(step):
                axes.append(outer)
            else:
                axes.append(frozenset().union(*[axes[operand] for operand in step.operands]))
        return axes

    def _level(self, step: int) -> int:
        rows, last = len(self.loop.outer), len(self.loop.outer) + len(self.loop.inner) - 1
        inner = [axis for axis in self.axes[step] if axis >= rows]
        return AT_ROW if not inner else AT_ELEMENT if last in inner else AT_LINE

    def _stages(self) -> list[int]:
        stages: list[int] = []
        for step in self.loop.steps:
            stage = max([stages[operand] for operand in step.operands], default=0)
            stages.append(stage + 1 if step.op in ROW else stage)
        return stages

    def closure(self, targets: list[int], cut: set[int]) -> set[int]:
        """The steps that targets need, themselves included; what is in `cut` needs nothing."""
        found: set[int] = set()
        waiting = list(targets)
        while waiting:
            step = waiting.pop()
            if step not in found:
                found.add(step)
                if step not in cut:
                    waiting.extend(self.loop.steps[step].operands)
        return found

    def _passes(self) -> list[Pass]:
        loop, steps = self.loop, self.loop.steps
        outputs = self.element_outputs()
        needed = self.closure([*outputs, *(loop.writes[number].step for number in self.row_writes)], set())
        reductions = [step for step in sorted(needed) if steps[step].op in ROW]
        count = max(
            [self.stage[step] for step in reductions] + [self.stage[step] + 1 for step in outputs],
            default=0,
        )
        reduced = {step for step in needed if steps[step].op in ROW}
        keep = self.columns * (16 if self.by_rows else 1) <= KEPT_ELEMENTS
        passes: list[Pass] = []
        computed: set[int] = set()
        for number in range(count):
            own = [step for step in reductions if self.stage[step] == number + 1]
            last = number == count - 1
            if not own and not last:
                continue
            targets = [steps[step].operands[0] for step in own] + (outputs if last else [])
            cut = reduced | (computed if keep else set())
            found = self.closure(targets, cut)
            one = Pass(own, last and bool(outputs))
            one.finds = sorted([step for step in found if keep and step in computed])
            for step in one.finds:
                first = next(p for p in passes if step in p.steps and step not in p.finds)
                if step not in first.keeps:
                    first.keeps.append(step)
            one.rows = sorted([step for step in found if self.level[step] == AT_ROW])
            one.steps = sorted([step for step in found if self.level[step] != AT_ROW and step not in one.finds])
            computed |= {step for step in one.steps if self._worth_keeping(step)}
            passes.append(one)
        return passes

    def _worth_keeping(self, step: int) -> bool:
        op = self.loop.steps[step].op
        return self.level[step] == AT_ELEMENT and op not in CHEAP and op not in MODERATE


def _lanes_are_rows(loop: Loop) -> bool:
    """Whether neighbours in memory are neighbouring rows rather than neighbours in a row."""
    if not loop.outer or not loop.inner or not any(step.op in ROW for step in loop.steps):
        return False
    if any(step.op == "column_sum" for step in loop.steps):
        return False
    across = along = 0
    rows = len(loop.outer)
    for access in (*loop.reads, *(write.access for write in loop.writes)):
        if any(access.strides[rows:]):
            across += abs(access.strides[rows - 1]) == 1
            along += abs(access.strides[-1]) == 1
    return across > along and loop.outer[-1] > 1


def register_bytes(dtype: str) -> int:
    """Bytes of a value in a register's lane: half precision is computed as float32."""
    return 4 if dtype in ("float16", "bfloat16") else ITEMSIZE[dtype]
