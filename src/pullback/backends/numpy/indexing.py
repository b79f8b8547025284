"""Reading and writing parts of arrays.

NumPy adds up at repeated positions fast (`add.at`) for one-dimensional arrays only, so everything else
is brought to that form. An index without arrays names every position once: plain assignment does.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from .precision import in_float32 as _in_float32


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def setitem(x: Any, value: Any, index: Any) -> Any:
    """A copy of `x` with `value` at `index`."""
    out = _np.array(x)
    out[index] = value
    return out


def place(value: Any, shape: Any, index: Any) -> Any:
    """Zeros with `value` added at `index`: the transpose of reading there."""
    if not _names_once(index):
        return _added_up(value, shape, index)
    out = _np.zeros(shape, value.dtype)
    out[index] = value
    return out


def place_into(total: Any, value: Any, index: Any) -> None:
    """Add `place(value, total.shape, index)` to `total`, in place: n reads of parts cost no n arrays of the whole."""
    if _names_once(index):
        total[index] += value
    elif total.dtype.itemsize > 2 and total.flags.c_contiguous:
        _add_at(total, index, value)
    else:
        total += place(value, total.shape, index)


@_in_float32
def _added_up(value: Any, shape: Any, index: Any) -> Any:
    out = _np.zeros(shape, value.dtype)
    _add_at(out, index, value)
    return out


def index_add(x: Any, value: Any, index: Any) -> Any:
    """A copy of `x` with `value` added at `index`, once for each time that a position is named."""
    if not _names_once(index):
        return _with_added(x, value, index)
    out = _np.array(x)
    out[index] += value
    return out


@_in_float32
def _with_added(x: Any, value: Any, index: Any) -> Any:
    out = _np.array(x, order="C")  # `_add_at` numbers its rows
    _add_at(out, index, value)
    return out


def overwritten(x: Any, index: Any) -> Any:
    """Which elements of a value written to `x[index]` are replaced by a later one for the same position."""
    order = _np.arange(x[index].size).reshape(x[index].shape)
    last = _np.zeros(x.shape, order.dtype)
    last[index] = order
    return last[index] != order


def take(x: Any, indices: Any, axis: int) -> Any:
    return _np.take(x, indices, axis)


@_in_float32
def take_transposed(value: Any, indices: Any, size: int, axis: int) -> Any:
    """Zeros of length `size` along `axis` with the slices of `value` added at `indices`."""
    rows = _np.moveaxis(value, axis, 0)
    indices = indices.astype(_np.int64, copy=False)  # a small dtype may not hold `size`
    out = _np.zeros((size, *rows.shape[1:]), value.dtype)
    _add_rows(out, _np.where(indices < 0, indices + size, indices), rows)
    return _np.moveaxis(out, 0, axis)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    return _np.take_along_axis(x, indices, axis)


@_in_float32
def take_along_axis_transposed(value: Any, indices: Any, size: int, axis: int) -> Any:
    """Zeros of length `size` along `axis` with every element of `value` added at its index."""
    value, indices = _np.broadcast_arrays(value, indices.astype(_np.int64, copy=False))
    rows = _np.moveaxis(value, axis, -1)
    flat = _np.zeros((*rows.shape[:-1], size), value.dtype)
    _np.add.at(flat.reshape(-1), _places(indices, size, axis), rows.ravel())
    return _np.moveaxis(flat, -1, axis)


def _places(indices: Any, size: int, axis: int) -> Any:
    """Where elements belong among those of an array whose `axis`, of that size, was moved to the end."""
    where = _np.moveaxis(indices, axis, -1)
    where = _np.where(where < 0, where + size, where)
    if where.size and (where.min() < 0 or where.max() >= size):
        raise IndexError(f"indices from {indices.min()} to {indices.max()} for an axis of size {size}")
    starts = _np.arange(_np.prod(where.shape[:-1], dtype=int)) * size
    return (starts.reshape(*where.shape[:-1], 1) + where).ravel()


@_in_float32
def scatter_extremum(x: Any, value: Any, indices: Any, axis: int, largest: bool) -> Any:
    """The largest (smallest) of the values for each place along `axis`, and `x` where there are none."""
    rows, kept = _np.moveaxis(value, axis, -1), _np.moveaxis(x, axis, -1)
    places = _places(indices.astype(_np.int64, copy=False), x.shape[axis], axis)
    is_hit = _np.zeros(kept.size, bool)
    is_hit[places] = True
    if x.dtype.kind == "b":
        start: Any = not largest
    elif x.dtype.kind == "f":
        start = -_np.inf if largest else _np.inf
    else:
        start = _np.iinfo(x.dtype).min if largest else _np.iinfo(x.dtype).max
    found = _np.full(kept.size, start, x.dtype)
    with _np.errstate(invalid="ignore"):  # of NaN, which is the largest and the smallest
        (_np.maximum if largest else _np.minimum).at(found, places, rows.ravel())
    out = _np.where(is_hit.reshape(kept.shape), found.reshape(kept.shape), kept)
    return _np.moveaxis(out, -1, axis)


def put_along_axis(x: Any, value: Any, indices: Any, axis: int) -> Any:
    """A copy of `x` with `value` at `indices` along `axis`."""
    shape = _np.broadcast_shapes(x.shape[:axis], indices.shape[:axis])
    if axis != -1:
        tail = _np.broadcast_shapes(x.shape[axis + 1 :], indices.shape[axis + 1 :])
    else:
        tail = ()
    out = _np.array(_np.broadcast_to(x, (*shape, x.shape[axis], *tail)))
    _np.put_along_axis(out, indices, value, axis)
    return out


def _names_once(index: Any) -> bool:
    """Whether no position can be named twice: there are no integer arrays in `index`."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(not isinstance(part, (list, _np.ndarray)) or _np.asarray(part).dtype == bool for part in parts)


def _add_at(out: Any, index: Any, value: Any) -> None:
    parts = index if isinstance(index, tuple) else (index,)
    if all(type(part) is int or getattr(part, "dtype", None) == _np.int64 for part in parts):
        # Leading axes are indexed by integers alone: number the rows.
        arrays = _np.broadcast_arrays(*parts)
        sizes = out.shape[: len(parts)]
        row = _np.zeros(arrays[0].shape, int)
        for array, size in zip(arrays, sizes):
            if array.size and not (-size <= array.min() and array.max() < size):
                raise IndexError(f"index {array} is out of bounds for an axis of size {size}")
            row = row * size + _np.where(array < 0, array + size, array)
        rest = out.shape[len(parts) :]
        value = _np.broadcast_to(value, row.shape + rest)
        _add_rows(out.reshape(-1, *rest) if out.size else out.reshape(0, *rest), row.ravel(), value.reshape(-1, *rest))
    else:
        _np.add.at(out, index, value)


def _add_rows(out: Any, rows: Any, value: Any) -> None:
    """Add `value[i]` to `out[rows[i]]`; `out` is contiguous, `rows` are not negative."""
    if value.size == 0:
        return
    if rows.size and (rows.min() < 0 or rows.max() >= out.shape[0]):
        raise IndexError(f"indices from {rows.min()} to {rows.max()} for an axis of size {out.shape[0]}")
    width = out[0].size
    flat, value, offsets = out.reshape(-1), value.reshape(len(rows), width), _np.arange(width)
    step = max(1, (1 << 15) // width)  # the positions of that many elements fit a cache
    for start in range(0, len(rows), step):
        stop = start + step
        _np.add.at(flat, (rows[start:stop, None] * width + offsets).ravel(), value[start:stop].ravel())
