"""Reductions over axes along which nothing changes: of length 1, or broadcast, or of one number.

A sum of n equal numbers is taken to be n times the number: closer to the true sum than adding up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..program import Instruction, Program
from .operations import REDUCTIONS
from .rewriting import Table, Walk, rewritten

_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True, "count_nonzero": 0}
_CHOOSING = frozenset({"max", "min", "any", "all"})  # of equal elements, any one will do


def with_fewer_reductions(program: Program) -> Program:
    return rewritten(program, RULES)


def _axes(instruction: Instruction) -> tuple[int, ...]:
    """The axes that are reduced, counted from the end."""
    x, axis = instruction.args[0], _argument(instruction, 1, None)
    if axis is None:
        return tuple(range(-x.ndim, 0))
    return tuple([a if a < 0 else a - x.ndim for a in (axis if type(axis) is tuple else (axis,))])


def _argument(instruction: Instruction, position: int, default: Any) -> Any:
    return instruction.args[position] if len(instruction.args) > position else default


def empty(walk: Walk, instruction: Instruction) -> Any:
    """Nothing to reduce, or no results."""
    x, result = instruction.args[0], instruction.result
    if 0 in result.shape:
        return walk.full(result.shape, 0, result.dtype)
    if 0 in x.shape and instruction.op in _NEUTRAL:
        return walk.full(result.shape, _NEUTRAL[instruction.op], result.dtype)
    return None


def over_ones(walk: Walk, instruction: Instruction) -> Any:
    """One element is its own sum, product and maximum."""
    x, result = instruction.args[0], instruction.result
    if x.size != result.size:
        return None
    if instruction.op in ("argmax", "argmin"):
        return walk.full(result.shape, 0, result.dtype)
    if instruction.op == "count_nonzero":
        x = walk.cast(x, np.dtype(bool))
    return walk.reshaped(walk.cast(x, result.dtype), result.shape)


def of_number(walk: Walk, instruction: Instruction) -> Any:
    x, result = instruction.args[0], instruction.result
    number = walk.number(x)
    if number is None:
        return None
    if instruction.op in _CHOOSING:
        return walk.full(result.shape, number, result.dtype)
    if instruction.op in ("argmax", "argmin"):
        return walk.full(result.shape, 0, result.dtype)
    if instruction.op == "prod":
        return walk.full(result.shape, number, result.dtype) if number in (0, 1) else None
    if instruction.op == "count_nonzero":
        number = bool(number)
    return walk.full(result.shape, _times(number, x.size // result.size, result.dtype), result.dtype)


def _times(number: Any, count: int, dtype: np.dtype[Any]) -> Any:
    """A sum of equal numbers, wrapped around or rounded once, to `dtype`."""
    with np.errstate(all="ignore"):
        wide = dtype if dtype.kind in "iufc" and dtype.itemsize > 2 else np.dtype(np.float64)
        return np.multiply(np.asarray(number).astype(wide), np.asarray(count).astype(wide))


def of_broadcast(walk: Walk, instruction: Instruction) -> Any:
    """Reduce before broadcasting."""
    x, result = instruction.args[0], instruction.result
    spread = walk.definition(x, "broadcast_to")
    if spread is None or instruction.op not in ("sum", *_CHOOSING):
        return None
    axes = _axes(instruction)
    inner = spread.args[0]
    before = (1,) * (x.ndim - inner.ndim) + inner.shape
    count = math.prod([x.shape[axis] for axis in axes if before[axis] != x.shape[axis]])
    if count == 1:
        return None
    if instruction.op == "sum" and not _counts_in(result.dtype, count):
        return None
    own = tuple([axis for axis in axes if axis >= -inner.ndim])
    kept = tuple([1 if axis - inner.ndim in own else n for axis, n in enumerate(inner.shape)])
    reduced = walk.make(instruction.op, (inner, own, True), kept, result.dtype)
    if instruction.op == "sum":
        factor = float(count) if result.dtype.kind == "f" else count
        reduced = walk.make("multiply", (reduced, factor), kept, result.dtype)
    whole = tuple([1 if axis - x.ndim in axes else n for axis, n in enumerate(x.shape)])
    return walk.reshaped(walk.broadcast(reduced, whole), result.shape)


def _counts_in(dtype: np.dtype[Any], count: int) -> bool:
    """Whether `count` is a number of `dtype`."""
    return dtype.kind in "iu" or (dtype.kind == "f" and (dtype.itemsize > 2 or count <= 2048))


RULES: Table = {op: [empty, over_ones, of_number, of_broadcast] for op in sorted(REDUCTIONS)}
