"""What the functions of this package take: checking it, and making tensors of what they draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backends, dtypes
from ..autodiff.base import make
from ..autodiff.creation import default_dtype
from ..errors import DtypeError, ShapeError

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

Shape = int | tuple[int, ...] | list[int]


def integer(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise DtypeError(f"{name} must be an integer, got {type(value).__name__}: {value!r:.60}") from None
    if not low <= number < high:
        raise ValueError(f"{name} is {number}; it must be at least {low} and below {high}.")
    return number


_ORDERS = {"uniform": "(shape, low, high)", "normal": "(shape, mean, std)", "exponential": "(shape, scale)"}


def number(name: str, label: str, value: Any) -> float:
    try:
        return float(value)
    except TypeError:
        raise DtypeError(
            f"{name}: {label} must be a number, got {type(value).__name__}: {value!r:.60}. "
            f"The arguments are {_ORDERS[name]}; for many of them multiply and add yourself."
        ) from None


def shape_of(shape: Any) -> tuple[int, ...]:
    if hasattr(shape, "__index__"):
        shape = (shape,)
    try:
        sizes = tuple(n.__index__() for n in shape)
    except (AttributeError, TypeError):
        raise ShapeError(f"shape must be an integer or a tuple of integers, got {shape!r:.60}") from None
    if any(n < 0 for n in sizes):
        raise ShapeError(f"shape must not have negative sizes, got {sizes}.")
    return sizes


def size_of(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def real_dtype(name: str, dtype: Any) -> dtypes.DType:
    chosen = default_dtype() if dtype is None else dtypes.get(dtype)
    if chosen.kind != "float":
        raise DtypeError(f"{name}: dtype must be a real floating-point one, got {chosen.name}.")
    return chosen


def as_tensor(values: Any, dtype: dtypes.DType, device: str | None) -> Tensor:
    raw = np.asarray(values).astype(dtypes.numpy_dtype(dtype), copy=False)
    return make(backends.transfer(raw, backends.for_device(device)[1]), None)
