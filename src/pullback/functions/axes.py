"""Checking axes, and making them negative: rules and kernels see negative axes only."""

from __future__ import annotations

from operator import index
from typing import Any, Sequence

from ..errors import AxisError, DtypeError


def negative_axis(name: str, axis: Any, ndim: int) -> int:
    """One axis, counted from the end."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis if axis < 0 else axis - ndim
    try:
        number = index(axis)
    except TypeError:
        raise DtypeError(f"{name}: an axis must be an integer, got {axis!r}.") from None
    if not -ndim <= number < ndim:
        raise AxisError(f"{name}: axis {number} does not exist; the array has {ndim} axes.")
    return number if number < 0 else number - ndim


def negative_axes(name: str, axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """One axis or several different ones, counted from the end."""
    if type(axes) is int and -ndim <= axes < ndim:  # what nearly everybody writes, without a call for each
        return (axes if axes < 0 else axes - ndim,)
    if type(axes) is tuple:
        plain = [a if a < 0 else a - ndim for a in axes if type(a) is int and -ndim <= a < ndim]
        if len(plain) == len(axes) == len(set(plain)):
            return tuple(plain)
    if not isinstance(axes, (tuple, list)):
        return (negative_axis(name, axes, ndim),)
    found = tuple(negative_axis(name, axis, ndim) for axis in axes)
    if len(set(found)) != len(found):
        raise AxisError(f"{name}: an axis is named twice in {tuple(axes)}.")
    return found


def all_axes(ndim: int) -> tuple[int, ...]:
    return tuple(range(-ndim, 0))
