"""NumPy kernels: pooling and interpolation."""

from __future__ import annotations

import itertools as _itertools
import math as _math
from functools import lru_cache as _lru_cache
from typing import Any

import numpy as _np

from .. import windows as _windows
from .precision import widened as _widened

_CACHED_BYTES = 1 << 19  # of the planes that are worked on at a time


# -- maxima ------------------------------------------------------------------------------------------------------


def max_pool(x: Any, axes: Any) -> tuple[Any, Any]:
    """The largest element of every window, and where it is: the first one of equal elements."""
    size = tuple(axis.size for axis in axes)
    out = tuple(axis.out for axis in axes)
    taps, first, begin, offsets = _plan(axes)
    planes = x.reshape(-1, *size)
    best = _np.full((len(planes), *out), _lowest(x.dtype), x.dtype)
    winner = _np.empty(best.shape, first.dtype)
    winner[...] = first
    together = max(1, _CACHED_BYTES // max(1, _math.prod(size) * x.itemsize))
    for start in range(0, len(planes), together):
        some = slice(start, start + together)
        _largest(planes[some], taps, best[some], winner[some])
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


@_lru_cache(256)
def _plan(axes: Any) -> tuple[Any, Any, Any, Any]:
    """What depends on the windows alone.

    The taps (number, results, what is read along each axis); each window's first tap that is not in the padding; where
    in the plane each window begins, in the padding or not; and where each tap is from there.
    """
    kernel = [_windows.positions(axis).shape[1] for axis in axes]
    numbers, steps = _row_major(kernel), _row_major([axis.size for axis in axes])
    taps = []
    for parts in _itertools.product(*(_windows.selections(axis) for axis in axes)):
        number = sum(part[0] * step for part, step in zip(parts, numbers))
        taps.append((number, (slice(None), *(part[1] for part in parts)), tuple(part[2] for part in parts)))
    first = _outer_sum([_first_tap(axis) * step for axis, step in zip(axes, numbers)])
    begin = _outer_sum([_windows.first_positions(axis) * step for axis, step in zip(axes, steps)])
    moves: list[Any] = [_np.arange(k) * getattr(axis, "dilation", 1) for axis, k in zip(axes, kernel)]
    offsets = _outer_sum([move * step for move, step in zip(moves, steps)]).reshape(-1)
    return taps, first.astype(_np.min_scalar_type(_math.prod(kernel))), begin, offsets


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
    values = _widened(x)
    if _is_small(axes) and values.dtype.kind in "fc":
        result = _product(_all_at_once, values, axes, transposed)
        if result is not None:
            return result.astype(dtype, copy=False)
    # the last axis is the slowest one: it comes when the array is smallest
    growing = _math.prod(a.out for a in axes) > _math.prod(a.size for a in axes)
    for position in range(-1, -1 - len(axes), -1) if growing != transposed else range(-len(axes), 0):
        values = _resampled(values, position, axes[position], transposed)
    return values.astype(dtype, copy=False)


def _is_small(axes: Any) -> bool:
    """Whether the matrix of the whole map costs no more than the maps of the axes one after the other."""
    whole = _math.prod(a.size * a.out for a in axes)
    return len(axes) > 1 and whole <= 2 * _math.prod(a.size for a in axes) and whole <= 1 << 16


def _all_at_once(x: Any, axes: Any, transposed: bool) -> Any:
    dense = _np.ones((1, 1))
    for axis in axes:
        dense = _np.kron(dense, _windows.matrix(axis, transposed))
    flat = x.reshape(-1, len(dense))
    return (flat @ dense.astype(x.dtype)).reshape(*x.shape[:2], *(a.size if transposed else a.out for a in axes))


def _resampled(x: Any, position: int, axis: Any, transposed: bool) -> Any:
    """The map along one axis."""
    taps = _windows.table(axis, transposed)[0].shape[1]
    if taps > 1 and x.shape[position] <= 64 * taps and x.dtype.kind in "fc":
        result = _product(_by_matrix, x, position, axis, transposed)
        if result is not None:
            return result
    return _tap_by_tap(x, position, axis, transposed)


def _product(function: Any, *arguments: Any) -> Any:
    """A matrix product's result; None if an infinity or NaN may have spread through products with zero."""
    with _np.errstate(all="ignore"):
        result = function(*arguments)
        return result if _np.isfinite(result.sum()) else None


def _by_matrix(x: Any, position: int, axis: Any, transposed: bool) -> Any:
    dense = _windows.matrix(axis, transposed).astype(x.dtype)
    if position == -1:
        return _np.matmul(x.reshape(-1, x.shape[-1]), dense).reshape(*x.shape[:-1], dense.shape[1])
    after = x.shape[position + 1 :]
    result = _np.matmul(dense.T, x.reshape(*x.shape[: position + 1], _math.prod(after)))
    return result.reshape(*result.shape[:-1], *after)


def _tap_by_tap(x: Any, position: int, axis: Any, transposed: bool) -> Any:
    index, weight = _windows.table(axis, transposed)
    shape = list(x.shape)
    shape[position] = len(index)
    out: Any = _np.zeros(shape, x.dtype)
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
