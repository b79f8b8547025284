"""Portable kernels: reading and writing parts."""

from __future__ import annotations

import math
from typing import Any


def place(xp: Any, value: Any, shape: tuple[int, ...], index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    integers = [part for part in parts if hasattr(part, "dtype") and not str(part.dtype).endswith("bool")]
    if not integers:  # no position is named twice
        return xp.setitem(xp.zeros(shape, value.dtype, value), value, index)
    size = math.prod(shape)
    numbers = xp.arange(0, size, 1, integers[0].dtype, value)
    positions = xp.getitem(xp.reshape(numbers, shape), index)
    count = math.prod(positions.shape)
    placed = _add_up(xp, xp.reshape(value, (1, count)), xp.reshape(positions, (1, count)), numbers)
    return xp.reshape(placed, shape)


def _add_up(xp: Any, value: Any, positions: Any, numbers: Any) -> Any:
    """For each of `numbers` the sum along the last axis of the elements of `value` at that position."""
    hits = xp.equal(xp.expand_dims(positions, (-1,)), numbers)
    value = xp.expand_dims(value, (-1,))
    return xp.sum(xp.where(hits, value, xp.zeros_like(value)), (-2,), False)


def take_transposed(xp: Any, value: Any, indices: Any, size: int, axis: int) -> Any:
    shape = [1] * len(value.shape)
    shape[axis] = indices.shape[0]
    return take_along_axis_transposed(xp, value, xp.reshape(indices, tuple(shape)), size, axis)


def take_along_axis_transposed(xp: Any, value: Any, indices: Any, size: int, axis: int) -> Any:
    last, back = _last(len(value.shape), axis), _back(len(value.shape), axis)
    where = xp.permute_dims(indices, last)
    where = xp.where(xp.less(where, xp.zeros_like(where)), where + size, where)
    numbers = xp.arange(0, size, 1, indices.dtype, value)
    return xp.permute_dims(_add_up(xp, xp.permute_dims(value, last), where, numbers), back)


def put_along_axis(xp: Any, x: Any, value: Any, indices: Any, axis: int) -> Any:
    ndim, size = len(x.shape), x.shape[axis]
    last, back = _last(ndim, axis), _back(ndim, axis)
    where = xp.permute_dims(indices, last)
    where = xp.where(xp.less(where, xp.zeros_like(where)), where + size, where)
    x = xp.permute_dims(x, last)
    if hasattr(value, "shape"):
        value = xp.reshape(value, (1,) * (ndim - len(value.shape)) + tuple(value.shape))
        value = xp.permute_dims(value, last)
    else:
        value = xp.full((1,) * ndim, value, x.dtype, x)
    numbers = xp.arange(0, size, 1, indices.dtype, x)
    for k in range(where.shape[-1]):  # one after the other, so that the last one stays
        chosen = xp.getitem(value, (..., slice(k, k + 1))) if value.shape[-1] > 1 else value
        x = xp.where(xp.equal(xp.getitem(where, (..., slice(k, k + 1))), numbers), chosen, x)
    return xp.permute_dims(x, back)


def scatter_extremum(xp: Any, x: Any, value: Any, indices: Any, axis: int, largest: bool) -> Any:
    """Values in ascending (descending) order, of which the last for a place stays; NaN are last in any case."""
    is_float = "float" in str(value.dtype)
    key = value if largest or not is_float else -value
    order = xp.argsort(key, (axis,), not largest and not is_float, True)
    value, indices = xp.take_along_axis(value, order, axis), xp.take_along_axis(indices, order, axis)
    return xp.put_along_axis(x, value, indices, axis)


def _last(ndim: int, axis: int) -> tuple[int, ...]:
    """The permutation that moves `axis` to the end."""
    return (*(a for a in range(-ndim, 0) if a != axis), axis)


def _back(ndim: int, axis: int) -> tuple[int, ...]:
    """The permutation that moves the last axis to `axis`."""
    order = list(range(-ndim, -1))
    order.insert(ndim + axis, -1)
    return tuple(order)


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
