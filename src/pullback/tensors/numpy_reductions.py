"""NumPy's reductions and products in terms of Pullback's."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any, Callable

import numpy as np

import pullback as pb

from .numpy_shapes import _tensor
from .numpy_ufuncs import _in_dtype
from .tensor import Tensor

_NO_VALUE = np._NoValue


def _given(value: Any, default: Any = None) -> Any:
    return default if value is _NO_VALUE or value is None else value


# -- reductions ------------------------------------------------------------------------------------


def _operands(a: Any, axis: Any, dtype: Any, where: Any, neutral: float = 0.0) -> tuple[Tensor, Any]:
    """The array in the dtype to reduce it in, with a neutral element where the mask does not hold, and the axes."""
    x = _in_dtype(_tensor(a), dtype)
    if where is not _NO_VALUE and where is not True:
        x = pb.where(_mask(where, x), x, neutral)
    return x, None if x.ndim == 0 else axis


def _mask(where: Any, x: Tensor) -> Tensor:
    """Where to look, in the shape of `x`."""
    mask = pb.asarray(where if isinstance(where, Tensor) else np.asarray(where, bool), device=x.device)
    return pb.broadcast_to(pb.astype(mask, pb.bool), x.shape)


def _reduction(name: str) -> Callable[..., Any]:
    combine, neutral = {"sum": (pb.add, 0.0), "prod": (pb.multiply, 1.0)}[name]

    def function(
        a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        x, axis = _operands(a, axis, dtype, where, neutral)
        result = getattr(pb, name)(x, axis=axis, keepdims=_given(keepdims, False))
        initial = _given(initial)
        return result if initial is None else combine(result, initial)

    return function


numpy_sum, numpy_prod = _reduction("sum"), _reduction("prod")


def _extremum(name: str) -> Callable[..., Any]:
    neutral = -math.inf if name == "max" else math.inf

    def function(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
        x, axis = _operands(a, axis, None, where, neutral)
        initial = _given(initial)
        if x.size == 0 and initial is not None:
            shape = np.sum(np.zeros(x.shape), axis=axis, keepdims=_given(keepdims, False)).shape
            return pb.full(shape, initial, dtype=x.dtype, device=x.device)
        result = getattr(pb, name)(x, axis=axis, keepdims=_given(keepdims, False))
        return result if initial is None else getattr(pb, name + "imum")(result, initial)

    return function


numpy_max = numpy_amax = _extremum("max")
numpy_min = numpy_amin = _extremum("min")


def _count(x: Tensor, axis: Any, keepdims: Any, where: Any) -> Any:
    """How many elements there are along `axis`, where the mask holds."""
    mask = _mask(True if where is _NO_VALUE else where, x)
    return pb.sum(pb.astype(mask, pb.real(x).dtype), axis=axis, keepdims=keepdims)


def numpy_mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Any:
    keepdims = _given(keepdims, False)
    x, axis = _operands(a, axis, dtype, where)
    if where is _NO_VALUE or where is True:
        return pb.mean(x, axis=axis, keepdims=keepdims)
    return pb.sum(x, axis=axis, keepdims=keepdims) / _count(x, axis, keepdims, where)


def numpy_var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    correction, mean, keepdims = _given(correction, ddof), _given(mean), _given(keepdims, False)
    x, axis = _operands(a, axis, dtype, True)
    if mean is None and (where is _NO_VALUE or where is True):
        return pb.var(x, axis=axis, correction=correction, keepdims=keepdims)
    centred = x - (numpy_mean(x, axis, keepdims=True, where=where) if mean is None else _tensor(mean))
    squares = pb.real(centred * pb.conj(centred)) if x.dtype.kind == "complex" else centred * centred
    total = numpy_sum(squares, axis, keepdims=keepdims, where=where)
    return total / (_count(x, axis, keepdims, where) - correction)


def numpy_std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    if _given(mean) is None and (where is _NO_VALUE or where is True):
        x, axis = _operands(a, axis, dtype, True)
        return pb.std(x, axis=axis, correction=_given(correction, ddof), keepdims=_given(keepdims, False))
    return _root(numpy_var(a, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction))


def _root(variance: Tensor) -> Tensor:
    """The square root, with derivative zero at zero, as `pb.std` has it."""
    is_zero = pb.equal(variance, 0)
    return pb.where(is_zero, 0.0, pb.sqrt(pb.where(is_zero, 1.0, variance)))


def numpy_average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = _tensor(a)
    keepdims, axis = _given(keepdims, False), None if x.ndim == 0 else axis
    if weights is None:
        result = pb.mean(x, axis=axis, keepdims=keepdims)
        total = pb.asarray(np.asarray(x.size / builtins.max(result.size, 1)))
    else:
        weights = _tensor(weights)
        if weights.shape != x.shape:
            axes = tuple(i % x.ndim for i in ((axis,) if isinstance(axis, (int, np.integer)) else axis))
            weights = pb.permute_dims(weights, tuple(int(i) for i in np.argsort(axes)))
            weights = pb.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
        total = pb.sum(pb.broadcast_to(weights, x.shape), axis=axis, keepdims=keepdims)
        result = pb.sum(x * weights, axis=axis, keepdims=keepdims) / total
    return (result, pb.broadcast_to(total, result.shape)) if returned else result


def numpy_ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return numpy_max(a, axis, keepdims) - numpy_min(a, axis, keepdims)


def _running(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = _in_dtype(_tensor(a), dtype)
        flat = axis is None or x.ndim == 0
        return getattr(pb, name)(pb.ravel(x) if flat else x, axis=0 if flat else axis)

    return function


numpy_cumsum, numpy_cumprod = _running("cumulative_sum"), _running("cumulative_prod")


def _running_of_the_standard(name: str) -> Callable[..., Any]:
    def function(x: Any, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
        x = _in_dtype(_tensor(x), dtype)
        x, axis = (pb.reshape(x, (1,)), 0) if x.ndim == 0 else (x, axis)
        return getattr(pb, name)(x, axis=axis, include_initial=include_initial)

    return function


numpy_cumulative_sum = _running_of_the_standard("cumulative_sum")
numpy_cumulative_prod = _running_of_the_standard("cumulative_prod")


def _ignoring_nan(reduce: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    """A reduction that passes over NaN, which `neutral` takes the place of."""

    def function(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
        x, initial = _tensor(a), _given(initial)
        initial = neutral if initial is not None and np.isnan(initial) else initial
        return reduce(pb.where(pb.isnan(x), neutral, x), axis, keepdims=keepdims, initial=initial, where=where)

    return function


def _ignoring_nan_in(reduce: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    """The same for a reduction that can be computed in another dtype."""

    def function(
        a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        x = _tensor(a)
        return reduce(pb.where(pb.isnan(x), neutral, x), axis, dtype, keepdims, initial, where)

    return function


numpy_nanmax = _ignoring_nan(numpy_max, -math.inf)
numpy_nanmin = _ignoring_nan(numpy_min, math.inf)
numpy_nansum = _ignoring_nan_in(numpy_sum, 0.0)
numpy_nanprod = _ignoring_nan_in(numpy_prod, 1.0)


def _numbers(a: Any, where: Any) -> Tensor:
    """Where there are numbers, and the mask holds."""
    x = _tensor(a)
    numbers = pb.logical_not(pb.isnan(x))
    return numbers if where is _NO_VALUE or where is True else pb.logical_and(numbers, _mask(where, x))


def numpy_nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True) -> Any:
    return numpy_mean(a, axis, dtype, keepdims, _numbers(a, where))


def numpy_nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    numbers = _numbers(a, where)
    x = pb.where(numbers, _tensor(a), 0.0)  # so that no NaN comes into the derivative
    return numpy_var(x, axis, dtype, ddof, keepdims, where=numbers, mean=mean, correction=correction)


def numpy_nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    variance = numpy_nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction)
    return _root(variance)


def numpy_nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    x = _tensor(a)
    return numpy_cumsum(pb.where(pb.isnan(x), 0.0, x), axis, dtype)


def numpy_nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    x = _tensor(a)
    return numpy_cumprod(pb.where(pb.isnan(x), 1.0, x), axis, dtype)


def numpy_cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    x, other = (None if part is None else _in_dtype(_floating(_tensor(part)), dtype) for part in (m, y))
    return pb.cov(x, other, rowvar, bias, ddof, fweights, aweights)


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in ("float", "complex") else pb.astype(x, pb.float64)


def numpy_corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    covariance = numpy_cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = pb.sqrt(pb.diagonal(covariance))
    return covariance / deviation[:, None] / deviation


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
    if isinstance(axes, int):
        axes = builtins.max(axes, 0)
    else:
        axes = tuple((side,) if isinstance(side, int) else tuple(side) for side in axes)
    return pb.tensordot(_tensor(a), _tensor(b), axes=axes)


def numpy_einsum(*operands: Any, optimize: Any = False, dtype: Any = None, order: Any = "K") -> Any:
    if isinstance(operands[0], str):
        subscripts, arrays = operands[0], operands[1:]
    else:
        subscripts, arrays = _subscripts_of(operands)
    return pb.einsum(subscripts, *(_in_dtype(_tensor(x), dtype) for x in arrays))


def _subscripts_of(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """`(x, [0, 1], y, [1, 2], [0, 2])` as `("AB,BC->AC", (x, y))`: numbers are letters, in their order."""
    last = operands[-1] if len(operands) % 2 else None
    pairs = operands[: len(operands) - len(operands) % 2]
    words = [_word(indices) for indices in pairs[1::2]]
    return ",".join(words) + ("" if last is None else "->" + _word(last)), pairs[::2]


def _word(indices: Any) -> str:
    return "".join("..." if i is Ellipsis else _LETTERS[operator.index(i)] for i in indices)


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def numpy_cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = pb.moveaxis(_tensor(a), axisa, -1), pb.moveaxis(_tensor(b), axisb, -1)
    if x.shape[-1] == 2 and y.shape[-1] == 2:  # only the third component is not zero
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    x, y = pb.broadcast_arrays(*(_in_space(part) for part in (x, y)))
    forward, backward = np.asarray([1, 2, 0]), np.asarray([2, 0, 1])
    result = x[..., forward] * y[..., backward] - x[..., backward] * y[..., forward]
    return pb.moveaxis(result, -1, axisc)


def _in_space(x: Tensor) -> Tensor:
    return x if x.shape[-1] == 3 else pb.concat([x, pb.zeros_like(x[..., :1])], axis=-1)
