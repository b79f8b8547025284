"""What is checked when an operation is recorded: axes, shapes, and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends import NUMPY
from ..errors import DtypeError, GradientError, ShapeError
from ..functions.axes import all_axes, negative_axes
from .recording import Call, Operand, Shape


def real(call: Call, x: Operand) -> Operand:
    """`x`, which must not be complex."""
    if x.dtype.kind == "c":
        raise DtypeError(f"{call.caller}: expected real numbers, got {x.dtype.name}.")
    return x


def axes_of(call: Call, axis: Any, x: Operand) -> tuple[int, ...]:
    return negative_axes(call.caller, axis, len(x.shape))


def broadcast(call: Call, shape: Shape, *operands: Operand) -> Shape:
    """The shape that the operands have together; it must be `shape` if that is not ()."""
    shapes = [operand.shape for operand in operands]
    try:
        together = np.broadcast_shapes(*shapes, shape)
    except ValueError:
        together = None
    if together is None or (shape and together != shape):
        fit = f"do not broadcast to {shape}" if shape else "cannot be broadcast together"
        raise ShapeError(f"{call.caller}: shapes {' and '.join(map(str, shapes))} {fit}.")
    return together


def product_shape(call: Call, x: Operand, y: Operand) -> Shape:
    """The shape of x @ y."""
    rows, columns = x.shape[-2:-1], y.shape[-1:] if len(y.shape) > 1 else ()
    if x.shape and y.shape and x.shape[-1] == y.shape[-2 if len(y.shape) > 1 else -1]:
        try:
            return (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), *rows, *columns)
        except ValueError:
            pass
    raise ShapeError(f"{call.caller}: shapes {x.shape} and {y.shape} cannot be multiplied as matrices.")


def scale_of(call: Call, x: Operand, scale: Any, slot: int | None) -> tuple[Operand | None, tuple[int, ...]]:
    """The scale of a normalisation, and the axes that it says are normalised."""
    real(call, x)
    if scale is None:
        if slot is not None:
            raise GradientError(f"{call.caller}: scale_slot is given without the values of scale.")
        weight, axes = None, all_axes(1)
    else:
        weight = call.data_operand("scale", slot, scale)
        axes = all_axes(len(weight.shape))
    if not axes or not x.shape or (weight is not None and x.shape[-len(axes) :] != weight.shape):
        raise ShapeError(
            f"{call.caller}: scale has shape {None if weight is None else weight.shape}; "
            f"expected the last axes of the input's shape {x.shape}."
        )
    return weight, axes


def checked_statistics(call: Call, x: Any, axes: tuple[int, ...], mean: Any, var: Any, eps: float) -> tuple[Any, Any]:
    """The given mean, and 1 / sqrt(var + eps), in shapes that broadcast against `x`; they must be those of `x`."""
    xp = NUMPY.xp
    wide = xp.widened(x)
    expected = (xp.mean(wide, axes, True), xp.var(wide, axes, 0, True))
    given = []
    for label, value, own in zip(("mean", "var"), (mean, var), expected):
        value = np.asarray(value, dtype=own.dtype)
        if value.size != own.size:
            raise ShapeError(
                f"{call.caller}: {label} has shape {value.shape}; expected {own.size} numbers, one for each row of "
                f"input_data of shape {x.shape}."
            )
        given.append(value.reshape(own.shape))
    unit = np.finfo(x.dtype).eps
    deviation, magnitude = np.sqrt(expected[1]), np.abs(expected[0])
    for label, value, own, spread, size in zip(
        ("mean", "var"), given, expected, (deviation, expected[1]), (magnitude, magnitude**2)
    ):
        # what rounding explains: of sums, and of differences of large numbers
        far = np.abs(value - own) > unit**0.5 * spread + 64 * unit * size
        if far.any():
            raise GradientError(
                f"{call.caller}: {label} is {value[far].flat[0]:.6g}, but that of input_data is "
                f"{own[far].flat[0]:.6g}. The gradient goes through both, so they must be those of the data itself"
                f"{' (divided by the number of elements, not by one less)' if label == 'var' else ''}."
            )
    return given[0], 1 / np.sqrt(given[1] + eps)
