"""NumPy kernels: normalisation layers, dropout and embedding.

float16 and bfloat16 are computed in float32 and rounded once. What is kept for the gradient stays in float32.
"""

from __future__ import annotations

from math import prod as _prod
from typing import Any

import numpy as _np

from .precision import widened as _widened
from .random import philox_uint32 as _philox_uint32
from .scaling import all_between as _all_between, unit_of as _unit_of

_BLOCK = 1 << 15  # elements normalised at once: several passes over them stay in the cache


def _floating(x: Any) -> Any:
    if x.dtype.kind in "iubc":
        raise TypeError(f"expected floating-point numbers, got {x.dtype.name}.")
    return _widened(x)


def _is_trailing(axis: Any) -> bool:
    return sorted(axis) == list(range(-len(axis), 0))


def _count(x: Any, axis: Any) -> int:
    return _prod(x.shape[a] for a in axis)


def _row_parameter(parameter: Any, x: Any, axis: Any) -> Any:
    """A weight or bias as one row if there is one number for each element of a row, else None."""
    if parameter.shape == x.shape[x.ndim - len(axis) :]:
        return parameter.reshape(-1)
    return None


def _finish(out: Any, x: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out.astype(x.dtype, copy=False)


def _by_rows(x: Any, axis: Any, parameters: tuple[Any, ...], normalise: Any) -> Any:
    """Call `normalise(rows, out, start, stop, *row_parameters)` on blocks of rows; None if that is impossible."""
    if not _is_trailing(axis) or x.size == 0:
        return None
    flat = [None if p is None else _row_parameter(p, x, axis) for p in parameters]
    if any(row is None for row, p in zip(flat, parameters) if p is not None):
        return None
    width = _count(x, axis)
    rows = x.reshape(-1, width)
    out = _np.empty(rows.shape, x.dtype)
    step = max(1, _BLOCK // width)
    for start in range(0, len(rows), step):
        normalise(rows[start : start + step], out[start : start + step], start, start + step, *flat)
    return out.reshape(x.shape)


def _kept_shape(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(1 if i - x.ndim in axis else n for i, n in enumerate(x.shape))


def layer_norm(x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
    wide = _floating(x)
    mean = _np.empty(_kept_shape(x, axis), wide.dtype)
    rstd = _np.empty_like(mean)
    flat_mean, flat_rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    count = _count(x, axis)

    def normalise(rows: Any, out: Any, start: int, stop: int, weight: Any, bias: Any) -> None:
        m, r = flat_mean[start:stop], flat_rstd[start:stop]
        _np.add.reduce(rows, 1, keepdims=True, out=m)
        m /= count
        _np.subtract(rows, m, out=out)
        _np.vecdot(out, out, out=r[:, 0])
        _to_reciprocal_deviation(r, count, eps)
        out *= r
        if weight is not None:
            out *= weight
        if bias is not None:
            out += bias

    with _np.errstate(over="ignore", invalid="ignore"):
        out = _by_rows(wide, axis, (weight, bias), normalise)
        if out is None:
            out, mean, rstd = _centred(wide, axis, mean, rstd)
            _to_reciprocal_deviation(rstd, count, eps)
            out *= rstd
            out = _finish(out, x, weight, bias)
    if not _all_between(rstd, 0.0):
        normalized, mean, rstd = _in_units(wide, axis, eps, True)
        out = _finish(normalized, x, weight, bias)
    return out.astype(x.dtype, copy=False), mean, rstd


@_np.errstate(all="ignore")
def _in_units(x: Any, axis: Any, eps: float, is_centred: bool) -> tuple[Any, Any, Any]:
    """What is normalised, the mean and the reciprocal deviation, of numbers whose squares overflow."""
    unit = _unit_of(x, axis)
    part = x / unit
    mean = _np.mean(part, axis=axis, keepdims=True)
    if is_centred:
        part = part - mean
    rstd = 1 / _np.sqrt(_np.mean(part * part, axis=axis, keepdims=True) + eps / unit / unit)
    return part * rstd, mean * unit, rstd / unit


def reciprocal_deviation(centred: Any, variance: Any, axis: Any, eps: float) -> Any:
    """1 / sqrt(variance + eps), of a variance that may have overflown."""
    with _np.errstate(over="ignore", invalid="ignore"):
        rstd = 1 / _np.sqrt(variance + eps)
    return rstd if _all_between(rstd, 0.0) else _in_units(centred, axis, eps, False)[2]


def _to_reciprocal_deviation(sum_of_squares: Any, count: int, eps: float) -> None:
    """Turn sums of squares into 1 / sqrt(mean of squares + eps), in place."""
    sum_of_squares /= max(count, 1)
    sum_of_squares += eps
    _np.sqrt(sum_of_squares, out=sum_of_squares)
    _np.reciprocal(sum_of_squares, out=sum_of_squares)


def _centred(x: Any, axis: Any, mean: Any, squares: Any) -> tuple[Any, Any, Any]:
    """x minus its mean, the mean, and the sum of squares of the former."""
    _np.add.reduce(x, axis, keepdims=True, out=mean)
    mean /= max(_count(x, axis), 1)
    out = _np.subtract(x, mean, out=_np.empty(x.shape, x.dtype))
    _np.add.reduce(_np.square(out), axis, keepdims=True, out=squares)
    return out, mean, squares


def rms_norm(x: Any, weight: Any, axis: Any, eps: float) -> Any:
    wide = _floating(x)
    rstd = _np.empty(_kept_shape(x, axis), wide.dtype)
    flat_rstd = rstd.reshape(-1, 1)
    count = _count(x, axis)

    def normalise(rows: Any, out: Any, start: int, stop: int, weight: Any) -> None:
        r = flat_rstd[start:stop]
        _np.vecdot(rows, rows, out=r[:, 0])
        _to_reciprocal_deviation(r, count, eps)
        _np.multiply(rows, r, out=out)
        if weight is not None:
            out *= weight

    with _np.errstate(over="ignore", invalid="ignore"):
        out = _by_rows(wide, axis, (weight,), normalise)
        if out is None:
            _np.add.reduce(_np.square(wide), axis, keepdims=True, out=rstd)
            _to_reciprocal_deviation(rstd, count, eps)
            out = _finish(_np.multiply(wide, rstd, out=_np.empty(x.shape, wide.dtype)), x, weight, None)
    if not _all_between(rstd, 0.0):
        normalized, _, rstd = _in_units(wide, axis, eps, False)
        out = _finish(normalized, x, weight, None)
    return out.astype(x.dtype, copy=False), rstd


def batch_norm(x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
    """The result, and the mean and (biased) variance over `axis`, with the reduced axes kept."""
    wide = _floating(x)
    variance = _np.empty(_kept_shape(x, axis), wide.dtype)
    with _np.errstate(over="ignore", invalid="ignore"):
        out, mean, variance = _centred(wide, axis, _np.empty_like(variance), variance)
        variance /= max(_count(x, axis), 1)
        out *= 1 / _np.sqrt(variance + eps)
    if not _all_between(variance, -1.0):
        out, mean, rstd = _in_units(wide, axis, eps, True)
        with _np.errstate(over="ignore"):
            variance = (1 / rstd) ** 2
    return _finish(out, x, weight, bias), mean, variance


def multiply_add(x: Any, scale: Any, shift: Any) -> Any:
    out = _np.asarray(x * scale)
    if out.dtype == _np.result_type(out.dtype, shift.dtype) and out.shape == _np.broadcast_shapes(
        out.shape, shift.shape
    ):
        out += shift
        return out
    return out + shift


def dropout(x: Any, p: float, key: int, offset: int) -> Any:
    """The result and which elements were kept."""
    kept = dropout_mask(x, p, key, offset)
    scale = x.dtype.type(0 if p == 1 else 1 / (1 - p))
    return _np.where(kept, x * scale, x.dtype.type(0)), kept


def dropout_mask(x: Any, p: float, key: int, offset: int) -> Any:
    """Which elements are kept."""
    threshold = round(p * 2**32)
    if threshold >= 2**32:
        return _np.zeros(x.shape, bool)
    return (_philox_uint32(key, offset, x.size) >= _np.uint32(threshold)).reshape(x.shape)


def embedding(indices: Any, weight: Any) -> Any:
    if indices.size and not (indices.min() >= 0 and indices.max() < len(weight)):
        raise IndexError(f"indices from {indices.min()} to {indices.max()} for a table of {len(weight)} rows.")
    return weight[indices]
