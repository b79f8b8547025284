"""NumPy's reductions and products in terms of Pullback's."""

from __future__ import annotations

import builtins
import math
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError
from .core import Tensor
from .numpy_shapes import _tensor, numpy_atleast_2d

_NO_VALUE = np._NoValue


def _given(value: Any, default: Any = None) -> Any:
    return default if value is _NO_VALUE or value is None else value


def _in_dtype(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None or x.dtype == np.dtype(dtype) else pb.astype(x, pb.dtypes.get(np.dtype(dtype)))


# -- reductions ------------------------------------------------------------------------------------


def _reduction(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
        result = getattr(pb, name)(_in_dtype(_tensor(a), dtype), axis=axis, keepdims=_given(keepdims, False))
        initial = _given(initial)
        return result if initial is None else result + initial if name == "sum" else result * initial

    return function


numpy_sum, numpy_prod = _reduction("sum"), _reduction("prod")


def _extremum(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None) -> Any:
        result = getattr(pb, name)(_tensor(a), axis=axis, keepdims=_given(keepdims, False))
        return result if _given(initial) is None else getattr(pb, name + "imum")(result, initial)

    return function


numpy_max = numpy_amax = _extremum("max")
numpy_min = numpy_amin = _extremum("min")


def numpy_mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    return pb.mean(_in_dtype(_tensor(a), dtype), axis=axis, keepdims=_given(keepdims, False))


def _spread(name: str) -> Callable[..., Any]:
    def function(
        a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False, correction: Any = None
    ) -> Any:
        correction = _given(correction, ddof)
        x = _in_dtype(_tensor(a), dtype)
        return getattr(pb, name)(x, axis=axis, correction=correction, keepdims=_given(keepdims, False))

    return function


numpy_var, numpy_std = _spread("var"), _spread("std")


def numpy_median(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return pb.median(_tensor(a), axis=axis, keepdims=_given(keepdims, False))


def numpy_average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = _tensor(a)
    keepdims = _given(keepdims, False)
    if weights is None:
        result = pb.mean(x, axis=axis, keepdims=keepdims)
        total = pb.asarray(np.asarray(x.size / builtins.max(result.size, 1)))
    else:
        weights = _tensor(weights)
        if weights.shape != x.shape:
            if not isinstance(axis, int) or weights.ndim != 1:
                raise DtypeError("np.average: weights of another shape than `a` must have one axis, and `axis` be one.")
            weights = pb.reshape(weights, tuple(-1 if i == axis % x.ndim else 1 for i in range(x.ndim)))
        total = pb.sum(pb.broadcast_to(weights, x.shape), axis=axis, keepdims=keepdims)
        result = pb.sum(x * weights, axis=axis, keepdims=keepdims) / total
    return (result, pb.broadcast_to(total, result.shape)) if returned else result


def numpy_ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return numpy_max(a, axis, keepdims) - numpy_min(a, axis, keepdims)


def _running(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = _in_dtype(_tensor(a), dtype)
        return getattr(pb, name)(pb.ravel(x) if axis is None else x, axis=0 if axis is None else axis)

    return function


numpy_cumsum, numpy_cumprod = _running("cumulative_sum"), _running("cumulative_prod")


def numpy_cumulative_sum(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return pb.cumulative_sum(_in_dtype(_tensor(x), dtype), axis=axis, include_initial=include_initial)


def numpy_cumulative_prod(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    return pb.cumulative_prod(_in_dtype(_tensor(x), dtype), axis=axis, include_initial=include_initial)


def numpy_nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    x = _in_dtype(_tensor(a), dtype)
    return pb.sum(pb.where(pb.isnan(x), pb.zeros_like(x), x), axis=axis, keepdims=_given(keepdims, False))


def numpy_nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    x = _in_dtype(_tensor(a), dtype)
    counted = pb.astype(pb.logical_not(pb.isnan(x)), x.dtype)
    return numpy_nansum(x, axis, None, keepdims) / pb.sum(counted, axis=axis, keepdims=_given(keepdims, False))


def _ignoring_nan(reduce: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    """A reduction that passes over NaN, which `neutral` takes the place of."""

    def function(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        x = _tensor(a)
        return reduce(pb.where(pb.isnan(x), neutral, x), axis, keepdims=keepdims)

    return function


numpy_nanmax = _ignoring_nan(numpy_max, -math.inf)
numpy_nanmin = _ignoring_nan(numpy_min, math.inf)
numpy_nanprod = _ignoring_nan(numpy_prod, 1.0)


def numpy_nanvar(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False) -> Any:
    x = _in_dtype(_tensor(a), dtype)
    centred = x - numpy_nanmean(x, axis, keepdims=True)
    counted = pb.sum(pb.astype(pb.logical_not(pb.isnan(x)), x.dtype), axis=axis, keepdims=_given(keepdims, False))
    return numpy_nansum(centred * centred, axis, None, keepdims) / (counted - ddof)


def numpy_nanstd(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: Any = False) -> Any:
    return pb.sqrt(numpy_nanvar(a, axis, dtype, ddof, keepdims))


def numpy_nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    x = _tensor(a)
    return numpy_cumsum(pb.where(pb.isnan(x), 0.0, x), axis, dtype)


def numpy_quantile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False) -> Any:
    """Only by linear interpolation between neighbours, as is the default."""
    if method != "linear":
        raise DtypeError(f"np.quantile: method={method!r} is not supported on a tensor that requires a gradient.")
    x = _tensor(a)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(i % x.ndim for i in axes)
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = pb.reshape(pb.permute_dims(x, (*kept, *axes)), tuple(x.shape[i] for i in kept) + (-1,))
    ordered = pb.sort(moved, axis=-1)
    positions = np.asarray(q, np.float64) * (moved.shape[-1] - 1)
    lower = np.clip(np.floor(positions).astype(np.int64), 0, builtins.max(moved.shape[-1] - 2, 0))
    upper = np.minimum(lower + 1, moved.shape[-1] - 1)
    share = pb.asarray((positions - lower).astype(pb.dtypes.numpy_dtype(x.dtype)))
    result = ordered[..., lower] * (1 - share) + ordered[..., upper] * share
    result = pb.permute_dims(result, (*range(len(kept), result.ndim), *range(len(kept))))  # the axes of q come first
    if _given(keepdims, False):
        result = pb.reshape(result, np.shape(q) + tuple(1 if i in axes else n for i, n in enumerate(x.shape)))
    return result


def numpy_percentile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False) -> Any:
    return numpy_quantile(a, np.asarray(q, np.float64) / 100.0, axis, method, keepdims)


def numpy_cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, *, dtype: Any = None
) -> Any:
    x = _rows_of(m, rowvar)
    if y is not None:
        x = pb.concat([x, _rows_of(y, rowvar)], axis=0)
    x = _in_dtype(x, dtype)
    x = x - pb.mean(x, axis=1, keepdims=True)
    correction = ddof if ddof is not None else 0 if bias else 1
    return pb.squeeze(pb.matmul(x, pb.conj(x).T if x.dtype.kind == "complex" else x.T) / (x.shape[1] - correction))


def numpy_corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    covariance = numpy_cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = pb.sqrt(pb.diagonal(covariance))
    return covariance / deviation[:, None] / deviation


def _rows_of(m: Any, rowvar: bool) -> Tensor:
    x = _tensor(m)
    x = numpy_atleast_2d(x)
    return x if rowvar or x.shape[0] == 1 else x.T


# -- products --------------------------------------------------------------------------------------


def numpy_dot(a: Any, b: Any, out: Any = None) -> Any:
    return pb.dot(_tensor(a), _tensor(b))


def numpy_vdot(a: Any, b: Any) -> Any:
    return pb.vdot(pb.ravel(_tensor(a)), pb.ravel(_tensor(b)))


def numpy_inner(a: Any, b: Any) -> Any:
    return pb.inner(_tensor(a), _tensor(b))


def numpy_outer(a: Any, b: Any) -> Any:
    return pb.outer(pb.ravel(_tensor(a)), pb.ravel(_tensor(b)))


def numpy_kron(a: Any, b: Any) -> Any:
    return pb.kron(_tensor(a), _tensor(b))


def numpy_tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if not isinstance(axes, int):
        axes = tuple((side,) if isinstance(side, int) else tuple(side) for side in axes)
    return pb.tensordot(_tensor(a), _tensor(b), axes=axes)


def numpy_einsum(*operands: Any, optimize: Any = False) -> Any:
    if not isinstance(operands[0], str):
        raise DtypeError("np.einsum: write the subscripts as a string, such as 'ij,jk->ik', on a tensor.")
    return pb.einsum(operands[0], *(_tensor(x) for x in operands[1:]))


def numpy_cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = pb.moveaxis(_tensor(a), axisa, -1), pb.moveaxis(_tensor(b), axisb, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise DtypeError(f"np.cross: vectors must have three entries on a tensor, got {x.shape[-1]} and {y.shape[-1]}.")
    x, y = pb.broadcast_arrays(x, y)
    forward, backward = np.asarray([1, 2, 0]), np.asarray([2, 0, 1])
    result = x[..., forward] * y[..., backward] - x[..., backward] * y[..., forward]
    return pb.moveaxis(result, -1, axisc)
