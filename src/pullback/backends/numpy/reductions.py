"""Reductions. `axis` is None or a tuple of negative integers; running ones have one axis, in a tuple."""

from __future__ import annotations

import math as _math
from typing import Any

import numpy as _np

from ...dtypes import lost_squares as _lost_squares
from ..axis_slice import axis_slice as _axis_slice
from .precision import computed_in as _computed_in, in_float32 as _in_float32
from .scaling import all_between as _all_between, in_units as _in_units

_add_reduce = _np.add.reduce
_multiply_reduce = _np.multiply.reduce
_maximum_reduce = _np.maximum.reduce
_minimum_reduce = _np.minimum.reduce
_or_reduce = _np.logical_or.reduce
_and_reduce = _np.logical_and.reduce
_SUMS_ITSELF = frozenset("fdFD")  # dtypes whose mean is the sum in that dtype, divided


@_in_float32
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _add_reduce(x, axis, None, None, keepdims)


def _count(x: Any, axis: Any) -> int:
    return x.size if axis is None else _math.prod([x.shape[a] for a in axis])


@_in_float32
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    count = _count(x, axis)
    if not count:
        with _np.errstate(all="ignore"):
            return _np.true_divide(_add_reduce(x, axis, None, None, keepdims), 0)
    if x.dtype.char in _SUMS_ITSELF:
        return _add_reduce(x, axis, None, None, keepdims) / count
    return _np.mean(x, axis=axis, keepdims=keepdims)


@_in_float32
def var(x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
    if _count(x, axis) > correction:
        with _np.errstate(over="ignore", invalid="ignore"):
            out = _np.asarray(_np.var(x, axis=axis, ddof=correction, keepdims=keepdims))
        if not _all_between(out, -1.0):
            return _in_units(
                x, axis, keepdims, lambda part: _np.var(part, axis=axis, ddof=correction, keepdims=True), 2
            )
        return out
    with _np.errstate(all="ignore"):
        deviation = _np.abs(x - mean(x, axis, True))
        return _np.true_divide(sum(deviation * deviation, axis, keepdims), 0)


@_in_float32
def std(x: Any, axis: Any = None, correction: Any = 0, keepdims: bool = False) -> Any:
    if _count(x, axis) > correction:
        with _np.errstate(over="ignore", invalid="ignore"):
            squares = _np.asarray(_np.var(x, axis=axis, ddof=correction, keepdims=keepdims))
        if _all_between(squares, _lost_squares(squares.dtype)):
            return _np.sqrt(squares)
        return _in_units(x, axis, keepdims, lambda part: _np.std(part, axis=axis, ddof=correction, keepdims=True), 1)
    return _np.sqrt(var(x, axis, correction, keepdims))


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _maximum_reduce(x, axis, None, None, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _minimum_reduce(x, axis, None, None, keepdims)


@_in_float32
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _multiply_reduce(x, axis, None, None, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _or_reduce(x, axis, None, None, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _and_reduce(x, axis, None, None, keepdims)


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _add_reduce(_np.not_equal(x, 0), axis, _np.int64, None, keepdims)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.argmax(x, axis=None if axis is None else axis[0], keepdims=keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.argmin(x, axis=None if axis is None else axis[0], keepdims=keepdims)


@_in_float32
def cumulative_sum(x: Any, axis: Any, reverse: bool = False) -> Any:
    return _np.flip(_np.cumsum(_np.flip(x, axis), axis[0]), axis) if reverse else _np.cumsum(x, axis[0])


def cumulative_prod(x: Any, axis: Any, reverse: bool = False, exclusive: bool = False) -> Any:
    if reverse:
        return _np.flip(cumulative_prod(_np.flip(x, axis), axis, False, exclusive), axis)
    if not exclusive:
        return _np.cumprod(x, axis[0])
    out = _np.ones_like(x)
    if x.shape[axis[0]] > 1:
        _np.cumprod(x[_axis_slice(axis[0], None, -1)], axis[0], out=out[_axis_slice(axis[0], 1, None)])
    return out


def shift(x: Any, axis: Any, offset: int) -> Any:
    """Move elements along an axis; zeros come in where nothing was."""
    out = _np.zeros_like(x)
    if offset >= 0:
        out[_axis_slice(axis[0], offset, None)] = x[_axis_slice(axis[0], None, -offset or None)]
    else:
        out[_axis_slice(axis[0], None, offset)] = x[_axis_slice(axis[0], -offset, None)]
    return out


def recurrence(x: Any, factor: Any, axis: Any, reverse: bool = False) -> Any:
    """out[i] = x[i] + factor[i] * out[i-1] along an axis, or from its end."""
    dtype = _np.result_type(x, factor)
    out = _np.array(x, dtype=_computed_in(dtype))
    rows, factors = _np.moveaxis(out, axis[0], 0), _np.moveaxis(_np.broadcast_to(factor, x.shape), axis[0], 0)
    if reverse:
        rows, factors = rows[::-1], factors[::-1]
    for i in range(1, len(rows)):
        rows[i] += factors[i] * rows[i - 1]
    return out.astype(dtype, copy=False)


def sum_of_squares(x: Any) -> Any:
    flat = x.ravel("K")
    return flat.dot(flat)
