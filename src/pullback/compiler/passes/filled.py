"""Arrays that are the same number everywhere, and arrays that were broadcast.

Such an array is made by `full(shape, number, dtype, None)` and nothing else, whichever kernel asked for it. An operand
of an elementwise kernel that is one becomes a Python number where that leaves the dtype as it is, and a 0-d array
where not. Operands that were broadcast are taken as they were before, and the result is broadcast, if at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host import HOST
from ..program import Instruction, Value
from ..shapes import broadcast_shape
from .operations import ELEMENTWISE, MOVEMENT
from .rewriting import Table, Walk, as_number

# -- creation: everything becomes `full` -----------------------------------------------------------


def zeros(walk: Walk, instruction: Instruction) -> Any:
    return walk.full(instruction.result.shape, 0, instruction.result.dtype)


def ones(walk: Walk, instruction: Instruction) -> Any:
    return walk.full(instruction.result.shape, 1, instruction.result.dtype)


def full(walk: Walk, instruction: Instruction) -> Any:
    result, number = instruction.result, instruction.args[1]
    known = walk.number(number)
    if known is None:  # a value, or one of NumPy's scalars
        return walk.as_result(number, instruction) if type(number) is Value else None
    canonical = (result.shape, _converted(known, result.dtype), result.dtype, None)
    if canonical[1] is None or _same(instruction.args, canonical):
        return None
    return walk.full(result.shape, known, result.dtype)


def arange(walk: Walk, instruction: Instruction) -> Any:
    """Without the array that only names a device."""
    *args, like = instruction.args
    if like is None:
        return None
    return walk.make("arange", (*args, None), instruction.result.shape, instruction.result.dtype)


def _converted(number: Any, dtype: np.dtype[Any]) -> Any:
    """A Python number as it is when converted to `dtype`; None where NumPy refuses."""
    try:
        with np.errstate(all="ignore"):
            return as_number(np.full((), number, dtype))
    except (OverflowError, ValueError, TypeError):
        return None


def _same(args: tuple[Any, ...], canonical: tuple[Any, ...]) -> bool:
    return (
        args[3] is None and repr(args[1]) == repr(canonical[1]) and args[0] == canonical[0] and args[2] == canonical[2]
    )


# -- what is computed of such arrays ---------------------------------------------------------------


def empty(walk: Walk, instruction: Instruction) -> Any:
    """There is nothing to compute in an array without elements."""
    result = instruction.result
    return walk.full(result.shape, 0, result.dtype) if 0 in result.shape else None


def moved(walk: Walk, instruction: Instruction) -> Any:
    """The same number in other places."""
    number = walk.number(instruction.args[0])
    return None if number is None else walk.full(instruction.result.shape, number, instruction.result.dtype)


def read(walk: Walk, instruction: Instruction) -> Any:
    """A part of such an array, where the index holds no arrays, which might be out of bounds."""
    return moved(walk, instruction) if sum(1 for _ in instruction.values()) == 1 else None


def triangle(walk: Walk, instruction: Instruction) -> Any:
    return moved(walk, instruction) if walk.number(instruction.args[0]) == 0 else None


def joined(walk: Walk, instruction: Instruction) -> Any:
    """Arrays of the same number, one after the other."""
    numbers = [walk.number(part) for part in instruction.args[0]]
    first = numbers[0]
    if first is None or any(number is None or repr(number) != repr(first) for number in numbers):
        return None
    return walk.full(instruction.result.shape, first, instruction.result.dtype)


def computed(walk: Walk, instruction: Instruction) -> Any:
    """An elementwise kernel of numbers alone."""
    operands = []
    for arg in instruction.args:
        if type(arg) is Value:
            number = walk.number(arg)
            if number is None:
                return None
            operands.append(np.asarray(number).astype(arg.dtype))
        else:
            operands.append(arg)
    result = instruction.result
    with np.errstate(all="ignore"):
        try:
            element = np.asarray(getattr(HOST, instruction.op)(*operands))
        except (ValueError, TypeError, OverflowError):  # it will say so when it is run
            return None
    return walk.full(result.shape, as_number(element), result.dtype) if element.dtype == result.dtype else None


def plain_operands(walk: Walk, instruction: Instruction) -> Any:
    """Operands as numbers, or as they were before they were broadcast."""
    args, definitions = instruction.args, walk.definitions
    for arg in args:
        if type(arg) is Value:
            made = definitions.get(arg)
            if (made.op in _SPREADING) if made is not None else walk.number(arg) is not None:
                break
    else:
        return None
    plain = _with_numbers(walk, instruction.op, [_unspread(walk, arg) for arg in args])
    result = instruction.result
    plain = [_without_leading_ones(walk, arg, plain, i, result.shape) for i, arg in enumerate(plain)]
    if all(old is new for old, new in zip(args, plain)):
        return None
    shape = broadcast_shape([arg.shape for arg in plain if type(arg) is Value])
    return walk.broadcast(walk.make(instruction.op, tuple(plain), shape, result.dtype), result.shape)


_SPREADING = ("full", "broadcast_to", "reshape")


def _unspread(walk: Walk, arg: Any) -> Any:
    while (spread := walk.definition(arg, "broadcast_to")) is not None:
        arg = spread.args[0]
    return arg


def _without_leading_ones(walk: Walk, arg: Any, operands: list[Any], position: int, shape: tuple[int, ...]) -> Any:
    """An operand before axes of length 1 were put before its others, which broadcasting does by itself."""
    reshape = walk.definition(arg, "reshape")
    if reshape is None or len(operands) == 1:
        return arg
    inner = reshape.args[0]
    extra = arg.ndim - inner.ndim
    if extra <= 0 or arg.shape[:extra] != (1,) * extra or arg.shape[extra:] != inner.shape:
        return arg
    others = [other.shape for i, other in enumerate(operands) if i != position and type(other) is Value]
    return inner if max(map(len, others), default=0) >= arg.ndim and len(shape) >= arg.ndim else arg


def _with_numbers(walk: Walk, op: str, args: list[Any]) -> list[Any]:
    """Arrays of one number as numbers, as long as the other operands have the dtype that all have together."""
    first = 1 if op == "where" else 0  # the condition has no part in the dtype
    filled = [i for i in range(first, len(args)) if type(args[i]) is Value and walk.number(args[i]) is not None]
    if not filled:
        return args
    others = [arg for i, arg in enumerate(args) if i >= first and type(arg) is Value and i not in filled]
    if not others:  # `where` of two numbers: one keeps its dtype
        others, filled = [args[filled[0]]], filled[1:]
        args = [_zero_dimensional(walk, arg) if arg is others[0] else arg for arg in args]
    own = _common_dtype({arg.dtype for arg in others})
    for i in filled:
        arg = args[i]
        if own is not None and own.kind in _WEAK and _common_dtype({own, arg.dtype}) == own:
            args[i] = _WEAK[own.kind](walk.number(arg))
        else:  # next to bfloat16 Python's floats count as float64
            args[i] = _zero_dimensional(walk, arg)
    return args


_WEAK: dict[str, Any] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}


def _common_dtype(dtypes: set[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The dtype that arrays have together; None for float16 and bfloat16, between which kernels choose."""
    if len(dtypes) == 1:
        return next(iter(dtypes))
    try:
        return np.result_type(*dtypes)
    except TypeError:
        return None


def _zero_dimensional(walk: Walk, arg: Value) -> Value:
    return arg if arg.ndim == 0 else walk.full((), walk.number(arg), arg.dtype)


RULES: Table = {
    "zeros": [zeros],
    "zeros_like": [zeros],
    "ones_like": [ones],
    "full": [full],
    "arange": [arange],
    **{op: [empty, moved] for op in MOVEMENT},
    **{op: [empty, computed] for op in ELEMENTWISE},
    "getitem": [empty, read],
    "tril": [empty, triangle],
    "triu": [empty, triangle],
    "shift": [empty, triangle],
    "concat": [empty, joined],
    "stack": [empty, joined],
    **{op: [empty] for op in ("take", "take_along_axis", "matmul", "place", "setitem", "index_add", "pad")},
}

#: To be tried after the rules of each kernel.
OPERANDS: Table = {op: [plain_operands] for op in sorted(ELEMENTWISE)}
