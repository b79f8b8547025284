"""Fewer movements of elements.

After this pass axes are only ever put in another order by `permute_dims` (with axes counted from 0), and put in or
taken out by `reshape`, both at most once in a row, and neither where nothing would change. Broadcasting comes after
both. `matmul` is given transposed operands rather than transposed afterwards, for operands are read in any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..program import Instruction, Program, Value
from .rewriting import Table, Walk, rewritten


def with_less_movement(program: Program) -> Program:
    """`program` with merged, cancelled and canonical movements."""
    return rewritten(program, RULES)


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([size for size in shape if size != 1])


# -- the same elements in the same order -----------------------------------------------------------


def as_reshape(walk: Walk, instruction: Instruction) -> Any:
    return walk.reshaped(instruction.args[0], instruction.result.shape)


def reshape(walk: Walk, instruction: Instruction) -> Any:
    x, shape = instruction.args[0], instruction.result.shape
    if x.shape == shape:
        return x
    made = walk.definitions.get(x)
    if made is not None:
        if made.op == "reshape":
            return walk.reshaped(made.args[0], shape)
        if made.op == "broadcast_to" and (inner := _before_broadcast(made.args[0], x.shape, shape)) is not None:
            return walk.broadcast(walk.reshaped(made.args[0], inner), shape)
    return None if instruction.args[1] == shape else walk.make("reshape", (x, shape), shape, x.dtype)


def _before_broadcast(x: Value, spread: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of `x` from which broadcasting gives `shape`, an array of `spread` reshaped; None if there is none."""
    if x.size == 1:
        return ()
    if without_ones(spread) != without_ones(shape):
        return None
    before = (1,) * (len(spread) - x.ndim) + x.shape
    sizes = iter([size for size, whole in zip(before, spread) if whole != 1])
    return tuple([1 if whole == 1 else next(sizes) for whole in shape])


# -- broadcasting ----------------------------------------------------------------------------------


def broadcast_to(walk: Walk, instruction: Instruction) -> Any:
    x, shape = instruction.args[0], instruction.result.shape
    if x.size == instruction.result.size:
        return walk.reshaped(x, shape)
    made = walk.definitions.get(x)
    if made is not None:
        inner = made.args[0]
        if made.op == "broadcast_to":
            return walk.broadcast(inner, shape)
        if made.op == "reshape" and x.shape == (1,) * (x.ndim - inner.ndim) + inner.shape:
            return walk.broadcast(inner, shape)
    return None if instruction.args[1] == shape else walk.make("broadcast_to", (x, shape), shape, x.dtype)


# -- the order of axes -----------------------------------------------------------------------------


def permuted(walk: Walk, x: Value, axes: tuple[int, ...]) -> Value:
    shape = tuple([x.shape[axis] for axis in axes])
    return walk.make("permute_dims", (x, axes), shape, x.dtype)


def matrix_transpose(walk: Walk, instruction: Instruction) -> Any:
    x = instruction.args[0]
    return permuted(walk, x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def permute_dims(walk: Walk, instruction: Instruction) -> Any:
    x = instruction.args[0]
    given = instruction.args[1]
    axes = tuple([axis % x.ndim for axis in given]) if given is not None else tuple(range(x.ndim))[::-1]
    order = [axis for axis in axes if x.shape[axis] != 1]
    if order == sorted(order):
        return walk.reshaped(x, instruction.result.shape)
    made = walk.definitions.get(x)
    if made is not None:
        if made.op == "permute_dims":
            before = made.args[1]
            return permuted(walk, made.args[0], tuple([before[axis] for axis in axes]))
        if made.op == "broadcast_to":
            inner = made.args[0]
            inner = walk.reshaped(inner, (1,) * (x.ndim - inner.ndim) + inner.shape)
            return walk.broadcast(permuted(walk, inner, axes), instruction.result.shape)
        if made.op == "matmul" and walk.uses(x) == 1 and axes == _last_two_swapped(x.ndim):
            return _product_of_transposes(walk, made, instruction)
    return None if given == axes else permuted(walk, x, axes)


def _last_two_swapped(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def _product_of_transposes(walk: Walk, product: Instruction, instruction: Instruction) -> Any:
    """(x y)^T = y^T x^T."""
    x, y = product.args
    if x.ndim < 2 or y.ndim < 2:
        return None
    operands = (permuted(walk, y, _last_two_swapped(y.ndim)), permuted(walk, x, _last_two_swapped(x.ndim)))
    return walk.make("matmul", operands, instruction.result.shape, instruction.result.dtype)


# -- parts -----------------------------------------------------------------------------------------


def getitem(walk: Walk, instruction: Instruction) -> Any:
    """Reading everything, with axes of length 1 put in or taken out."""
    x, index = instruction.args
    return walk.reshaped(x, instruction.result.shape) if _names_all(x, index) else None


def setitem(walk: Walk, instruction: Instruction) -> Any:
    """Writing over everything: what was there before does not matter."""
    x, value, index = instruction.args
    parts = index if type(index) is tuple else (index,)
    if not all(part is Ellipsis or type(part) is slice for part in parts) or not _names_all(x, index):
        return None
    if type(value) is not Value:
        fits = type(value) is not int or x.dtype.kind not in "iu" or int(np.asarray(value).astype(x.dtype)) == value
        return walk.full(x.shape, value, x.dtype) if type(value) in (int, float, bool) and fits else None
    if value.ndim > x.ndim or (value.dtype.kind == "c") != (x.dtype.kind == "c"):
        return None
    return walk.as_result(value, instruction)


def _names_all(x: Value, index: Any) -> bool:
    """Whether an index names every element, in order."""
    parts = index if type(index) is tuple else (index,)
    named = sum(1 for part in parts if part is not None and part is not Ellipsis)
    axis = 0
    for part in parts:
        if part is None:
            continue
        if part is Ellipsis:
            axis += x.ndim - named
            continue
        if type(part) is int:
            whole = x.shape[axis] == 1
        else:
            whole = type(part) is slice and part.indices(x.shape[axis]) == (0, x.shape[axis], 1)
        if not whole:
            return False
        axis += 1
    return True


def concat(walk: Walk, instruction: Instruction) -> Any:
    """One part, or the rest without elements."""
    parts, axis = instruction.args
    filled = tuple([part for part in parts if part.size])
    if len(filled) == 1:
        return walk.cast(filled[0], instruction.result.dtype)
    if 0 < len(filled) < len(parts) and all(part.dtype == instruction.result.dtype for part in parts):
        return walk.make("concat", (filled, axis), instruction.result.shape, instruction.result.dtype)
    return None


def stack(walk: Walk, instruction: Instruction) -> Any:
    parts = instruction.args[0]
    return walk.reshaped(parts[0], instruction.result.shape) if len(parts) == 1 else None


def flip(walk: Walk, instruction: Instruction) -> Any:
    x, axis = instruction.args
    made = walk.definition(x, "flip")
    return made.args[0] if made is not None and made.args[1] == axis else None


def roll(walk: Walk, instruction: Instruction) -> Any:
    x, distance, _ = instruction.args
    nowhere = distance == 0 or (type(distance) is tuple and not any(distance))
    return x if nowhere else None


def copied(walk: Walk, instruction: Instruction) -> Any:
    """tile and repeat, once; pad by nothing: as many elements as before are the same ones."""
    x, result = instruction.args[0], instruction.result
    if instruction.op == "repeat" and type(instruction.args[1]) is not int:
        return None
    return walk.reshaped(x, result.shape) if x.size == result.size else None


RULES: Table = {
    "reshape": [reshape],
    "expand_dims": [as_reshape],
    "squeeze": [as_reshape],
    "broadcast_to": [broadcast_to],
    "permute_dims": [permute_dims],
    "matrix_transpose": [matrix_transpose],
    "getitem": [getitem],
    "setitem": [setitem],
    "concat": [concat],
    "stack": [stack],
    "flip": [flip],
    "roll": [roll],
    "tile": [copied],
    "repeat": [copied],
    "pad": [copied],
}
