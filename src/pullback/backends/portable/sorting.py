"""Portable kernels: sorting, searching and sets."""

from __future__ import annotations

from typing import Any

from ..axis_slice import axis_slice


def top_indices(xp: Any, x: Any, k: int, axis: Any, largest: bool = True) -> Any:
    order = xp.argsort(x, axis, largest, True)
    return xp.getitem(order, axis_slice(axis[0], None, k))
