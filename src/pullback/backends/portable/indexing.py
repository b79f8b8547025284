"""Portable kernels: reading and writing parts."""

from __future__ import annotations

import math
from typing import Any


def index_add(xp: Any, x: Any, value: Any, index: Any) -> Any:
    return x + xp.place(xp.broadcast_to(value, xp.getitem(x, index).shape), x.shape, index)


def overwritten(xp: Any, x: Any, index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    dtype = next(part.dtype for part in parts if hasattr(part, "dtype"))
    selected = xp.getitem(x, index)
    order = xp.reshape(xp.arange(0, math.prod(selected.shape), 1, dtype, x), selected.shape)
    last = xp.setitem(xp.zeros(x.shape, dtype, x), order, index)
    return xp.not_equal(xp.getitem(last, index), order)


def sum_to_value(xp: Any, read: Any, shape: tuple[int, ...]) -> Any:
    """`read`, summed over what broadcasting a value of `shape` to it stretched; a value may have extra leading ones."""
    extra = max(len(shape) - len(read.shape), 0)
    summed = xp.sum_to(read, shape[extra:])
    return xp.reshape(summed, shape) if extra else summed


def read_last(xp: Any, x: Any, index: Any) -> Any:
    """`x[index]`, with zeros where a later element of a value written there would replace this one."""
    read = xp.getitem(x, index)
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if getattr(part, "shape", ())]
    if any(math.prod(array.shape) > 1 and not str(array.dtype).endswith("bool") for array in arrays):
        read = xp.where(xp.overwritten(x, index), xp.zeros_like(read), read)
    return read
