"""Sorting, running totals, moving, looking up along an axis: kernels whose signatures are not the standard's.

`axis` is a tuple with one negative integer where the rule table says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from .axis_slice import axis_slice


class Searching:
    """Kernels over the namespace of `backend` and the other kernels in `xp`."""

    def __init__(self, backend: Any, xp: Any) -> None:
        self.backend = backend
        self.namespace = backend.namespace
        self.xp = xp

    # -- sorting -----------------------------------------------------------------------------------

    def sort(self, x: Any, axis: Any, descending: bool = False, stable: bool = True) -> Any:
        number = self.xp.as_number(x)
        return self.xp.astype(self.namespace.sort(number, axis=axis[0], descending=descending, stable=stable), x.dtype)

    def argsort(self, x: Any, axis: Any, descending: bool = False, stable: bool = True) -> Any:
        found = self.namespace.argsort(self.xp.as_number(x), axis=axis[0], descending=descending, stable=stable)
        return self._as_index(found)

    def argmax(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        axis = axis[0] if axis else None
        return self._as_index(self.namespace.argmax(self.xp.as_number(x), axis=axis, keepdims=keepdims))

    def argmin(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        axis = axis[0] if axis else None
        return self._as_index(self.namespace.argmin(self.xp.as_number(x), axis=axis, keepdims=keepdims))

    def searchsorted(self, x: Any, values: Any, sorter: Any, side: str) -> Any:
        x, values = self.xp.together((x, values))
        return self._as_index(self.namespace.searchsorted(x, values, side=side, sorter=sorter))

    def nonzero(self, x: Any) -> Any:
        return tuple(map(self._as_index, self.namespace.nonzero(x)))

    def unique(self, x: Any) -> Any:
        """First occurrences, inverse and counts of the elements of `x`, found on the host."""
        host = self.backend.to_numpy(x)
        _, indices, inverse, counts = np.unique(
            host, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
        )
        found = (indices, np.reshape(inverse, host.shape), counts)
        return tuple(self.backend.constant(part.astype(np.int64), x) for part in found)

    def isin(self, x: Any, values: Any, invert: bool = False) -> Any:
        found = np.isin(*(self.backend.to_numpy(part) for part in self.xp.together((x, values))), invert=invert)
        return self.backend.constant(found, x)

    # -- running totals ----------------------------------------------------------------------------

    def cumulative_sum(self, x: Any, axis: Any, reverse: bool = False) -> Any:
        if reverse:
            return self.xp.flip(self.cumulative_sum(self.xp.flip(x, axis), axis), axis)
        return self.namespace.cumulative_sum(self._in_full_width(x), axis=axis[0])

    def cumulative_prod(self, x: Any, axis: Any, reverse: bool = False, exclusive: bool = False) -> Any:
        if reverse:
            return self.xp.flip(self.cumulative_prod(self.xp.flip(x, axis), axis, False, exclusive), axis)
        total = self.namespace.cumulative_prod(self._in_full_width(x), axis=axis[0], include_initial=exclusive)
        if not exclusive:
            return total
        return self.xp.getitem(total, axis_slice(axis[0], 0, x.shape[axis[0]]))

    def _in_full_width(self, x: Any) -> Any:
        """Integers in 64 bits, in which NumPy adds and multiplies them."""
        kind = self.backend.dtype_of(x).kind
        if kind in ("float", "complex"):
            return x
        return self.xp.astype(x, self.backend.raw_dtype(dtypes.uint64 if kind == "uint" else dtypes.int64))

    # -- moving ------------------------------------------------------------------------------------

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return self.namespace.permute_dims(x, tuple(axis % len(x.shape) for axis in axes))

    def repeat(self, x: Any, repeats: int, axis: int) -> Any:
        return self.namespace.repeat(x, repeats, axis=axis)

    def tile(self, x: Any, repetitions: Any) -> Any:
        return self.namespace.tile(x, tuple(repetitions))

    # -- along an axis -----------------------------------------------------------------------------

    def take(self, x: Any, indices: Any, axis: int) -> Any:
        flat = self.xp.reshape(self._from_start(indices, x.shape[axis]), (-1,))
        found = self.namespace.take(x, flat, axis=axis)
        if len(indices.shape) == 1:
            return found
        before, after = x.shape[: axis + len(x.shape)], x.shape[axis + len(x.shape) + 1 :]
        return self.xp.reshape(found, (*before, *indices.shape, *after))

    def take_transposed(self, value: Any, indices: Any, size: int, axis: int) -> Any:
        """Zeros of length `size` along `axis` with the slices of `value` added at `indices`."""
        shape = list(value.shape)
        shape[axis] = size
        return self.place(value, tuple(shape), (Ellipsis, indices, *(slice(None),) * (-1 - axis)))

    def take_along_axis(self, x: Any, indices: Any, axis: int) -> Any:
        shape = np.broadcast_shapes(_without(x.shape, axis), _without(indices.shape, axis))
        x = self.xp.broadcast_to(x, _with(shape, x.shape[axis], axis))
        indices = self.xp.broadcast_to(indices, _with(shape, indices.shape[axis], axis))
        return self.namespace.take_along_axis(x, self._from_start(indices, x.shape[axis]), axis=axis)

    def take_along_axis_transposed(self, value: Any, indices: Any, size: int, axis: int) -> Any:
        """Zeros of length `size` along `axis` with every element of `value` added at its index."""
        shape = np.broadcast_shapes(value.shape, indices.shape)
        index = self._along(self.xp.broadcast_to(indices, shape), axis)
        return self.place(self.xp.broadcast_to(value, shape), _with(_without(shape, axis), size, axis), index)

    def put_along_axis(self, x: Any, value: Any, indices: Any, axis: int) -> Any:
        """A copy of `x` with `value` at `indices` along `axis`."""
        shape = np.broadcast_shapes(_without(x.shape, axis), _without(indices.shape, axis))
        x = self.xp.broadcast_to(x, _with(shape, x.shape[axis], axis))
        indices = self.xp.broadcast_to(indices, _with(shape, indices.shape[axis], axis))
        return self.xp.setitem(x, value, self._along(indices, axis))

    def place(self, value: Any, shape: Any, index: Any) -> Any:
        """Zeros with `value` added at `index`."""
        return self.xp.index_add(self.xp.zeros(tuple(shape), value.dtype, value), value, index)

    def place_diagonal(self, value: Any, shape: Any, offset: int) -> Any:
        """Zeros with `value` on a diagonal."""
        first = np.arange(value.shape[-1])
        return self.place(value, shape, (Ellipsis, first + max(-offset, 0), first + max(offset, 0)))

    def _as_index(self, x: Any) -> Any:
        """Positions as int64, as everywhere else; some libraries use smaller integers for them."""
        return self.xp.astype(x, self.backend.index_dtype)

    def _along(self, indices: Any, axis: int) -> tuple[Any, ...]:
        """An index that names `indices` along `axis` and every other axis by its own numbers."""
        shape = indices.shape
        parts: list[Any] = []
        for a in range(-len(shape), 0):
            numbers = [1] * len(shape)
            numbers[a] = shape[a]
            parts.append(indices if a == axis else np.arange(shape[a]).reshape(numbers))
        return tuple(parts)

    def _from_start(self, indices: Any, size: int) -> Any:
        """Indices counted from the start: the standard does not know negative ones."""
        self.backend.check_positions(indices, size)
        return self.xp.where(self.xp.less(indices, 0), indices + size, indices)


def _without(shape: Any, axis: int) -> tuple[int, ...]:
    position = len(shape) + axis
    return (*shape[:position], *shape[position + 1 :])


def _with(shape: Any, size: int, axis: int) -> tuple[int, ...]:
    position = len(shape) + 1 + axis
    return (*shape[:position], size, *shape[position:])
