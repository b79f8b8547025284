"""Portable kernels: sorting, searching and sets."""

from __future__ import annotations

from typing import Any

from ..axis_slice import axis_slice
from .core import integers


def top_indices(xp: Any, x: Any, k: int, axis: Any, largest: bool = True) -> Any:
    order = xp.argsort(x, axis, largest, True)
    return xp.getitem(order, axis_slice(axis[0], None, k))


def running_indices(xp: Any, x: Any, axis: Any, largest: bool = True) -> Any:
    best = _accumulated(xp, xp.maximum if largest else xp.minimum, x, axis[0])
    records = xp.logical_or(xp.equal(x, best), xp.not_equal(x, x))
    count = x.shape[axis[0]]
    places = xp.reshape(integers(xp, count, x), (count,) + (1,) * (-1 - axis[0]))
    return _accumulated(xp, xp.maximum, xp.where(records, places, xp.zeros_like(places)), axis[0])


def _accumulated(xp: Any, combine: Any, x: Any, axis: int) -> Any:
    """What `combine` makes of the elements up to each one, by doubling; twice the same must make no difference."""
    step, length = 1, x.shape[axis]
    while step < length:
        later = combine(xp.getitem(x, axis_slice(axis, step, None)), xp.getitem(x, axis_slice(axis, None, -step)))
        x = xp.concat([xp.getitem(x, axis_slice(axis, None, step)), later], axis)
        step *= 2
    return x
