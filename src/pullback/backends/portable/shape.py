"""Portable kernels: moving elements."""

from __future__ import annotations

from typing import Any

from ..axis_slice import axis_slice


def pad(xp: Any, x: Any, widths: Any, value: Any) -> Any:
    for axis, (before, after) in enumerate(widths):
        sides = [
            xp.full((*x.shape[:axis], size, *x.shape[axis + 1 :]), value, x.dtype, x) if size else None
            for size in (before, after)
        ]
        parts = [part for part in (sides[0], x, sides[1]) if part is not None]
        x = xp.concat(parts, axis - len(widths)) if len(parts) > 1 else x
    return x


def split(xp: Any, x: Any, sizes: Any, axis: int) -> Any:
    """Parts of the given sizes, one after the other along `axis`."""
    parts, start = [], 0
    for size in sizes:
        parts.append(xp.getitem(x, axis_slice(axis, start, start + size)))
        start += size
    return tuple(parts)


def resize(xp: Any, x: Any, size: int, axis: int) -> Any:
    """Cut `x` off along `axis` to `size`, or fill it up with zeros."""
    present = x.shape[axis]
    if present == size:
        return x
    if present > size:
        return xp.getitem(x, axis_slice(axis, 0, size))
    widths = [(0, 0)] * len(x.shape)
    widths[axis] = (0, size - present)
    return xp.pad(x, tuple(widths), 0)
