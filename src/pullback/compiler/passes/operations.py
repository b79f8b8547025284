"""What passes know about kernels, by name."""

from __future__ import annotations

from typing import Any, Container

import numpy as np

from ..program import Value


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: One operand, whose shape the result has.
UNARY = _names(
    """negative positive square reciprocal sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh abs sign floor ceil round trunc astype logical_not bitwise_invert isfinite isnan isinf signbit
    sigmoid erf erfc"""
)

#: Several operands, which are broadcast together. An operand may be a Python number.
BROADCASTING = _names(
    """add subtract multiply divide remainder floor_divide pow logaddexp hypot atan2 copysign nextafter maximum minimum
    where equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
    bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"""
)

ELEMENTWISE = UNARY | BROADCASTING

#: The same result, to the last bit, with the operands exchanged.
COMMUTATIVE = _names(
    """add multiply hypot maximum minimum equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor"""
)

#: Elements of the first argument, in other places: nothing is computed, nothing else comes in.
MOVEMENT = _names(
    """reshape permute_dims matrix_transpose expand_dims squeeze broadcast_to flip roll repeat tile diagonal"""
)

#: Arguments (x, axis, keepdims).
REDUCTIONS = _names("sum prod max min any all count_nonzero argmax argmin")


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
