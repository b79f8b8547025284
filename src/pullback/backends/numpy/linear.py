"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as _np

from ...errors import ShapeError as _ShapeError
from .native import on_large as _on_large
from .precision import is_half as _is_half

_float32 = _np.float32
# Multiplications from which on BLAS has several threads. They spin when they are done, and whoever computes next has
# their processors only half the time: so native code, with threads of its own, computes all larger products.
_LARGE = 1 << 18
_LARGE_OUTER = 1 << 14  # for outer products, which BLAS has no good way for
_SMALL = 1 << 10  # elements: most arrays are small, and need no further look


def matmul(x: Any, y: Any) -> Any:
    try:
        if (x.size > _SMALL or y.size > _SMALL) and y.ndim > 1 and x.ndim > 1:
            if x.size * y.shape[-1] > (_LARGE if x.shape[-1] > 1 else _LARGE_OUTER):
                return _on_large(("kernel", "matmul"), _matmul, (x, y))
        return _matmul(x, y)
    except (ValueError, AttributeError) as error:  # a Python number has no axes at all
        a, b = getattr(x, "shape", ()), getattr(y, "shape", ())
        raise _ShapeError(
            f"matmul: shapes {a} and {b} do not fit: the last axis of the first must be as long as the "
            f"{'last but one' if len(b) > 1 else 'only'} axis of the second, and neither may have no axes at all."
        ) from error


def _matmul(x: Any, y: Any) -> Any:
    if x.ndim > 1 and y.ndim > 1 and x.shape[-1] == y.shape[-2] == 1:
        return _np.multiply(x, y)
    if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous and x.size:  # one product, not many
        return _matmul(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
    if x.dtype.itemsize == 2 and _is_half(x) and _is_half(y):  # no BLAS for these
        return _np.matmul(x.astype(_float32), y.astype(_float32)).astype(_np.result_type(x, y))
    return _np.matmul(x, y)


def outer(x: Any, y: Any) -> Any:
    return matmul(x[..., None], y[..., None, :])


def linear(x: Any, weight: Any, bias: Any) -> Any:
    if weight.size > _SMALL and x.size * weight.shape[0] > _LARGE and x.ndim > 1 and weight.ndim > 1:
        return _on_large(("kernel", "linear"), _linear, (x, weight, bias))
    return _linear(x, weight, bias)


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    out = matmul(x, weight.T)
    if bias is None:
        return out
    if out.ndim and bias.dtype == out.dtype:
        out += bias
        return out
    return out + bias


def vecdot(x: Any, y: Any, axis: int) -> Any:
    if _is_half(x) and _is_half(y):
        return _np.vecdot(x.astype(_float32), y.astype(_float32), axis=axis).astype(_np.result_type(x, y))
    return _np.vecdot(x, y, axis=axis)


def tensordot(x: Any, y: Any, axes: Any) -> Any:
    if _is_half(x) and _is_half(y):
        return _np.tensordot(x.astype(_float32), y.astype(_float32), axes).astype(_np.result_type(x, y))
    return _np.tensordot(x, y, axes)


def diagonal(x: Any, offset: int) -> Any:
    return _np.diagonal(x, offset, -2, -1)


def place_diagonal(value: Any, shape: Any, offset: int) -> Any:
    """Zeros with `value` on a diagonal."""
    out = _np.zeros(shape, value.dtype)
    first = _np.arange(value.shape[-1])
    out[..., first + max(-offset, 0), first + max(offset, 0)] = value
    return out
