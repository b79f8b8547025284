"""The simplest form of a loop: axes of size 1 dropped, neighbouring axes merged, the longest runs of memory innermost.

What a loop computes does not depend on the order in which its rows, or the elements of a row, are visited. So axes may
change places within `outer` and within `inner`, and anywhere in a loop that treats all its elements alike.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...kernels import Access, Loop, Step, Write

ROW = ("row_sum", "row_prod", "row_max", "row_min", "row_any", "row_all")
TOTAL = ("total_sum", "total_prod", "total_max", "total_min", "total_any", "total_all")


def is_reduction(step: Step) -> bool:
    return step.op in ROW or step.op in TOTAL or step.op == "column_sum"


def simplest(loop: Loop) -> Loop:
    """An equal loop with as few axes as there can be."""
    loop = _without_ones(_own_strides(_plain_reductions(loop)))
    sizes = (*loop.outer, *loop.inner)
    free = _alike(loop)
    rows = len(loop.outer)
    groups = [list(range(len(sizes)))] if free else [list(range(rows)), list(range(rows, len(sizes)))]
    accesses = [*loop.reads, *(write.access for write in loop.writes)]
    fixed = {step.index for step in loop.steps if step.op == "position"}
    merged = [_merged(_sorted(group, loop), sizes, accesses, fixed) for group in groups]
    if free:
        merged = [_across_last(merged[0][:-1], loop), merged[0][-1:]]
    order = [*merged[0], *merged[1]]  # each entry is the axes that became one; the last of them moves by its stride
    place = {axis: number for number, axes in enumerate(order) for axis in axes}

    def moved(access: Access) -> Access:
        return Access(access.dtype, tuple([access.strides[axes[-1]] for axes in order]))

    return Loop(
        tuple([prod([sizes[axis] for axis in axes]) for axes in merged[0]]),
        tuple([prod([sizes[axis] for axis in axes]) for axes in merged[1]]),
        tuple([moved(access) for access in loop.reads]),
        tuple([replace(s, index=place[s.index]) if s.op == "position" else s for s in loop.steps]),
        tuple([Write(write.step, moved(write.access)) for write in loop.writes]),
    )


def _alike(loop: Loop) -> bool:
    """Whether all elements are treated alike, so that rows mean nothing.

    They do where something is written once for each row: then all that is read for the row comes before that. Without
    elements, rows there may still be.
    """
    if 0 in loop.outer or 0 in loop.inner:
        return False
    if any([step.op in ROW or step.op == "column_sum" for step in loop.steps]):
        return False
    return all([loop.steps[write.step].op in TOTAL or 0 not in write.access.strides for write in loop.writes])


def _plain_reductions(loop: Loop) -> Loop:
    """Reductions over one element are conversions, those of the only row or only column are reductions of all."""
    rows, columns = prod(loop.outer), prod(loop.inner)
    used = {operand for step in loop.steps for operand in step.operands}
    used |= {write.step for write in loop.writes if any(write.access.strides[len(loop.outer) :])}
    steps = []
    for number, step in enumerate(loop.steps):
        if (step.op in ROW and columns == 1) or (step.op == "column_sum" and rows == 1):
            step = replace(step, op="convert")
        elif step.op in ROW and rows == 1 and number not in used:
            step = replace(step, op="total" + step.op[3:])
        elif step.op == "column_sum" and columns == 1:
            step = replace(step, op="total_sum")
        steps.append(step)
    return replace(loop, steps=tuple(steps))


def _own_strides(loop: Loop) -> Loop:
    """Strides along axes over which a reduction has gone mean nothing: zeros."""
    rows = len(loop.outer)

    def own(write: Write) -> Write:
        op, strides = loop.steps[write.step].op, write.access.strides
        if op in TOTAL:
            strides = (0,) * (rows + len(loop.inner))
        elif op == "column_sum":
            strides = (0,) * rows + strides[rows:]
        return Write(write.step, Access(write.access.dtype, strides))

    return replace(loop, writes=tuple([own(write) for write in loop.writes]))


def _without_ones(loop: Loop) -> Loop:
    sizes = (*loop.outer, *loop.inner)
    kept = [axis for axis, size in enumerate(sizes) if size != 1]
    place = {axis: number for number, axis in enumerate(kept)}

    def cut(access: Access) -> Access:
        return Access(access.dtype, tuple([access.strides[axis] for axis in kept]))

    def placed(step: Step) -> Step:
        if step.op != "position":
            return step
        if step.index in place:
            return replace(step, index=place[step.index])
        return Step("number", (), step.dtype, number=0)

    return Loop(
        tuple([size for size in loop.outer if size != 1]),
        tuple([size for size in loop.inner if size != 1]),
        tuple([cut(access) for access in loop.reads]),
        tuple([placed(step) for step in loop.steps]),
        tuple([Write(write.step, cut(write.access)) for write in loop.writes]),
    )


def _sorted(axes: list[int], loop: Loop) -> list[int]:
    """Axes in the order of falling strides: of what is written at every element first, then of what is read."""
    writes = [write.access.strides for write in loop.writes]
    reads = [access.strides for access in loop.reads]
    ranked = [*sorted(writes, key=_broadcast), *sorted(reads, key=_broadcast)]
    if ranked and _broadcast(ranked[0]) and reads:
        ranked = sorted([*writes, *reads], key=_broadcast)
    return sorted(axes, key=lambda axis: tuple([-abs(strides[axis]) for strides in ranked]))


def _across_last(axes: list[list[int]], loop: Loop) -> list[list[int]]:
    """An axis along which an array that is read has its neighbours, if it is not the row's own, comes last of these."""
    for access in loop.reads:
        for number, merged in enumerate(axes):
            if abs(access.strides[merged[-1]]) == 1:
                return [*axes[:number], *axes[number + 1 :], merged]
    return axes


def _broadcast(strides: tuple[int, ...]) -> int:
    return sum([stride == 0 for stride in strides])


def _merged(axes: list[int], sizes: tuple[int, ...], accesses: list[Access], fixed: set[int]) -> list[list[int]]:
    """Neighbours along which every array moves as along one axis, put together."""
    merged: list[list[int]] = []
    for axis in axes:
        if merged and axis not in fixed and merged[-1][-1] not in fixed:
            before = merged[-1][-1]
            if all([access.strides[before] == access.strides[axis] * sizes[axis] for access in accesses]):
                merged[-1].append(axis)
                continue
        merged.append([axis])
    return merged
