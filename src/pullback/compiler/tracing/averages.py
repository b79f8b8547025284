"""Averages over windows side by side: a sum over axes of its own for the elements of each window."""

from __future__ import annotations

from math import prod
from typing import Any

from ...backends.windows import Adaptive, Average


def are_side_by_side(axes: Any) -> bool:
    """Whether the windows along each axis are of one length, touch each other and leave nothing over."""
    for axis in axes:
        if type(axis) is Average:
            if axis.padding or axis.kernel != axis.stride or axis.out * axis.kernel != axis.size:
                return False
        elif type(axis) is not Adaptive or not axis.out or axis.size % axis.out:
            return False
    return True


def averaged(xp: Any, x: Any, axes: Any) -> Any:
    """The average of each window."""
    if all(axis.out == 1 for axis in axes):
        return xp.sum(x, tuple(range(-len(axes), 0)), True) * (1 / prod(map(_count, axes)))
    ndim = len(x.shape)
    shape = (*x.shape[: ndim - len(axes)], *[n for axis in axes for n in (axis.out, axis.size // axis.out)])
    total = xp.sum(xp.reshape(x, shape), tuple(range(1 - 2 * len(axes), 0, 2)), False)
    return total * (1 / prod(map(_count, axes)))


def spread(xp: Any, x: Any, axes: Any) -> Any:
    """The transpose: each element, divided by how many there are, wherever its window was."""
    lead = x.shape[: len(x.shape) - len(axes)]
    one = (*lead, *[n for axis in axes for n in (axis.out, 1)])
    wide = (*lead, *[n for axis in axes for n in (axis.out, axis.size // axis.out)])
    part = xp.reshape(x * (1 / prod(map(_count, axes))), one)
    return xp.reshape(xp.broadcast_to(part, wide), (*lead, *[axis.size for axis in axes]))


def _count(axis: Any) -> int:
    """What a window's sum is divided by."""
    given = getattr(axis, "divisor", None)
    return axis.size // axis.out if given is None else int(given)
