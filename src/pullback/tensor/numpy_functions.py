"""NumPy's functions in terms of Pullback's, for tensors that need a gradient: NumPy's names, arguments and defaults.

The functions here are found by their NumPy name, those of `np.linalg` and `np.fft` in `numpy_linalg`.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError, GradientError
from . import numpy_shapes
from .core import Tensor
from .numpy_shapes import _tensor
from .numpy_ufuncs import operand as _operand

_NO_VALUE = np._NoValue

#: Functions whose results carry no gradient, so that NumPy may compute them from the values alone.
WITHOUT_GRADIENT = frozenset((
    "all", "allclose", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "array2string", "array_equal",
    "array_equiv", "array_repr", "array_str", "can_cast", "common_type", "count_nonzero", "digitize", "empty_like",
    "flatnonzero", "full_like", "isclose", "iscomplex", "iscomplexobj", "isin", "isneginf", "isposinf", "isreal",
    "isrealobj", "lexsort", "linalg.matrix_rank", "may_share_memory", "nanargmax", "nanargmin", "ndim", "nonzero",
    "ones_like", "result_type", "searchsorted", "shape", "shares_memory", "size", "tril_indices_from",
    "triu_indices_from", "zeros_like",
))  # fmt: skip

#: Functions that change an argument: they come here even if no tensor needs a gradient.
WRITING = frozenset(("copyto", "fill_diagonal", "put", "put_along_axis", "putmask", "place"))


def name_of(function: Any) -> str:
    """How a NumPy function is written after `np.`."""
    module = (getattr(function, "__module__", None) or "numpy").partition(".")[2].lstrip("_")
    return f"{module}.{function.__name__}" if module in ("linalg", "fft") else function.__name__


def find(name: str) -> Callable[..., Any] | None:
    """The implementation of a NumPy function, or None."""
    module, _, short = name.rpartition(".")
    if module:
        from . import numpy_linalg

        return numpy_linalg.find(module, short)
    return globals().get("numpy_" + name) or getattr(numpy_shapes, "numpy_" + name, None)


def call(name: str, implementation: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call an implementation; arguments that it does not have are refused by name."""
    code = implementation.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    unknown = [key for key, value in kwargs.items() if key not in known and not _is_default(key, value)]
    if unknown and not code.co_flags & 8:  # 8: it takes any keyword
        raise DtypeError(f"np.{name}: `{unknown[0]}=` is not supported on a tensor that requires a gradient.")
    out = kwargs.get("out") if "out" not in known else None
    result = implementation(*args, **{key: value for key, value in kwargs.items() if key in known or code.co_flags & 8})
    if out is None:
        return result
    from .numpy_protocols import _written

    return _written(out, result, f"np.{name}(..., out=)")


def _is_default(key: str, value: Any) -> bool:
    """Whether an argument that is not supported says nothing, or is `out=`, which `call` itself takes care of."""
    return key == "out" or value is None or value is _NO_VALUE or (key == "where" and value is True)


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


def numpy_cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return pb.cumulative_sum(_in_dtype(_tensor(x), dtype), axis=axis, include_initial=include_initial)


def numpy_cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return pb.cumulative_prod(_in_dtype(_tensor(x), dtype), axis=axis, include_initial=include_initial)


def numpy_nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    x = _in_dtype(_tensor(a), dtype)
    return pb.sum(pb.where(pb.isnan(x), pb.zeros_like(x), x), axis=axis, keepdims=_given(keepdims, False))


def numpy_nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    x = _in_dtype(_tensor(a), dtype)
    counted = pb.astype(pb.logical_not(pb.isnan(x)), x.dtype)
    return numpy_nansum(x, axis, None, keepdims) / pb.sum(counted, axis=axis, keepdims=_given(keepdims, False))


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


def _rows_of(m: Any, rowvar: bool) -> Tensor:
    x = _tensor(m)
    x = numpy_shapes.numpy_atleast_2d(x)
    return x if rowvar or x.shape[0] == 1 else x.T


def numpy_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = pb.moveaxis(_tensor(y), axis, -1)
    if x is None:
        steps = _operand(dx)
    else:
        x = _tensor(x)
        steps = x[1:] - x[:-1] if x.ndim == 1 else pb.diff(pb.moveaxis(x, axis, -1), axis=-1)
    return pb.sum(steps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


numpy_trapz = numpy_trapezoid


def numpy_diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x = _tensor(a)
    parts = [_edge(_given(prepend), x, axis), x, _edge(_given(append), x, axis)]
    return pb.diff(pb.concat([part for part in parts if part is not None], axis=axis), axis=axis, n=n)


def _edge(value: Any, x: Tensor, axis: int) -> Any:
    if value is None:
        return None
    value = _tensor(value)
    if value.ndim == 0:
        value = pb.broadcast_to(value, tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)))
    return pb.astype(value, x.dtype)


def numpy_ediff1d(ary: Any) -> Any:
    return pb.diff(pb.ravel(_tensor(ary)))


# -- products --------------------------------------------------------------------------------------


def numpy_dot(a: Any, b: Any) -> Any:
    return pb.dot(_tensor(a), _tensor(b))


def numpy_vdot(a: Any, b: Any, /) -> Any:
    return pb.vdot(pb.ravel(_tensor(a)), pb.ravel(_tensor(b)))


def numpy_inner(a: Any, b: Any, /) -> Any:
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


def numpy_convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, y = _tensor(a), _tensor(v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise DtypeError(f"np.convolve: expected two vectors that are not empty, got shapes {x.shape} and {y.shape}.")
    if y.size > x.size:
        x, y = y, x
    padded = pb.pad(x, (y.size - 1, y.size - 1))
    windows = np.arange(x.size + y.size - 1)[:, None] + np.arange(y.size)
    full = pb.matmul(padded[windows], pb.flip(y))
    if mode == "full":
        return full
    length = x.size if mode == "same" else x.size - y.size + 1
    start = (y.size - 1) // 2 if mode == "same" else y.size - 1
    return full[start : start + length]


# -- choosing --------------------------------------------------------------------------------------


def numpy_where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    mask = _tensor(condition)
    if x is None and y is None:
        return tuple(pb.asarray(part) for part in np.nonzero(np.asarray(mask.detach())))
    mask = mask if mask.dtype.kind == "bool" else pb.not_equal(mask, 0)
    return pb.where(mask, _operand(x), _operand(y))


def numpy_select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = _operand(default)
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = numpy_where(condition, choice, result)
    return result


def numpy_clip(
    a: Any, a_min: Any = _NO_VALUE, a_max: Any = _NO_VALUE, out: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    low, high = _given(a_min, _given(min)), _given(a_max, _given(max))
    result = pb.clip(_tensor(a), None if low is None else _operand(low), None if high is None else _operand(high))
    if out is None:
        return result
    from .numpy_protocols import _written

    return _written(out, result, "np.clip(..., out=)")


def numpy_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = _tensor(x)
    limits = np.finfo(pb.dtypes.numpy_dtype(x.dtype))
    x = pb.where(pb.isnan(x), nan, x)
    x = pb.where(pb.equal(x, math.inf), float(limits.max) if posinf is None else posinf, x)
    return pb.where(pb.equal(x, -math.inf), float(limits.min) if neginf is None else neginf, x)


def numpy_interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    x, xp, fp = _tensor(x), _tensor(xp), _tensor(fp)
    knots = np.asarray(xp.detach())
    lower = np.clip(np.searchsorted(knots, np.asarray(x.detach()), "right") - 1, 0, knots.size - 2)
    start, width = xp[lower], xp[lower + 1] - xp[lower]
    inside = fp[lower] + (x - start) * (fp[lower + 1] - fp[lower]) / width
    inside = pb.where(pb.less(x, xp[0]), fp[0] if left is None else left, inside)
    return pb.where(pb.greater(x, xp[-1]), fp[-1] if right is None else right, inside)


def numpy_take(a: Any, indices: Any, axis: Any = None) -> Any:
    x, places = _tensor(a), _tensor(indices)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis % x.ndim)
    return x[(slice(None),) * axis + (places,)]


def numpy_take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x = _tensor(arr)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    return pb.take_along_axis(x, _tensor(indices), axis=axis)


def numpy_compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return numpy_take(a, np.flatnonzero(np.asarray(condition)), axis)


def numpy_extract(condition: Any, arr: Any) -> Any:
    return pb.ravel(_tensor(arr))[np.flatnonzero(np.asarray(condition))]


def numpy_sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    x = _tensor(a)
    return pb.sort(pb.ravel(x)) if axis is None else pb.sort(x, axis=axis)


def numpy_partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    x = _tensor(a)
    x, axis = (pb.ravel(x), 0) if axis is None else (x, axis)
    return pb.take_along_axis(x, pb.asarray(np.argpartition(np.asarray(x.detach()), kth, axis=axis)), axis=axis)


def numpy_unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    x = _tensor(ar)
    _, index, *rest = np.unique(
        np.asarray(x.detach()), True, return_inverse, return_counts, axis=axis, equal_nan=equal_nan
    )
    values = numpy_take(x, index, axis)
    found = [values, *([pb.asarray(index)] if return_index else []), *map(pb.asarray, rest)]
    return found[0] if len(found) == 1 else tuple(found)


# -- writing ---------------------------------------------------------------------------------------


def _target(name: str, x: Any, values: Any) -> Tensor:
    if not isinstance(x, Tensor):
        from .numpy_protocols import needs_gradient, refuse_output

        if needs_gradient(_tensor(values)):
            refuse_output(x, f"np.{name}")
        raise GradientError(f"np.{name}: write into a tensor, or pass `np.asarray(t)` of what is to be written.")
    return x


def numpy_copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    target = _target("copyto", dst, src)
    target[...] = _operand(src) if where is True else numpy_where(where, src, target)


def numpy_putmask(a: Any, mask: Any, values: Any) -> None:
    target = _target("putmask", a, values)
    target[...] = numpy_where(mask, values, target)


def numpy_put_along_axis(arr: Any, indices: Any, values: Any, axis: int) -> None:
    target = _target("put_along_axis", arr, values)
    places = _tensor(indices)
    values = pb.broadcast_to(pb.astype(_tensor(values), target.dtype), places.shape)
    target[...] = pb.put_along_axis(target, places, values, axis=axis)


def numpy_fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    target = _target("fill_diagonal", a, val)
    places = np.arange(builtins.min(target.shape))
    target[(places,) * target.ndim] = _operand(val)
