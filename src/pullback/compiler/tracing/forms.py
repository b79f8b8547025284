"""Shapes and dtypes of what some kernels make, by rule: those whose examples would be as large as their results."""

from __future__ import annotations

from math import prod
from typing import Any, Callable

import numpy as np

from ... import dtypes
from ..program import Value

#: What is known of a result: (shape, dtype), or None for a result that is absent; a list for several results.
Form = Any


def _astype(x: Value, dtype: Any) -> Form:
    return x.shape, np.dtype(dtype)


def _like(x: Value) -> Form:
    return x.shape, x.dtype


def _concat(xs: Any, axis: int) -> Form:
    shape = list(xs[0].shape)
    if len({x.dtype for x in xs}) > 1 or not shape or len({x.ndim for x in xs}) > 1:
        return None
    axis %= len(shape)
    if any(x.shape[:axis] + x.shape[axis + 1 :] != (*shape[:axis], *shape[axis + 1 :]) for x in xs):
        return None
    shape[axis] = sum(x.shape[axis] for x in xs)
    return tuple(shape), xs[0].dtype


def _take(x: Value, indices: Any, axis: Any) -> Form:
    if type(indices) is not Value or type(axis) is not int or not x.shape or not prod(x.shape):
        return None
    axis %= x.ndim
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype


def _attention(q: Value, k: Value, v: Value, mask: Any, *options: Any) -> Form:
    if not _is_attention(q, k, v):
        return None
    return [((*q.shape[:-1], v.shape[-1]), q.dtype), (q.shape[:-1], _wide(q.dtype))]


def _attention_gradient(
    g: Value, q: Value, k: Value, v: Value, mask: Any, out: Any, lse: Any, needs: Any, *options: Any
) -> Form:
    if not _is_attention(q, k, v) or needs[3]:
        return None
    return [(part.shape, part.dtype) if needed else None for part, needed in zip((q, k, v), needs)] + [None]


def _is_attention(q: Value, k: Value, v: Value) -> bool:
    """Whether these fit each other, as nearly always; the kernel itself says what does not."""
    if not q.ndim == k.ndim == v.ndim >= 3:
        return False
    shapes = q.shape[:-3] == k.shape[:-3] == v.shape[:-3] and k.shape[-3:-1] == v.shape[-3:-1]
    heads = k.shape[-3] > 0 and q.shape[-3] % k.shape[-3] == 0 and q.shape[-1] == k.shape[-1]
    return shapes and heads and q.dtype == k.dtype == v.dtype and q.dtype.kind in "fV"


def _wide(dtype: Any) -> Any:
    """The dtype in which sums of numbers of a dtype are kept."""
    return np.dtype(np.float32) if dtypes.from_numpy(dtype) in (dtypes.float16, dtypes.bfloat16) else dtype


def _cross_entropy(
    x: Value, target: Value, weight: Any, ignore_index: int, reduction: str, label_smoothing: float
) -> Form:
    if x.ndim != 2 or type(target) is not Value or target.shape != x.shape[:1] or x.dtype.kind not in "fV":
        return None
    wide = _wide(x.dtype)
    return [(target.shape if reduction == "none" else (), x.dtype), (target.shape, wide), ((), wide)]


def _cross_entropy_gradient(g: Value, x: Value, *options: Any) -> Form:
    return x.shape, x.dtype


#: By the name of a kernel: the form of what it makes of these arguments, or None where an example must show it.
FORMS: dict[str, Callable[..., Form]] = {
    "astype": _astype, "zeros_like": _like, "ones_like": _like, "concat": _concat, "take": _take,
    "cross_entropy": _cross_entropy, "cross_entropy_gradient": _cross_entropy_gradient,
    "attention": _attention, "attention_gradient": _attention_gradient,
}  # fmt: skip
