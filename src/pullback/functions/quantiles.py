"""Quantiles, by each of NumPy's methods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ..autodiff import base
from ..autodiff.creation import asarray
from ..autodiff.tables import TENSORS
from ..dtypes import float64, int64
from ..errors import DtypeError, ShapeError
from .axes import all_axes, negative_axes
from .elementwise import clip, lerp

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = ["quantile"]


def _line(alpha: float, beta: float) -> Callable[[Any, int], Any]:
    """Between the elements, which lie at q = (i + 1 - alpha) / (n + 1 - alpha - beta)."""
    return lambda q, n: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _first_below(q: Any, n: int) -> Any:
    return TENSORS.ceil(n * q - 1)


def _average_of_steps(q: Any, n: int) -> Any:
    place = n * q - 1
    step = TENSORS.ceil(place)
    return TENSORS.where(TENSORS.equal(place, step), place + 0.5, step)


def _nearest_observation(q: Any, n: int) -> Any:
    place = n * q - 1.5
    step = TENSORS.floor(place)
    is_even = TENSORS.logical_and(TENSORS.equal(place, step), TENSORS.equal(TENSORS.remainder(step, 2), 1))
    return TENSORS.where(is_even, step, step + 1)


def _middle(q: Any, n: int) -> Any:
    place = (n - 1) * q
    return (TENSORS.floor(place) + TENSORS.ceil(place)) / 2


#: The place of a quantile among n sorted elements, by the names of the methods; between two it lies between them.
_PLACES: dict[str, Callable[[Any, int], Any]] = {
    "linear": lambda q, n: (n - 1) * q,
    "lower": lambda q, n: TENSORS.floor((n - 1) * q),
    "higher": lambda q, n: TENSORS.ceil((n - 1) * q),
    "midpoint": _middle,
    "nearest": lambda q, n: TENSORS.round((n - 1) * q),
    "inverted_cdf": _first_below,
    "averaged_inverted_cdf": _average_of_steps,
    "closest_observation": _nearest_observation,
    "interpolated_inverted_cdf": _line(0.0, 1.0),
    "hazen": _line(0.5, 0.5),
    "weibull": _line(0.0, 0.0),
    "median_unbiased": _line(1 / 3, 1 / 3),
    "normal_unbiased": _line(3 / 8, 3 / 8),
}
#: Methods whose result is one of the elements.
_PICKING = frozenset(("lower", "higher", "nearest", "inverted_cdf", "closest_observation"))


def quantile(x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """The number below which the share `q` of the elements lies; NaN if one of them is.

    Parameters
    ----------
    x : array of real numbers
    q : number or array
        Shares, from 0 to 1. A tensor has a gradient, too, by the methods that interpolate.
    axis : int or tuple of int, optional
        Over which axes; by default over all.
    method : str
        What lies between two elements. "linear", "lower", "higher", "midpoint" and "nearest" take 0 for the first one
        and 1 for the last; NumPy documents the others: "inverted_cdf", "averaged_inverted_cdf",
        "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased".
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Tensor
        The axes of `q` come first.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.asarray([4.0, 1.0, 3.0, 2.0])
    >>> pb.quantile(x, 0.5), pb.quantile(x, [0.0, 0.1], method="higher")
    (tensor(2.5), tensor([1., 2.]))
    """
    x = asarray(x)
    if x.dtype.kind == "complex":
        raise DtypeError("quantile: complex numbers have no order.")
    if method not in _PLACES:
        raise ValueError(f"quantile: method must be one of {', '.join(_PLACES)}, got {method!r}.")
    axes = all_axes(x.ndim) if axis is None else negative_axes("quantile", axis, x.ndim)
    count = math.prod([x.shape[a] for a in axes])
    if not count:
        raise ShapeError(f"quantile: there are no elements along axis {axis} of a tensor of shape {x.shape}.")
    if x.dtype.kind != "float" and method not in _PICKING:
        x = TENSORS.astype(x, x._backend.raw_dtype(float64))
    q = _shares(q, x)
    kept = tuple([a for a in all_axes(x.ndim) if a not in axes])
    sizes = tuple([x.shape[a] for a in kept])
    rows = TENSORS.reshape(TENSORS.permute_dims(x, kept + axes), (*sizes, count))
    places = clip(TENSORS.reshape(_PLACES[method](q, count), (q.size,)), 0.0, count - 1.0)
    found = _at(TENSORS.sort(rows, (-1,), False, True), places, method in _PICKING)
    if x.dtype.kind == "float":
        has_nan = TENSORS.any(TENSORS.isnan(rows), (-1,), True)
        found = TENSORS.where(has_nan, math.nan, found)
    found = TENSORS.permute_dims(found, (-1, *range(-1 - len(kept), -1)))
    if keepdims:
        sizes = tuple([1 if a in axes else n for a, n in zip(all_axes(x.ndim), x.shape)])
    return TENSORS.reshape(found, (*q.shape, *sizes))


def _shares(q: Any, x: Tensor) -> Tensor:
    if isinstance(q, base.Tensor):
        if q.dtype.kind != "float":
            raise DtypeError(f"quantile: q must be floating-point numbers, got {q.dtype.name}.")
        return q
    try:
        shares = np.asarray(q, np.float64)
    except (TypeError, ValueError):
        raise DtypeError(f"quantile: q must be a number or an array of numbers, got {q!r:.60}.") from None
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"quantile: q must be from 0 to 1, got {q!r:.60}.")
    return asarray(shares, device=x.device)


def _at(ordered: Tensor, places: Tensor, picking: bool) -> Tensor:
    """What is at places along the last axis, or between them."""
    backend = ordered._backend
    lower = TENSORS.floor(places.detach())

    def element(place: Tensor) -> Tensor:
        return TENSORS.take(ordered, TENSORS.astype(place, backend.raw_dtype(int64)), -1)

    below = element(lower)
    if picking:
        return below
    above = element(TENSORS.ceil(places.detach()))
    share = TENSORS.astype(places - lower, backend.raw_dtype(ordered.dtype))
    same = TENSORS.logical_and(TENSORS.isinf(below), TENSORS.equal(below, above))  # whose difference is no number
    between = lerp(TENSORS.where(same, 0.0, below), TENSORS.where(same, 0.0, above), share)
    return TENSORS.where(same, below, between)
