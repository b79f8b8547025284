"""NumPy's medians, quantiles and percentiles in terms of Pullback's functions.

NumPy computes each of them from the ranks of the elements, which says between which two of the sorted elements it lies
and where; so every method, weights and all, has its derivative.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import pullback as pb

from ..errors import DtypeError
from .numpy_protocols import in_numpy, needs_gradient
from .numpy_shapes import _tensor
from .numpy_values import have_values


def _by_ranks(function: Callable[..., Any], a: Any, axis: Any, *args: Any, **options: Any) -> Any:
    """`function` of `a`, where NumPy's of the ranks is a place among the sorted elements."""
    x = _tensor(a)
    if axis is None:
        x_axes = tuple(range(x.ndim))
    else:
        x_axes = tuple(i % x.ndim for i in ((axis,) if isinstance(axis, (int, np.integer)) else axis))
    others = tuple(i for i in range(x.ndim) if i not in x_axes)
    rows = pb.reshape(pb.permute_dims(x, (*others, *x_axes)), (*(x.shape[i] for i in others), -1))
    values = in_numpy(rows.detach())
    order = np.argsort(values, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1, kind="stable").astype(np.float64)
    ranks[np.isnan(values)] = np.nan
    back = np.argsort((*others, *x_axes))
    ranks = ranks.reshape([x.shape[i] for i in (*others, *x_axes)]).transpose(back)
    found = function(ranks, *in_numpy(args), axis=axis, **in_numpy(options))
    places = np.nan_to_num(np.asarray(found))  # the axes of several quantiles come first
    kept = tuple(x.shape[i] for i in others)
    if options.get("keepdims", False) is True:
        leading = places.shape[: places.ndim - x.ndim]
    else:
        leading = places.shape[: places.ndim - len(others)]
    flat = np.moveaxis(places.reshape((-1, *kept)), 0, -1)
    lower = np.floor(flat).astype(np.int64)
    upper = np.ceil(flat).astype(np.int64)
    share = pb.asarray((flat - lower).astype(values.real.dtype))
    ordered = pb.take_along_axis(rows, pb.asarray(order), axis=-1)
    below = pb.take_along_axis(ordered, pb.asarray(lower), axis=-1)
    above = pb.take_along_axis(ordered, pb.asarray(upper), axis=-1)
    result = below + pb.where(pb.asarray(flat == lower), 0.0, (above - below) * share)
    return pb.reshape(pb.moveaxis(result, -1, 0), (*leading, *places.shape[len(leading) :]))


def _quantile(name: str) -> Callable[..., Any]:
    numpy_function = getattr(np, name)

    def function(
        a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False, *, weights: Any = None
    ) -> Any:
        if needs_gradient(q) or needs_gradient(weights):
            raise DtypeError(f"np.{name} has a gradient with respect to `a` alone. Pass `t.detach()` for the others.")
        keepdims = False if keepdims is np._NoValue else keepdims
        if not have_values(a) and weights is None and not name.startswith("nan"):  # on other devices, while tracing
            shares = np.asarray(q) / (100.0 if name == "percentile" else 1.0)
            return pb.quantile(_tensor(a), shares, axis=axis, method=method, keepdims=keepdims)
        return _by_ranks(numpy_function, a, axis, q, method=method, keepdims=keepdims, weights=weights)

    return function


def _median(name: str) -> Callable[..., Any]:
    numpy_function = getattr(np, name)

    def function(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
        if not have_values(a) and name == "median":
            return pb.median(_tensor(a), axis=axis, keepdims=False if keepdims is np._NoValue else keepdims)
        return _by_ranks(numpy_function, a, axis, keepdims=False if keepdims is np._NoValue else keepdims)

    return function


numpy_quantile, numpy_percentile = _quantile("quantile"), _quantile("percentile")
numpy_nanquantile, numpy_nanpercentile = _quantile("nanquantile"), _quantile("nanpercentile")
numpy_median, numpy_nanmedian = _median("median"), _median("nanmedian")
