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


def _like(x: Value, *options: Any) -> Form:
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


def _take_transposed(value: Value, indices: Any, size: int, axis: Any) -> Form:
    """Like `take`, backwards: where the indices' axes were there is one of length `size`."""
    if type(indices) is not Value or type(axis) is not int or indices.ndim != 1 or not value.ndim:
        return None
    axis %= value.ndim
    return (*value.shape[:axis], size, *value.shape[axis + 1 :]), value.dtype


def _take_along_axis(x: Value, indices: Any, axis: int) -> Form:
    if type(indices) is not Value or not _fit_along(x, indices, axis) or not x.shape[axis]:
        return None
    return indices.shape, x.dtype


def _take_along_axis_transposed(value: Value, indices: Any, size: int, axis: int) -> Form:
    if type(indices) is not Value or value.shape != indices.shape:
        return None
    axis %= value.ndim
    return (*value.shape[:axis], size, *value.shape[axis + 1 :]), value.dtype


def _fit_along(x: Value, indices: Value, axis: int) -> bool:
    """Whether two arrays have one shape but along an axis."""
    if not 0 < x.ndim == indices.ndim:
        return False
    axis %= x.ndim
    return all(n == m for i, (n, m) in enumerate(zip(x.shape, indices.shape)) if i != axis)


def _put_along_axis(x: Value, value: Any, indices: Any, axis: int) -> Form:
    fits = type(indices) is Value and _fit_along(x, indices, axis)
    return (x.shape, x.dtype) if fits and type(value) is Value and value.dtype == x.dtype else None


def _place(value: Value, shape: Any, index: Any) -> Form:
    return tuple(shape), value.dtype


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


def _along(x: Value, axis: Any, *options: Any) -> Form:
    """Of what goes along an axis: small integers may be summed in wider ones."""
    return (x.shape, x.dtype) if x.dtype.kind in "fcV" else None


def _argsort(x: Value, *options: Any) -> Form:
    return x.shape, np.dtype(np.int64)


def _recurrence(x: Value, *others: Any) -> Form:
    given = [other for other in others if type(other) is Value]
    return (x.shape, x.dtype) if x.dtype.kind in "fcV" and all(other.dtype == x.dtype for other in given) else None


def _of_matrix(x: Value) -> Form:
    is_square = x.ndim > 1 and x.shape[-1] == x.shape[-2] > 0
    return (x.shape, x.dtype) if is_square and x.dtype.kind in "fc" else None


def _det(x: Value) -> Form:
    return None if _of_matrix(x) is None else (x.shape[:-2], x.dtype)


def _solve(x: Value, y: Any, *options: Any) -> Form:
    if _of_matrix(x) is None or type(y) is not Value or y.dtype != x.dtype or y.shape[:-1] != x.shape[:-1]:
        return None
    return y.shape, y.dtype


def _convolution(x: Value, weight: Value, *rest: Any) -> Form:
    stride, padding, dilation, _ = rest[-4:]
    if x.dtype != weight.dtype or x.dtype.kind not in "fcV" or 0 in x.shape or 0 in weight.shape:
        return None
    axes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    size = [(n + low + high - step * (k - 1) - 1) // s + 1 for n, k, s, (low, high), step in axes]
    return (x.shape[0], weight.shape[0], *size), x.dtype


def _input_gradient(y: Value, weight: Value, size: Any, *geometry: Any) -> Form:
    if y.dtype != weight.dtype or y.dtype.kind not in "fcV":
        return None
    return (y.shape[0], weight.shape[1] * geometry[-1], *size), y.dtype


def _weight_gradient(y: Value, x: Value, size: Any, *geometry: Any) -> Form:
    if y.dtype != x.dtype or y.dtype.kind not in "fcV":
        return None
    return (y.shape[1], x.shape[1] // geometry[-1], *size), y.dtype


def _max_pool(x: Value, axes: Any) -> Form:
    if x.dtype.kind not in "fV" or 0 in x.shape:
        return None
    shape = (*x.shape[:2], *[axis.out for axis in axes])
    return [(shape, x.dtype), (shape, np.dtype(np.int64))]


def _pool_scatter(x: Value, indices: Value, size: Any) -> Form:
    return (*x.shape[:2], *size), x.dtype


#: By the name of a kernel: the form of what it makes of these arguments, or None where an example must show it.
FORMS: dict[str, Callable[..., Form]] = {
    "astype": _astype, "zeros_like": _like, "ones_like": _like, "concat": _concat, "take": _take,
    "cross_entropy": _cross_entropy, "cross_entropy_gradient": _cross_entropy_gradient,
    "attention": _attention, "attention_gradient": _attention_gradient,
    "take_transposed": _take_transposed, "take_along_axis": _take_along_axis,
    "take_along_axis_transposed": _take_along_axis_transposed, "put_along_axis": _put_along_axis, "place": _place,
    "sort": _like, "argsort": _argsort, "running_indices": _argsort,
    "cumulative_sum": _along, "cumulative_prod": _along,
    "recurrence": _recurrence, "ssm_scan": _recurrence, "roll": _like, "shift": _like, "tril": _like,
    "triu": _like, "solve": _solve, "inv": _of_matrix, "cholesky": _of_matrix, "det": _det,
    "convolution": _convolution, "biased_convolution": _convolution, "convolution_input_gradient": _input_gradient,
    "convolution_weight_gradient": _weight_gradient, "max_pool": _max_pool, "pool_scatter": _pool_scatter,
}  # fmt: skip
