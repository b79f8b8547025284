"""What passes know about kernels, by name."""

from __future__ import annotations

from typing import Any, Container

import numpy as np

from ...operations import names
from ..program import Value

#: One operand, whose shape the result has.
UNARY = names(lambda operation: operation.scalar and len(operation.inputs) == 1)

#: Several operands, which are broadcast together. An operand may be a Python number.
BROADCASTING = names(lambda operation: operation.scalar and len(operation.inputs) > 1)

ELEMENTWISE = UNARY | BROADCASTING

#: The same result, to the last bit, with the operands exchanged.
COMMUTATIVE = names(lambda operation: operation.commutes)

#: Elements of the first argument, in other places: nothing is computed, nothing else comes in.
MOVEMENT = names(lambda operation: operation.moves)

#: Arguments (x, axis, keepdims).
REDUCTIONS = names(lambda operation: operation.reduces)


def mentions(args: tuple[Any, ...], values: Container[Value]) -> bool:
    """Whether any of `values` is among the arguments."""
    for arg in args:
        kind = type(arg)
        if kind is Value:
            if arg in values:
                return True
        elif kind is tuple and mentions(arg, values):
            return True
    return False


def is_number(arg: Any) -> bool:
    """Whether an argument is a Python number; NumPy's scalars are arrays and have a dtype to keep."""
    return type(arg) in _NUMBERS


_NUMBERS = frozenset({int, float, bool, complex})


def key_of(arg: Any) -> Any:
    """What tells arguments apart that are not the same: unlike `==` also 1, 1.0 and True, and 0.0 and -0.0."""
    kind = type(arg)
    if kind is tuple:
        return tuple([key_of(part) for part in arg])
    if kind is float or kind is complex:
        return kind, repr(arg)
    if kind is int or kind is bool:
        return kind, arg
    if kind is slice:
        return slice, arg.start, arg.stop, arg.step
    if isinstance(arg, np.generic):
        return kind, arg.tobytes()
    return arg if kind.__hash__ is not None else (kind, id(arg))
