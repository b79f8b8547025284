"""Simpler elementwise arithmetic.

What is put in the place of a result is the same to the last bit, for infinities and NaN too, with two exceptions: zeros
may have another sign, because x + 0.0 is taken to be x, which it is not for x = -0.0; and the powers 2, 3 and -1 are
products and quotients, which are rounded better. So x * 0, x - x and x / x stay, as they can be NaN, and so does what
would round elsewhere. Complex numbers are left alone: their products have parts
that are infinite and parts that are not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..program import Instruction, Program, Value
from .filled import OPERANDS, RULES as FILLED
from .operations import COMMUTATIVE
from .rewriting import Table, Walk, merged, rewritten

_REAL = frozenset("fiubV")  # V: bfloat16
_FLOAT = frozenset("fV")


def simplified(program: Program) -> Program:
    """`program` with simpler arithmetic."""
    return rewritten(program, TABLE)


def _negated(walk: Walk, arg: Any, dtype: np.dtype[Any]) -> Any:
    """What `arg` is the negative of, if it is made so and in `dtype`: small unsigned numbers wrap around before."""
    made = walk.definition(arg, "negative")
    return made.args[0] if made is not None and arg.dtype == dtype else None


def _binary(walk: Walk, instruction: Instruction, op: str, x: Any, y: Any) -> Value:
    """`op` of other operands that together have the shape of the result."""
    return walk.make(op, (x, y), instruction.result.shape, instruction.result.dtype)


def number_last(walk: Walk, instruction: Instruction) -> Any:
    """Numbers come second, so that rules look there and the same sum is written in one way."""
    x, y = instruction.args
    if type(y) is Value and type(x) is not Value:
        return walk.make(instruction.op, (y, x), instruction.result.shape, instruction.result.dtype)
    return None


# -- sums and products -----------------------------------------------------------------------------


def add(walk: Walk, instruction: Instruction) -> Any:
    (x, y), dtype = instruction.args, instruction.result.dtype
    if dtype.kind not in _REAL:
        return None
    if walk.number(y) == 0:
        return walk.as_result(x, instruction)
    if walk.number(x) == 0:
        return walk.as_result(y, instruction)
    if (inner := _negated(walk, y, dtype)) is not None:
        return _binary(walk, instruction, "subtract", x, inner)
    if (inner := _negated(walk, x, dtype)) is not None:
        return _binary(walk, instruction, "subtract", y, inner)
    return None


def subtract(walk: Walk, instruction: Instruction) -> Any:
    (x, y), dtype = instruction.args, instruction.result.dtype
    if dtype.kind not in _REAL:
        return None
    if walk.number(y) == 0:
        return walk.as_result(x, instruction)
    number = walk.number(x)
    if number == 0 and (dtype.kind == "i" or (type(number) is float and math.copysign(1, number) < 0)):
        return walk.make("negative", (walk.as_result(y, instruction),), instruction.result.shape, dtype)
    if (inner := _negated(walk, y, dtype)) is not None:
        return _binary(walk, instruction, "add", x, inner)
    return None


def multiply(walk: Walk, instruction: Instruction) -> Any:
    (x, y), dtype = instruction.args, instruction.result.dtype
    if dtype.kind not in _REAL:
        return None
    for factor, other in ((y, x), (x, y)):
        number = walk.number(factor)
        if number is None:
            continue
        if number == 1:
            return walk.as_result(other, instruction)
        if number == -1 and dtype.kind in _FLOAT:
            return walk.make("negative", (walk.as_result(other, instruction),), instruction.result.shape, dtype)
        if type(factor) is float and (inner := _negated(walk, other, dtype)) is not None:
            return _binary(walk, instruction, "multiply", inner, -factor)
    if x is y and dtype.kind in "fiu":
        return walk.make("square", (x,), x.shape, dtype)
    first, second = _negated(walk, x, dtype), _negated(walk, y, dtype)
    return None if first is None or second is None else _binary(walk, instruction, "multiply", first, second)


def divide(walk: Walk, instruction: Instruction) -> Any:
    (x, y), dtype = instruction.args, instruction.result.dtype
    number = walk.number(y)
    if dtype.kind not in _FLOAT or number is None or type(x) is not Value:
        return None
    if number == 1:
        return walk.as_result(x, instruction)
    if type(y) in (int, float) and x.dtype == dtype and (inverse := _exact_inverse(number, dtype)) is not None:
        return _binary(walk, instruction, "multiply", x, inverse)
    if type(y) is float and (inner := _negated(walk, x, dtype)) is not None:
        return _binary(walk, instruction, "divide", inner, -y)
    return None


def _exact_inverse(number: Any, dtype: np.dtype[Any]) -> float | None:
    """1 / number, if that is a number of `dtype` itself, with all its digits: for powers of two."""
    if dtype.kind != "f" or number == 0 or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
        return None
    limits = np.finfo(dtype)
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    inverse = 1 / float(number)
    return inverse if smallest <= abs(number) <= largest and smallest <= abs(inverse) <= largest else None


def negative(walk: Walk, instruction: Instruction) -> Any:
    (x,), dtype = instruction.args, instruction.result.dtype
    if (inner := _negated(walk, x, dtype)) is not None:
        return inner
    for op in ("multiply", "divide"):
        made = walk.definition(x, op)
        if made is not None and type(made.args[1]) is float and dtype.kind == "f":
            return walk.make(op, (made.args[0], -made.args[1]), x.shape, dtype)
    return None


def power(walk: Walk, instruction: Instruction) -> Any:
    (x, exponent), dtype = instruction.args, instruction.result.dtype
    number = walk.number(exponent)
    if type(x) is not Value or number is None or dtype.kind not in "fiu" or x.dtype != dtype:
        return None
    if number == 0:
        return walk.full(x.shape, 1, dtype) if x.shape == instruction.result.shape else None
    if number == 1:
        return walk.as_result(x, instruction)
    if number == 2:
        return walk.as_result(walk.make("square", (x,), x.shape, dtype), instruction)
    if dtype.kind != "f":
        return None
    if number == 3:
        squared = walk.make("square", (x,), x.shape, dtype)
        return walk.as_result(walk.make("multiply", (squared, x), x.shape, dtype), instruction)
    if number == -1:
        return walk.as_result(walk.make("reciprocal", (x,), x.shape, dtype), instruction)
    return None


# -- functions of one operand ----------------------------------------------------------------------


def even(walk: Walk, instruction: Instruction) -> Any:
    """abs and square do not see the sign."""
    (x,), dtype = instruction.args, instruction.result.dtype
    for op in ("negative", "abs"):
        made = walk.definition(x, op)
        if made is not None and made.args[0].dtype == dtype and dtype.kind == "f":
            return walk.make(instruction.op, made.args, x.shape, dtype)
    return x if instruction.op == "abs" and dtype.kind == "f" and walk.definition(x, "square") else None


def unchanged(walk: Walk, instruction: Instruction) -> Any:
    return instruction.args[0]


def unchanged_if_whole(walk: Walk, instruction: Instruction) -> Any:
    return instruction.args[0] if instruction.result.dtype.kind in "iub" else None


def never_for_integers(walk: Walk, instruction: Instruction) -> Any:
    """Integers are neither infinite nor NaN."""
    x, result = instruction.args[0], instruction.result
    return walk.full(result.shape, instruction.op == "isfinite", result.dtype) if x.dtype.kind in "iub" else None


def cast(walk: Walk, instruction: Instruction) -> Any:
    x, dtype = instruction.args[0], instruction.result.dtype
    if x.dtype == dtype:
        return x
    inner = walk.definition(x, "astype")
    if inner is not None and _is_exact(inner.args[0].dtype, x.dtype) and _converts_alike(inner.args[0], x, dtype):
        return walk.cast(inner.args[0], dtype)
    return None


def as_cast(walk: Walk, instruction: Instruction) -> Any:
    """To single precision for some work and back: nothing, for dtypes that are that precise."""
    return walk.cast(instruction.args[0], instruction.result.dtype)


def _is_exact(narrow: np.dtype[Any], wide: np.dtype[Any]) -> bool:
    """Whether every element of `narrow` is one of `wide`; NumPy calls int64 to float64 safe, too."""
    if narrow.kind in "iu" and wide.kind in "fc":
        return narrow.itemsize < wide.itemsize and np.can_cast(narrow, wide, "safe") and wide.kind == "f"
    return narrow.kind != "c" and wide.kind != "c" and np.can_cast(narrow, wide, "safe")


def _converts_alike(x: Value, wide: Value, dtype: np.dtype[Any]) -> bool:
    """Floats that an integer cannot hold are converted as the machine likes, integers wrap around.

    And integers of many digits may be rounded twice on their way to half precision.
    """
    if x.dtype.kind in "iu" and x.dtype.itemsize > 2 and dtype.kind in _FLOAT:
        return dtype.itemsize > 2
    return not (dtype.kind in "iu" and wide.dtype.kind in _FLOAT and x.dtype.kind != "b")


# -- choosing and comparing ------------------------------------------------------------------------


def largest(walk: Walk, instruction: Instruction) -> Any:
    x, y = instruction.args
    if x is y:
        return x
    neutral = -math.inf if instruction.op == "maximum" else math.inf
    if walk.number(y) == neutral:
        return walk.as_result(x, instruction)
    return walk.as_result(y, instruction) if walk.number(x) == neutral else None


def where(walk: Walk, instruction: Instruction) -> Any:
    (condition, x, y), result = instruction.args, instruction.result
    chosen = walk.number(condition)
    if chosen is not None:
        return walk.as_result(x if chosen else y, instruction)
    first, second = walk.number(x), walk.number(y)
    if x is y or (first is not None and second is not None and repr(first) == repr(second)):
        return walk.as_result(x, instruction)
    if condition.dtype.kind == "b" and (repr(first), repr(second)) in _TRUTHS:
        truth = condition if first else _not(walk, condition)
        return walk.as_result(truth, instruction)
    inverted = walk.definition(condition, "logical_not")
    if inverted is not None:
        return walk.make("where", (inverted.args[0], y, x), result.shape, result.dtype)
    for position, arg in ((1, x), (2, y)):
        inner = walk.definition(arg, "where")
        if inner is not None and inner.args[0] is condition and arg.dtype == result.dtype:
            taken = inner.args[position]
            if type(taken) is Value and (taken.dtype, taken.shape) == (arg.dtype, arg.shape):
                args = (condition, taken, y) if position == 1 else (condition, x, taken)
                return walk.make("where", args, result.shape, result.dtype)
    return None


#: One and zero, as what a condition is when it is converted; zero without a sign.
_TRUTHS = frozenset(
    (repr(kind(first)), repr(kind(not first))) for kind in (bool, int, float) for first in (True, False)
)


def _not(walk: Walk, x: Value) -> Value:
    return walk.make("logical_not", (x,), x.shape, np.dtype(bool))


def logical_not(walk: Walk, instruction: Instruction) -> Any:
    x = instruction.args[0]
    made = walk.definitions.get(x)
    if made is None:
        return None
    if made.op == "logical_not" and made.args[0].dtype.kind == "b":
        return made.args[0]
    opposite = _OPPOSITES.get(made.op)
    if opposite is None:
        return None
    whole = all(type(arg) is int or (type(arg) is Value and arg.dtype.kind in "iub") for arg in made.args)
    if whole or made.op in ("equal", "not_equal"):  # with NaN neither x < y nor x >= y
        return walk.make(opposite, made.args, x.shape, x.dtype)
    return None


_OPPOSITES = {
    "equal": "not_equal", "not_equal": "equal", "less": "greater_equal", "greater_equal": "less",
    "greater": "less_equal", "less_equal": "greater",
}  # fmt: skip


def both(walk: Walk, instruction: Instruction) -> Any:
    """logical_and and logical_or: one of True and False leaves the other operand, the other one decides."""
    neutral = instruction.op == "logical_and"
    x, y = instruction.args
    for number, other in ((walk.number(y), x), (walk.number(x), y)):
        if number is not None and bool(number) != neutral:
            return walk.full(instruction.result.shape, not neutral, instruction.result.dtype)
        if number is not None and type(other) is Value:
            return walk.as_result(other, instruction)
    return walk.as_result(x, instruction) if x is y else None


def exclusive(walk: Walk, instruction: Instruction) -> Any:
    x, y = instruction.args
    for number, other in ((walk.number(y), x), (walk.number(x), y)):
        if number is not None and type(other) is Value:
            truth = walk.cast(other, instruction.result.dtype)
            return walk.as_result(_not(walk, truth) if number else truth, instruction)
    return None


def bits(walk: Walk, instruction: Instruction) -> Any:
    x, y = instruction.args
    return x if x is y else None


def inverted_bits(walk: Walk, instruction: Instruction) -> Any:
    made = walk.definition(instruction.args[0], "bitwise_invert")
    return None if made is None else made.args[0]


#: The rules, by kernel.
RULES: Table = {
    "add": [add],
    "subtract": [subtract],
    "multiply": [multiply],
    "divide": [divide],
    "negative": [negative],
    "pow": [power],
    "square": [even],
    "abs": [even],
    "positive": [unchanged],
    "floor": [unchanged_if_whole],
    "ceil": [unchanged_if_whole],
    "trunc": [unchanged_if_whole],
    "round": [unchanged_if_whole],
    "isfinite": [never_for_integers],
    "isnan": [never_for_integers],
    "isinf": [never_for_integers],
    "astype": [cast],
    "widened": [as_cast],
    "narrowed": [as_cast],
    "maximum": [largest],
    "minimum": [largest],
    "where": [where],
    "logical_not": [logical_not],
    "logical_and": [both],
    "logical_or": [both],
    "logical_xor": [exclusive],
    "bitwise_and": [bits],
    "bitwise_or": [bits],
    "bitwise_invert": [inverted_bits],
}
ELEMENTWISE = merged({op: [number_last] for op in sorted(COMMUTATIVE)}, RULES, OPERANDS)
TABLE = merged(FILLED, ELEMENTWISE)
