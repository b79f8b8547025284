"""Portable kernels: pooling and interpolation."""

from __future__ import annotations

import itertools as _itertools
import math as _math
from typing import Any

import numpy as _np

from ... import dtypes
from .. import windows as _windows


def max_pool(xp: Any, x: Any, axes: Any) -> tuple[Any, Any]:
    indices = xp.max_pool_indices(x, axes)
    return xp.pool_gather(x, indices), indices


def max_pool_indices(xp: Any, x: Any, axes: Any) -> Any:
    """Compare the taps one after the other; a tap in the padding reads its window's first element instead."""
    size = tuple(axis.size for axis in axes)
    steps = [_math.prod(size[number + 1 :]) for number in range(len(size))]
    reads = []
    for axis in axes:
        index = _windows.positions(axis)
        reads.append(_np.where(index == _windows.OUTSIDE, _windows.first_read(index)[:, None], index))
    best, where = None, None
    for parts in _itertools.product(*(index.T for index in reads)):
        place: Any = _np.zeros(1, _np.int64)
        for part, step in zip(parts, steps):
            place = place[..., None] + part * step
        place = xp.broadcast_to(_constant(place[0], dtypes.int64, x), (*x.shape[:2], *place.shape[1:]))
        seen = xp.pool_gather(x, place)
        if best is None:
            best, where = seen, place
        else:
            better = xp.logical_or(xp.greater(seen, best), xp.not_equal(seen, seen))
            best, where = xp.where(better, seen, best), xp.where(better, place, where)
    return where


def pool_gather(xp: Any, x: Any, indices: Any) -> Any:
    planes, flat = _in_rows(xp, x, indices)
    return xp.reshape(xp.take_along_axis(planes, flat, -1), indices.shape)


def pool_scatter(xp: Any, x: Any, indices: Any, size: Any) -> Any:
    count = x.shape[0] * x.shape[1]
    flat = xp.reshape(indices, (count, _math.prod(indices.shape[2:])))
    start = xp.reshape(xp.arange(0, count, 1, indices.dtype, indices) * _math.prod(size), (count, 1))
    total = xp.zeros((count * _math.prod(size),), x.dtype, x)
    total = xp.index_add(total, xp.reshape(x, (-1,)), (xp.reshape(flat + start, (-1,)),))
    return xp.reshape(total, (*x.shape[:2], *size))


def max_pool_gradient(xp: Any, x: Any, indices: Any, axes: Any) -> Any:
    """`pool_scatter` to the places that `max_pool` found: a library that knows the windows need not add at random."""
    return xp.pool_scatter(x, indices, tuple(axis.size for axis in axes))


def _in_rows(xp: Any, x: Any, indices: Any) -> tuple[Any, Any]:
    """Planes and indices as the rows of two matrices."""
    count = x.shape[0] * x.shape[1]
    flat = xp.reshape(indices, (count, _math.prod(indices.shape[2:])))
    return xp.reshape(x, (count, _math.prod(x.shape[2:]))), flat


def resample(xp: Any, x: Any, axes: Any, transposed: bool) -> Any:
    for number, axis in enumerate(axes):
        position = number - len(axes)
        dense = _constant(_windows.matrix(axis, transposed), None, x)
        before, after = tuple(x.shape[:position]), tuple(x.shape[position + 1 :]) if position < -1 else ()
        flat = xp.reshape(x, (*before, x.shape[position], _math.prod(after)))
        x = xp.reshape(xp.matmul(xp.matrix_transpose(dense), flat), (*before, dense.shape[1], *after))
    return x


def _constant(values: Any, dtype: Any, like: Any) -> Any:
    """An array of `values` in the library, on the device and, unless one is given, in the dtype of `like`."""
    from .. import of

    backend: Any = of(like)
    chosen = backend.dtype_of(like) if dtype is None else dtype
    return backend.asarray(values, chosen, backend.device_of(like), None)
