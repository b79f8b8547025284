"""Portable kernels: normalisation layers, dropout and embedding."""

from __future__ import annotations

from typing import Any

from .core import raw_dtype


def _finished(xp: Any, out: Any, x: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return xp.narrowed(out, raw_dtype(x))


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
    wide = xp.widened(x)
    mean = xp.mean(wide, axis, True)
    centred = wide - mean
    rstd = 1 / xp.sqrt(xp.mean(centred * centred, axis, True) + eps)
    return _finished(xp, centred * rstd, x, weight, bias), mean, rstd


def rms_norm(xp: Any, x: Any, weight: Any, axis: Any, eps: float) -> Any:
    wide = xp.widened(x)
    rstd = 1 / xp.sqrt(xp.mean(wide * wide, axis, True) + eps)
    return _finished(xp, wide * rstd, x, weight, None), rstd


def batch_norm(xp: Any, x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
    wide = xp.widened(x)
    mean = xp.mean(wide, axis, True)
    centred = wide - mean
    variance = xp.mean(centred * centred, axis, True)
    return _finished(xp, centred * (1 / xp.sqrt(variance + eps)), x, weight, bias), mean, variance


def reciprocal_deviation(xp: Any, centred: Any, variance: Any, axis: Any, eps: float) -> Any:
    return 1 / xp.sqrt(variance + eps)


def multiply_add(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    return x * scale + shift


def dropout(xp: Any, x: Any, p: float, key: int, offset: int) -> Any:
    kept = xp.dropout_mask(x, p, key, offset)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return xp.where(kept, x * scale, xp.zeros_like(x)), kept


def dropout_mask(xp: Any, x: Any, p: float, key: int, offset: int) -> Any:
    """Which elements are kept: made by the NumPy kernel, so that it is the same on every device."""
    import numpy as np

    from ...dtypes import bool_
    from .. import NUMPY, of

    raw = getattr(x, "_raw", x)
    kept = NUMPY.xp.dropout(np.zeros(x.shape, np.float32), p, key, offset)[1]
    backend: Any = of(raw)
    return backend.asarray(kept, bool_, backend.device_of(raw), None)


def embedding(xp: Any, indices: Any, weight: Any) -> Any:
    rows = xp.take(weight, xp.reshape(indices, (-1,)), -2)
    return xp.reshape(rows, (*indices.shape, weight.shape[-1]))
