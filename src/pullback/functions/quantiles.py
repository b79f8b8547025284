"""Quantiles, by each of NumPy's methods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Never

import numpy as np

from ..autodiff import base
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..dtypes import int64
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from .axes import all_axes, negative_axes
from .elementwise import clip, lerp

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["quantile"]


def _line(alpha: float, beta: float) -> Callable[[Any, Any, int], Any]:
    """Between the elements, which lie at q = (i + 1 - alpha) / (n + 1 - alpha - beta)."""
    return lambda xp, q, n: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _average_of_steps(xp: Any, q: Any, n: int) -> Any:
    place = n * q - 1
    step = xp.ceil(place)
    return xp.where(xp.equal(place, step), place + 0.5, step)


def _nearest_observation(xp: Any, q: Any, n: int) -> Any:
    place = n * q - 1.5
    step = xp.floor(place)
    is_even = xp.logical_and(xp.equal(place, step), xp.equal(xp.remainder(step, 2), 1))
    return xp.where(is_even, step, step + 1)


#: The place of a quantile among n sorted elements, by the names of the methods; between two it lies between them.
_PLACES: dict[str, Callable[[Any, Any, int], Any]] = {
    "linear": lambda xp, q, n: (n - 1) * q,
    "lower": lambda xp, q, n: xp.floor((n - 1) * q),
    "higher": lambda xp, q, n: xp.ceil((n - 1) * q),
    "midpoint": lambda xp, q, n: (xp.floor((n - 1) * q) + xp.ceil((n - 1) * q)) / 2,
    "nearest": lambda xp, q, n: xp.round((n - 1) * q),
    "inverted_cdf": lambda xp, q, n: xp.ceil(n * q - 1),
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


@hide_others
def quantile(
    x: ArrayLike, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, **other: Never
) -> Tensor:
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
    if other:
        raise unexpected("quantile", other)
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
        x = x * 1.0
    shares = _shares(q)
    kept = tuple([a for a in all_axes(x.ndim) if a not in axes])
    sizes = tuple([x.shape[a] for a in kept])
    rows = TENSORS.reshape(TENSORS.permute_dims(x, kept + axes), (*sizes, count))
    of_tensors = isinstance(shares, base.Tensor)
    places = _PLACES[method](TENSORS if of_tensors else np, shares.reshape((shares.size,)), count)
    places = (clip if of_tensors else np.clip)(places, 0.0, count - 1.0)
    found = _at(TENSORS.sort(rows, (-1,), False, True), places, method in _PICKING)
    if x.dtype.kind == "float":
        has_nan = TENSORS.any(TENSORS.isnan(rows), (-1,), True)
        found = TENSORS.where(has_nan, math.nan, found)
    found = TENSORS.permute_dims(found, (-1, *range(-1 - len(kept), -1)))
    if keepdims:
        sizes = tuple([1 if a in axes else n for a, n in zip(all_axes(x.ndim), x.shape)])
    return TENSORS.reshape(found, (*shares.shape, *sizes))


def _shares(q: Any) -> Any:
    """A tensor, or an array of NumPy's in double precision, whatever precision there is elsewhere."""
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
    return shares


def _at(ordered: Tensor, places: Any, picking: bool) -> Tensor:
    """What is at places along the last axis, or between them."""
    if isinstance(places, base.Tensor):
        backend = ordered._backend
        fixed = places.detach()
        lower, upper = TENSORS.floor(fixed), TENSORS.ceil(fixed)
        share = TENSORS.astype(places - lower, backend.raw_dtype(ordered.dtype))
        lower, upper = (TENSORS.astype(place, backend.raw_dtype(int64)) for place in (lower, upper))
        below, above = (TENSORS.take(ordered, place, -1) for place in (lower, upper))
    else:
        lower, upper = (place.astype(np.int64) for place in (np.floor(places), np.ceil(places)))
        shares = (places - lower).astype(np.float64 if ordered.dtype.itemsize == 8 else np.float32)
        share = asarray(shares, dtype=ordered.dtype, device=ordered.device)
        below, above = ordered[..., lower], ordered[..., upper]
    if picking:
        return below
    same = TENSORS.logical_and(TENSORS.isinf(below), TENSORS.equal(below, above))  # whose difference is no number
    between = lerp(TENSORS.where(same, 0.0, below), TENSORS.where(same, 0.0, above), share)
    return TENSORS.where(same, below, between)
