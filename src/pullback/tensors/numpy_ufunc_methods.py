"""The methods of NumPy's ufuncs (`np.add.reduce`, `np.multiply.outer`, ...) in terms of Pullback's functions."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

import pullback as pb

from .tensor import Tensor

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min",
    "logaddexp": "logsumexp",
}  # fmt: skip
_NEUTRAL = {
    "add": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf, "fmax": -np.inf, "fmin": np.inf,
    "logaddexp": -np.inf,
}  # fmt: skip
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def reduce(
    function: Callable[..., Any], name: str, x: Tensor, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    """A ufunc between all elements along `axis`, where the mask holds."""
    if initial is np._NoValue:
        initial = None
    if x.ndim == 0:  # NumPy gives it an axis, which goes away again
        chosen = x if initial is None else function(initial, x)
        return chosen if where is True else pb.where(pb.asarray(np.asarray(where, bool)), chosen, initial)
    if where is not True:
        mask = np.broadcast_to(np.asarray(where, bool), x.shape)
    if name in _REDUCTIONS:
        if where is not True:
            x = pb.where(pb.asarray(mask), x, _NEUTRAL[name])
        if name in ("fmax", "fmin"):
            x = pb.where(pb.isnan(x), _NEUTRAL[name], x)
        if x.size == 0 and name not in ("add", "multiply"):
            kept = np.add.reduce(np.zeros(x.shape), axis=axis, keepdims=keepdims)
            result = pb.full(kept.shape, _NEUTRAL[name], dtype=x.dtype, device=x.device)
        else:
            result = getattr(pb, _REDUCTIONS[name])(x, axis=axis, keepdims=keepdims)
        return result if initial is None else function(result, initial)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, (int, np.integer)) else axis
    axes = tuple(i % x.ndim for i in axes)
    others = tuple(i for i in range(x.ndim) if i not in axes)
    shape = tuple(x.shape[i] for i in others)
    rows = pb.reshape(pb.permute_dims(x, (*axes, *others)), (math.prod(x.shape[i] for i in axes), *shape))
    masks = None if where is True else mask.transpose((*axes, *others)).reshape(rows.shape)
    total = initial if initial is not None or (masks is None and axes) else getattr(np, name).identity
    for i, part in enumerate(pb.unstack(rows, axis=0)):
        following = part if total is None else function(total, part)
        total = following if masks is None else pb.where(pb.asarray(masks[i]), following, total)
    total = pb.broadcast_to(pb.asarray(0.0 if total is None else total), shape)
    return pb.reshape(total, tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdims else total


def accumulate(function: Callable[..., Any], name: str, x: Tensor, axis: int) -> Tensor:
    """A ufunc between all elements up to each along `axis`."""
    if name in _RUNNING:
        return getattr(pb, _RUNNING[name])(x, axis=axis)
    parts = list(pb.unstack(x, axis=axis))
    for i in range(1, len(parts)):
        parts[i] = function(parts[i - 1], parts[i])
    return pb.stack(parts, axis=axis) if parts else x


def reduceat(function: Callable[..., Any], name: str, x: Tensor, indices: Any, axis: int) -> Tensor:
    """A ufunc between the elements from each index to the next along `axis`; one element where the next is no later."""
    places = [int(i) for i in np.asarray(indices)]
    x = pb.moveaxis(x, axis, 0)
    ends = [*places[1:], x.shape[0]]
    parts = [
        reduce(function, name, x[i:end], 0, False, None, True) if i < end else x[i] for i, end in zip(places, ends)
    ]
    return pb.moveaxis(pb.stack(parts, axis=0) if parts else x[:0], 0, axis)
