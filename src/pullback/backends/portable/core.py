"""Portable kernels that the rules and the engine themselves use."""

from __future__ import annotations

import math
from typing import Any


def sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes that broadcasting `shape` to `x.shape` added or stretched."""
    before, after = tuple(x.shape), tuple(shape)
    extra = len(before) - len(after)
    if before[extra:] == after:  # the common case: axes were only added
        return xp.sum(x, tuple(range(-len(before), -len(after))), False) if extra else x
    axes = tuple(i - len(before) for i, n in enumerate(before) if i < extra or (after[i - extra] == 1 and n != 1))
    if axes:
        x = xp.sum(x, axes, True)
    return x if tuple(x.shape) == after else xp.reshape(x, after)


def raw_dtype(x: Any) -> Any:
    """The backend's own dtype of a raw array or of a tensor."""
    return getattr(x, "_raw", x).dtype


def integers(xp: Any, count: int, like: Any) -> Any:
    """The numbers from 0 to `count`, that one left out, where `like` is."""
    from ... import backends, dtypes

    raw = getattr(like, "_raw", like)
    return xp.arange(0, count, 1, backends.of(raw).raw_dtype(dtypes.int64), like)


def widened(xp: Any, x: Any) -> Any:
    """`x`, in float32 if its own precision is only half."""
    from ...dtypes import float32
    from .. import of

    raw = getattr(x, "_raw", x)
    backend: Any = of(raw)
    dtype = backend.dtype_of(raw)
    return xp.astype(x, backend.raw_dtype(float32)) if dtype.kind == "float" and dtype.itemsize == 2 else x


def narrowed(xp: Any, x: Any, dtype: Any) -> Any:
    """`x` in the raw dtype `dtype`: undoes `widened`."""
    return x if raw_dtype(x) == dtype else xp.astype(x, dtype)


def blockwise(xp: Any, function: Any, kept: int, *arrays: Any) -> Any:
    """`function(*arrays)`: only NumPy gains from computing it piece by piece."""
    return function(*arrays)


def rows(xp: Any, x: Any) -> Any:
    """Stacked rows as one matrix, so that a sum over the stack is part of one product."""
    return xp.reshape(x, (-1, x.shape[-1])) if len(x.shape) > 2 and math.prod(x.shape) else x


def conjugate(xp: Any, x: Any) -> Any:
    """`conj`, which costs nothing for real numbers."""
    return xp.conj(x) if xp.is_complex(x) else x


def adjoint(xp: Any, x: Any) -> Any:
    return xp.conjugate(xp.matrix_transpose(x))


def cleared(xp: Any, mask: Any, x: Any) -> Any:
    """Zeros where `mask` holds, and `x` elsewhere."""
    return xp.where(mask, xp.zeros_like(x), x)
