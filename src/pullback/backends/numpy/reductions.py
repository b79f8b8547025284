"""Reductions. `axis` is None or a tuple of negative integers."""

from __future__ import annotations

from typing import Any

import numpy as _np

_add_reduce = _np.add.reduce


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _add_reduce(x, axis, None, None, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.mean(x, axis=axis, keepdims=keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.max(x, axis=axis, keepdims=keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.min(x, axis=axis, keepdims=keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.prod(x, axis=axis, keepdims=keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.any(x, axis=axis, keepdims=keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _np.all(x, axis=axis, keepdims=keepdims)
