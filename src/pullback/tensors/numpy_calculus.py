"""NumPy's differences, integrals, interpolation and filters, in terms of Pullback's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from ..errors import ShapeError
from .numpy_protocols import in_numpy
from .numpy_shapes import _tensor
from .numpy_ufuncs import operand as _operand
from .tensor import Tensor


def _given(value: Any) -> Any:
    return None if value is np._NoValue else value


def numpy_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    return pb.trapezoid(_tensor(y), None if x is None else _tensor(x), _operand(dx), axis=axis)


def numpy_diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x = _tensor(a)
    if n == 0:
        return x
    parts = [_edge(_given(prepend), x, axis), x, _edge(_given(append), x, axis)]
    return pb.diff(pb.concat([part for part in parts if part is not None], axis=axis), axis=axis, n=n)


def _edge(value: Any, x: Tensor, axis: int) -> Any:
    if value is None:
        return None
    value = _tensor(value)
    if value.ndim == 0:
        value = pb.broadcast_to(value, tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)))
    return value


def numpy_ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [to_begin, pb.diff(pb.ravel(_tensor(ary))), to_end]
    return pb.concat([pb.ravel(_tensor(part)) for part in parts if part is not None])


def numpy_gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = _tensor(f)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = [i % x.ndim for i in axes]
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 and np.ndim(varargs[0]) and len(axes) > 1):
        raise ShapeError(f"np.gradient: {len(varargs)} spacings were given for {len(axes)} axes.")
    spacings = list(varargs) * (len(axes) if len(varargs) == 1 else 1) if varargs else [1.0] * len(axes)
    found = [pb.moveaxis(_slopes(pb.moveaxis(x, i, -1), h, edge_order), -1, i) for i, h in zip(axes, spacings)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Tensor, spacing: Any, edge_order: int) -> Tensor:
    """Slopes along the last axis: between both neighbours inside, to one or two neighbours at the ends."""
    if f.shape[-1] < (2 if edge_order == 1 else 3):
        raise ShapeError(
            f"np.gradient: an axis needs at least {2 if edge_order == 1 else 3} elements, shape {f.shape} has fewer."
        )
    spacing = _tensor(spacing)
    steps = spacing[1:] - spacing[:-1] if spacing.ndim else pb.broadcast_to(spacing, (f.shape[-1] - 1,))
    rises = f[..., 1:] - f[..., :-1]
    slopes = rises / steps
    before, after = steps[:-1], steps[1:]
    inside = (slopes[..., :-1] * after + slopes[..., 1:] * before) / (before + after)
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order != 1:  # the slope of the parabola through three points
        first = first - (slopes[..., 1:2] - first) * steps[0] / (steps[0] + steps[1])
        last = last + (last - slopes[..., -2:-1]) * steps[-1] / (steps[-2] + steps[-1])
    return pb.concat([first, inside, last], axis=-1)


def numpy_interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = pb.real(_tensor(x)), pb.real(_tensor(xp)), _tensor(fp)
    if period is not None:
        period = abs(period)
        x, xp = pb.remainder(x, period), pb.remainder(xp, period)
        order = np.argsort(in_numpy(xp))
        xp, fp = xp[order], fp[order]
        xp = pb.concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = pb.concat([fp[-1:], fp, fp[:1]])
        left = right = None
    left, right = fp[0] if left is None else _operand(left), fp[-1] if right is None else _operand(right)
    knots = np.asarray(in_numpy(xp))
    if knots.size == 1:
        inside: Any = fp[0] + 0.0 * x
    else:
        lower = np.clip(np.searchsorted(knots, in_numpy(x), "right") - 1, 0, knots.size - 2)
        start, width = xp[lower], xp[lower + 1] - xp[lower]
        inside = fp[lower] + (x - start) * (fp[lower + 1] - fp[lower]) / width
    inside = pb.where(pb.less(x, xp[0]), left, inside)
    return pb.where(pb.greater(x, xp[-1]), right, inside)


_MODES = {0: "valid", 1: "same", 2: "full"}


def numpy_convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = (pb.reshape(part, (-1,)) if part.ndim == 0 else part for part in (_tensor(a), _tensor(v)))
    mode = _MODES.get(mode, mode)
    if y.size > x.size:
        x, y = y, x
    padded = pb.concat([pb.zeros((y.size - 1,), dtype=x.dtype, device=x.device)] * 2)
    padded = pb.concat([padded[: y.size - 1], x, padded[y.size - 1 :]])
    windows = np.arange(x.size + y.size - 1)[:, None] + np.arange(y.size)
    full = pb.matmul(padded[windows], pb.flip(y))
    if mode.startswith("f"):
        return full
    length = x.size if mode.startswith("s") else x.size - y.size + 1
    start = (y.size - 1) // 2 if mode.startswith("s") else y.size - 1
    return full[start : start + length]


def numpy_correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    x, y = _tensor(a), _tensor(v)
    mode = _MODES.get(mode, mode)
    flipped = pb.flip(pb.conj(y) if y.dtype.kind == "complex" else y)
    if mode.startswith("s") and y.size > x.size:
        full = numpy_convolve(x, flipped, "full")
        start = x.size // 2
        return full[start : start + y.size]
    return numpy_convolve(x, flipped, mode)


def numpy_unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    x = _tensor(p)
    values = in_numpy(x)
    return x + pb.asarray(np.unwrap(values, discont, axis, period=period) - values)


def numpy_bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    places = np.asarray(in_numpy(x)).astype(np.intp)
    weights = pb.astype(_tensor(weights), pb.float64)
    length = max(minlength, int(places.max(initial=-1)) + 1)
    return pb.index_add(pb.zeros((length,), dtype=pb.float64, device=weights.device), places, weights)


def numpy_piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = _tensor(x)
    alone = np.isscalar(condlist) or (x.ndim != 0 and not isinstance(condlist[0], (list, np.ndarray, Tensor)))
    masks = [np.asarray(in_numpy(mask), bool) for mask in ([condlist] if alone else condlist)]
    if len(funclist) == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    elif len(funclist) != len(masks):
        expected = f"{len(masks)} or {len(masks) + 1} functions"
        raise ShapeError(f"np.piecewise: {len(masks)} conditions need {expected}, got {len(funclist)}.")
    out = pb.zeros_like(x)
    for mask, function in zip(masks, funclist):
        if not callable(function):
            out[mask] = _operand(function)
        elif x[mask].size:
            out[mask] = function(x[mask], *args, **kw)
    return out
