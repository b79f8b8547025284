"""`np.pad` in terms of Pullback's functions: the modes that compute something, one axis after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from ..errors import DtypeError
from .numpy_movement import moved
from .numpy_shapes import _tensor
from .tensor import Tensor

_STATISTICS = {"maximum": "max", "mean": "mean", "median": "median", "minimum": "min"}


def numpy_pad(
    array: Any,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: Any = "even",
) -> Any:
    """Elements that are only moved are moved by NumPy; means, ramps and odd reflections are computed."""
    if callable(mode):
        raise DtypeError("np.pad: a function as `mode` has no gradient here. Write it with np.concatenate.")
    if mode == "constant":
        return moved("pad", np.pad, (array, pad_width, mode), {"constant_values": constant_values})
    if mode in ("edge", "wrap", "empty") or (mode in ("reflect", "symmetric") and reflect_type != "odd"):
        return moved("pad", np.pad, (array, pad_width, mode), {})
    x = _tensor(array)
    widths = np.asarray(_pairs_of(pad_width, x.ndim)).astype(np.int64)
    lengths = None if stat_length is None else np.round(_pairs_of(stat_length, x.ndim)).astype(np.int64)
    ends = _ends(end_values, x.ndim)
    for axis in range(x.ndim):
        x = pb.moveaxis(x, axis, 0)
        left, right = (int(n) for n in widths[axis])
        if mode == "linear_ramp":
            x = pb.concat([_ramp(ends[axis][0], x[0], left), x, pb.flip(_ramp(ends[axis][1], x[-1], right), axis=0)])
        elif mode in _STATISTICS:
            before, after = (len(x),) * 2 if lengths is None else (min(int(n), len(x)) for n in lengths[axis])
            x = pb.concat([_statistic(mode, x[:before], left), x, _statistic(mode, x[len(x) - after :], right)])
        else:
            x = _reflected(x, left, right, mode == "symmetric")
        x = pb.moveaxis(x, 0, axis)
    return x


def _pairs_of(value: Any, ndim: int) -> Any:
    if isinstance(value, dict):
        pairs = np.zeros((ndim, 2), np.int64)
        for axis, width in value.items():
            pairs[axis] = width
        return pairs
    return np.broadcast_to(np.asarray(value), (ndim, 2))


def _ends(value: Any, ndim: int) -> Any:
    return pb.broadcast_to(_tensor(value), (ndim, 2)) if isinstance(value, Tensor) else _pairs_of(value, ndim).tolist()


def _ramp(end: Any, edge: Tensor, width: int) -> Tensor:
    """From `end` to the edge, without it."""
    share = pb.asarray((np.arange(width) / max(width, 1)).reshape((-1,) + (1,) * edge.ndim))
    return end * (1.0 - share) + edge * share


def _statistic(mode: str, area: Tensor, width: int) -> Tensor:
    if not area.shape[0]:  # NumPy gives NaN
        return pb.full((width, *area.shape[1:]), np.nan, dtype=area.dtype, device=area.device)
    value = getattr(pb, _STATISTICS[mode])(area, axis=0, keepdims=True)
    return pb.broadcast_to(value, (width, *value.shape[1:]))


def _reflected(x: Tensor, left: int, right: int, include_edge: bool) -> Tensor:
    """Twice the edge less the mirrored elements, again and again where the axis is shorter than the padding."""
    offset, period = (0 if include_edge else 1), x.shape[0]
    if period == 1 and not include_edge:
        return pb.concat([pb.broadcast_to(x, (n, *x.shape[1:])) for n in (left, 1, right)])
    while left or right:
        length = x.shape[0]
        usable = length // period * period if include_edge else (length - 1) // (period - 1) * (period - 1) + 1
        before, after = min(usable - offset, left), min(usable - offset, right)
        parts = [x]
        if before:
            parts.insert(0, 2 * x[:1] - pb.flip(x[offset : offset + before], axis=0))
        if after:
            stop = length - offset
            parts.append(2 * x[-1:] - pb.flip(x[stop - after : stop], axis=0))
        x, left, right = pb.concat(parts), left - before, right - after
    return x
