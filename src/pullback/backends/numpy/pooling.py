"""NumPy kernels: pooling and interpolation."""

from __future__ import annotations

import itertools as _itertools
import math as _math
from typing import Any

import numpy as _np

from .. import windows as _windows

_CACHED_BYTES = 1 << 19  # of the planes that are worked on at a time


# -- maxima ------------------------------------------------------------------------------------------------------


def max_pool(x: Any, axes: Any) -> tuple[Any, Any]:
    """The largest element of every window, and where it is: the first one of equal elements."""
    size = tuple(axis.size for axis in axes)
    out = tuple(axis.out for axis in axes)
    planes = x.reshape(-1, *size)
    best = _np.full((len(planes), *out), _lowest(x.dtype), x.dtype)
    taps = _taps(axes)
    kernel = [_windows.positions(axis).shape[1] for axis in axes]
    kind = _np.min_scalar_type(_math.prod(kernel))
    first = _outer_sum([_first_tap(axis) * step for axis, step in zip(axes, _row_major(kernel))]).astype(kind)
    winner = _np.empty(best.shape, kind)
    winner[...] = first
    together = max(1, _CACHED_BYTES // max(1, _math.prod(size) * x.itemsize))
    for start in range(0, len(planes), together):
        some = slice(start, start + together)
        _largest(planes[some], taps, best[some], winner[some])
    starts = [_windows.first_positions(axis) for axis in axes]
    begin = _outer_sum([s * step for s, step in zip(starts, _row_major(size))])
    moves = [_np.arange(k) * getattr(axis, "dilation", 1) for axis, k in zip(axes, kernel)]
    offsets = _outer_sum([m * step for m, step in zip(moves, _row_major(size))]).reshape(-1)
    indices = offsets.take(winner)
    indices += begin
    shape = (*x.shape[:2], *out)
    return best.reshape(shape), indices.reshape(shape)


def max_pool_indices(x: Any, axes: Any) -> Any:
    return max_pool(x, axes)[1]


def _largest(planes: Any, taps: Any, best: Any, winner: Any) -> None:
    """Compare the taps one after the other, all windows at once."""
    for number, results, reads in taps:
        seen, target, who = _read(planes, reads), best[results], winner[results]
        better = _np.multiply(seen > target, winner.dtype.type(number))
        _np.maximum(target, seen, out=target)
        _np.maximum(who, better, out=who)  # taps come in increasing order
    if _np.isnan(best).any() if best.dtype.kind not in "iub" else False:
        for number, results, reads in taps:
            who = winner[results]
            bad = _np.multiply(_np.isnan(_read(planes, reads)), winner.dtype.type(number))
            _np.maximum(who, bad, out=who, where=_np.isnan(best[results]))


def _taps(axes: Any) -> list[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    """The taps of an n-dimensional window: number, results, and what is read along each axis."""
    kernel = [_windows.positions(axis).shape[1] for axis in axes]
    found = []
    for parts in _itertools.product(*(_windows.selections(axis) for axis in axes)):
        number = sum(part[0] * step for part, step in zip(parts, _row_major(kernel)))
        found.append((number, (slice(None), *(part[1] for part in parts)), tuple(part[2] for part in parts)))
    return found


def _read(planes: Any, reads: Any) -> Any:
    regular = tuple(r if isinstance(r, slice) else slice(None) for r in reads)
    seen = planes[(slice(None), *regular)]
    for axis, r in enumerate(reads):
        if not isinstance(r, slice):
            seen = seen.take(r, axis=axis + 1)
    return seen


def _first_tap(axis: Any) -> Any:
    """The first tap of each window that is not in the padding."""
    return _np.argmax(_windows.positions(axis) != _windows.OUTSIDE, axis=1)


def _lowest(dtype: Any) -> Any:
    return _np.iinfo(dtype).min if dtype.kind in "iu" else False if dtype.kind == "b" else -_np.inf


def _outer_sum(parts: Any) -> Any:
    """sum of parts[0][:, None, ...], parts[1][None, :, ...], ..."""
    total = parts[0]
    for part in parts[1:]:
        total = total[..., None] + part
    return total


def _row_major(shape: Any) -> list[int]:
    return [_math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def pool_gather(x: Any, indices: Any) -> Any:
    """The elements at `indices`, which count along the spatial axes of their plane."""
    return x.reshape(-1).take(_in_all(indices, _math.prod(x.shape[2:])))


def pool_scatter(x: Any, indices: Any, size: Any) -> Any:
    """Zeros with the elements of `x` added at `indices`: the transpose of `pool_gather`."""
    out = _np.zeros((*x.shape[:2], *size), x.dtype)
    _np.add.at(out.reshape(-1), _in_all(indices, _math.prod(size)).reshape(-1), x.reshape(-1))
    return out


def _in_all(indices: Any, plane: int) -> Any:
    """Positions in one plane as positions in the whole array."""
    count = indices.shape[0] * indices.shape[1]
    start = _np.arange(0, count * plane, plane) if plane else _np.zeros(count, _np.int64)
    return indices + start.reshape(*indices.shape[:2], *(1,) * (indices.ndim - 2))


# -- averages and interpolation ----------------------------------------------------------------------------------


def resample(x: Any, axes: Any, transposed: bool) -> Any:
    """Apply each axis's linear map: by matrix product where that is faster than reading tap by tap."""
    dtype = x.dtype
    half = dtype.itemsize == 2 and dtype.kind not in "iu"
    values = x.astype(_np.float32) if half else x
    for number, axis in enumerate(axes):
        values = _resampled(values, number - len(axes), axis, transposed)
    return values.astype(dtype, copy=False)


def _resampled(x: Any, position: int, axis: Any, transposed: bool) -> Any:
    """The map along one axis."""
    taps = _windows.table(axis, transposed)[0].shape[1]
    if taps > 1 and x.shape[position] <= 64 * taps and x.dtype.kind in "fc":
        dense = _windows.matrix(axis, transposed).astype(x.dtype)
        if position == -1:
            result = _np.matmul(x.reshape(-1, x.shape[-1]), dense).reshape(*x.shape[:-1], dense.shape[1])
        else:
            after = x.shape[position + 1 :]
            flat = x.reshape(*x.shape[: position + 1], _math.prod(after))
            result = _np.matmul(dense.T, flat)
            result = result.reshape(*result.shape[:-1], *after)
        if _np.isfinite(result.sum()):
            return result  # else an infinity or NaN has spread through products with zero
    return _tap_by_tap(x, position, axis, transposed)


def _tap_by_tap(x: Any, position: int, axis: Any, transposed: bool) -> Any:
    index, weight = _windows.table(axis, transposed)
    shape = list(x.shape)
    shape[position] = len(index)
    out = _np.zeros(shape, x.dtype)
    after = (slice(None),) * (-1 - position)
    for tap, results, reads in _windows.selections(axis, transposed):
        factor = weight[results, tap]
        there = index[results, tap] != _windows.OUTSIDE
        seen = x[(..., reads, *after)] if isinstance(reads, slice) else x.take(reads, axis=position)
        if not (factor == 1).all():
            seen = seen * factor.astype(x.dtype).reshape(-1, *(1,) * len(after))
        if not there.all():
            seen[(..., ~there, *after)] = 0
        out[(..., results, *after)] += seen
    return out
