"""Moving elements without computing: views where NumPy has views."""

from __future__ import annotations

from typing import Any

import numpy as _np
from numpy import broadcast_to, concatenate as _concatenate, matmul  # noqa: F401


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


def concat(xs: Any, axis: Any) -> Any:
    return _concatenate(xs, axis)


def stack(xs: Any, axis: Any) -> Any:
    return _np.stack(xs, axis)


def zeros(shape: Any, dtype: Any, like: Any) -> Any:
    """Zeros on the device of the array `like`."""
    return _np.zeros(shape, dtype)


def full(shape: Any, value: Any, dtype: Any, like: Any) -> Any:
    return _np.full(shape, value, dtype)


def arange(start: Any, stop: Any, step: Any, dtype: Any, like: Any) -> Any:
    return _np.arange(start, stop, step, dtype)


zeros_like = _np.zeros_like
ones_like = _np.ones_like
