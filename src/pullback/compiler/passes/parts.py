"""Parts of arrays: put together instead of added up, and chosen or cut before they are computed.

The gradient of an array that is read in slices is a sum of arrays that are zero but for one slice (`place`).
Where slices lie side by side along an axis the sum is taken to be what it is: the slices, one after the other.
(A zero may lose its sign by that.)
"""

from __future__ import annotations

from typing import Any

from ..program import Instruction, Program, Value
from .operations import ELEMENTWISE
from .rewriting import Table, Walk, rewritten


def with_joined_parts(program: Program) -> Program:
    """`program` with sums of slices as one array, and without the computation of elements that are not chosen."""
    return rewritten(program, RULES)


_DEEPEST = 30  # steps that a choice moves forward at once: Python's stack is short


def slice_of(index: Any, shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """The axis, the start and the stop of an index that names whole axes but for a slice of one; else None.

    An index that names everything is a slice of the first axis.
    """
    parts = list(index) if type(index) is tuple else [index]
    if parts.count(Ellipsis) == 1:  # before values are met: they have no equality of their own
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    found = None
    for axis, part in enumerate(parts):
        if type(part) is not slice or axis >= len(shape):
            return None
        start, stop, step = part.indices(shape[axis])
        if step != 1:
            return None
        if (start, stop) != (0, shape[axis]):
            if found is not None:
                return None
            found = (axis, start, max(start, stop))
    return found or ((0, 0, shape[0]) if shape else None)


def place(walk: Walk, instruction: Instruction) -> Any:
    """Everything at once."""
    value, shape = instruction.args[0], instruction.result.shape
    return value if value.shape == shape and slice_of(instruction.args[2], shape) == (0, 0, *shape[:1]) else None


def add(walk: Walk, instruction: Instruction) -> Any:
    """Two slices side by side, each in zeros, as one."""
    first, second = (walk.definition(arg, "place") for arg in instruction.args)
    shape, dtype = instruction.result.shape, instruction.result.dtype
    if first is None or second is None or first.result.shape != shape or second.result.shape != shape:
        return None
    indices = [_as_slices(placed.args[2]) for placed in (first, second)]
    one, other = slice_of(indices[0], shape), slice_of(indices[1], shape)
    if one is None or other is None or one[0] != other[0] or first.result.dtype != second.result.dtype:
        return None
    axis = one[0]
    if one[1] > other[1]:
        first, second, one, other = second, first, other, one
    shapes = [_with_axis(placed.args[0].shape, placed.args[2], axis, len(shape)) for placed in (first, second)]
    if one[2] != other[1] or any(
        _length(part, shape, axis) != stop - start for part, (_, start, stop) in zip(shapes, (one, other))
    ):
        return None
    values = tuple([
        placed.args[0] if placed.args[0].shape == part else walk.make("reshape", (placed.args[0], part), part, dtype)
        for placed, part in zip((first, second), shapes)
    ])  # fmt: skip
    together = tuple([other[2] - one[1] if i == axis else n for i, n in enumerate(shape)])
    value = walk.make("concat", (values, axis - len(shape)), together, dtype)
    index = tuple([slice(one[1], other[2]) if i == axis else slice(None) for i in range(len(shape))])
    return walk.make("place", (value, shape, index), shape, dtype)


def _as_slices(index: Any) -> Any:
    """An index with a slice of one for each number in it that counts from the start."""
    parts = index if type(index) is tuple else (index,)
    return tuple([slice(part, part + 1) if type(part) is int and part >= 0 else part for part in parts])


def _with_axis(shape: tuple[int, ...], index: Any, axis: int, ndim: int) -> tuple[int, ...]:
    """The shape of what is placed, with an axis for a number at `axis` of the index."""
    numbers = [part for part in (index if type(index) is tuple else (index,)) if type(part) is int]
    return (*shape[:axis], 1, *shape[axis:]) if len(numbers) == 1 and len(shape) == ndim - 1 else shape


def _length(part: tuple[int, ...], shape: tuple[int, ...], axis: int) -> int | None:
    """How long something of shape `part` is along `axis`, if it fills the others."""
    fills = len(part) == len(shape) and all(n == m for i, (n, m) in enumerate(zip(part, shape)) if i != axis)
    return part[axis] if fills else None


def concat(walk: Walk, instruction: Instruction) -> Any:
    """Parts that were put together before, all at once."""
    parts, axis = instruction.args
    flat: list[Value] = []
    for part in parts:
        inner = walk.definition(part, "concat")
        same = inner is not None and inner.args[1] == axis and part.dtype == instruction.result.dtype
        flat += inner.args[0] if inner is not None and same else (part,)
    if len(flat) == len(parts):
        return None
    return walk.make("concat", (tuple(flat), axis), instruction.result.shape, instruction.result.dtype)


def take_along_axis(walk: Walk, instruction: Instruction) -> Any:
    """Choose among what elements are computed from, and compute only those: log-probabilities of labels, say."""
    (x, indices, axis), result = instruction.args, instruction.result
    made = walk.definitions.get(x)
    if made is None or made.op not in ELEMENTWISE or result.size * 4 > x.size or result.shape != indices.shape:
        return None
    if walk.depth > _DEEPEST:
        return None
    whole = [arg for arg in made.args if type(arg) is Value and arg.shape == x.shape]
    constant_along_axis = all(
        arg.ndim == 0 or (arg.ndim == x.ndim and arg.shape[axis] == 1)
        for arg in made.args
        if type(arg) is Value and arg.shape != x.shape
    )
    if len(whole) != 1 or not constant_along_axis:
        return None
    source = whole[0]
    chosen = walk.make("take_along_axis", (source, indices, axis), result.shape, source.dtype)
    args = tuple([chosen if arg is source else arg for arg in made.args])
    return walk.make(made.op, args, result.shape, result.dtype)


def getitem(walk: Walk, instruction: Instruction) -> Any:
    """A slice of a sum that is read in slices alone, as the sum of slices: the gates of a recurrent layer, say.

    They are then added where they are used. Sums with what is broadcast stay whole, unless they are in such a sum.
    """
    x, index = instruction.args
    made = walk.definition(x, "add")
    found = slice_of(index, x.shape)
    if made is None or found is None or instruction.result.ndim != x.ndim or walk.depth > _DEEPEST:
        return None
    if walk.uses(x) * instruction.result.size > x.size:  # something may need the whole
        return None
    if not walk.depth and any(type(arg) is not Value or arg.shape != x.shape for arg in made.args):
        return None
    axis, start, stop = found
    args: list[Any] = []
    for arg in made.args:
        own = axis - x.ndim + arg.ndim if type(arg) is Value else -1  # its axis, if it has it
        if own >= 0 and arg.shape[own] == x.shape[axis]:
            shape = (*arg.shape[:own], stop - start, *arg.shape[own + 1 :])
            sliced = (*[slice(None)] * own, slice(start, stop))
            arg = walk.make("getitem", (arg, sliced), shape, arg.dtype)
        args.append(arg)
    return walk.make("add", tuple(args), instruction.result.shape, instruction.result.dtype)


RULES: Table = {
    "add": [add],
    "getitem": [getitem],
    "place": [place],
    "concat": [concat],
    "take_along_axis": [take_along_axis],
}
