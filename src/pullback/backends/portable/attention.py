"""Portable kernels: attention and rotary embedding."""

from __future__ import annotations

import math as _math
from typing import Any

from .core import integers

_HIDDEN = -1e30  # a score that no visible one is below; finite, so that differences of scores are


def attention(
    xp: Any, q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, dropout: float, key: int, offset: int
) -> tuple[Any, Any]:
    scores, live = _scores(xp, xp.widened(q), xp.widened(k), mask, is_causal, scale)
    if not scores.shape[-1]:
        return xp.zeros((*q.shape[:-1], v.shape[-1]), q.dtype, q), xp.sum(scores, (-1,), False)
    highest = xp.max(scores, (-1,), True)
    shares = xp.exp(scores - highest)
    if live is not None:
        shares = xp.where(live, shares, xp.zeros_like(shares))
    total = xp.sum(shares, (-1,), True)
    total = xp.where(total > 0, total, xp.ones_like(total))
    lse = xp.getitem(highest + xp.log(total), (..., 0))
    shares = shares / total
    if dropout:
        shares = _dropped(xp, shares, dropout, key, offset)
    out = _per_head(xp, shares, xp.widened(v))
    return (xp.narrowed(out, q.dtype) if q.dtype == k.dtype == v.dtype else out), lse


def attention_gradient(
    xp: Any, g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any,
    is_causal: bool, scale: float, dropout: float, key: int, offset: int,
) -> tuple[Any, ...]:  # fmt: skip
    keys, values, g = xp.widened(k), xp.widened(v), xp.widened(g)
    scores, live = _scores(xp, xp.widened(q), keys, mask, is_causal, scale)
    shares = xp.exp(scores - xp.expand_dims(lse, (-1,)))
    if live is not None:
        shares = xp.where(live, shares, xp.zeros_like(shares))
    used = _dropped(xp, shares, dropout, key, offset) if dropout else shares
    dv = xp.matmul(xp.matrix_transpose(_grouped(xp, used, k)), _grouped(xp, g, k))
    dshares = _per_head(xp, g, xp.matrix_transpose(values))
    if dropout:
        dshares = _dropped(xp, dshares, dropout, key, offset)
    dscores = shares * (dshares - xp.sum(g * xp.widened(out), (-1,), True))
    dq = _per_head(xp, dscores, keys) * scale
    dk = xp.matmul(xp.matrix_transpose(_grouped(xp, dscores, k)), _grouped(xp, xp.widened(q), k)) * scale
    dmask = xp.narrowed(xp.sum_to(dscores, mask.shape), mask.dtype) if needs[3] else None
    return xp.narrowed(dq, q.dtype), xp.narrowed(dk, k.dtype), xp.narrowed(dv, v.dtype), dmask


def _scores(xp: Any, q: Any, k: Any, mask: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    """The scores, and which of them are not hidden (None: all)."""
    scores = _per_head(xp, q * scale, xp.matrix_transpose(k))
    live = None
    if mask is not None:
        if _is_boolean(mask):
            live = mask
        else:
            live = xp.not_equal(mask, -_math.inf)
            scores = scores + xp.where(live, mask, xp.zeros_like(mask))
    if is_causal:
        number = integers(xp, max(scores.shape[-2:]), q)
        row = xp.expand_dims(xp.getitem(number, slice(0, scores.shape[-2])), (-1,))
        seen = xp.greater_equal(row, xp.getitem(number, slice(0, scores.shape[-1])))
        live = seen if live is None else xp.logical_and(live, seen)
    if live is not None:
        live = xp.broadcast_to(live, scores.shape)
        scores = xp.where(live, scores, xp.full(scores.shape, _HIDDEN, scores.dtype, scores))
    return scores, live


def _per_head(xp: Any, x: Any, y: Any) -> Any:
    """x @ y where several heads of `x`, one after the other, use the same head of `y`."""
    return xp.reshape(xp.matmul(_grouped(xp, x, y), y), (*x.shape[:-1], y.shape[-1]))


def _grouped(xp: Any, x: Any, y: Any) -> Any:
    """The heads of `x` that use the same head of `y` as more rows."""
    heads = y.shape[-3]
    group = x.shape[-3] // heads if heads else 1
    return xp.reshape(x, (*x.shape[:-3], heads, group * x.shape[-2], x.shape[-1]))


def _dropped(xp: Any, x: Any, dropout: float, key: int, offset: int) -> Any:
    result = xp.dropout(x, dropout, key, offset)
    return result[0] if isinstance(result, tuple) else result  # a raw kernel's has the residual too


def _is_boolean(mask: Any) -> bool:
    from ... import backends

    raw = getattr(mask, "_raw", mask)
    return backends.of(raw).dtype_of(raw).kind == "bool"


def rotate_pairs(xp: Any, x: Any, interleaved: bool) -> Any:
    if interleaved:
        first, second = xp.getitem(x, (..., slice(0, None, 2))), xp.getitem(x, (..., slice(1, None, 2)))
        return xp.reshape(xp.stack([-second, first], -1), x.shape)
    half = x.shape[-1] // 2
    return xp.concat([-xp.getitem(x, (..., slice(half, None))), xp.getitem(x, (..., slice(0, half)))], -1)


def rotary_embedding(xp: Any, x: Any, cos: Any, sin: Any, interleaved: bool, transposed: bool) -> Any:
    if transposed:
        return x * cos - xp.rotate_pairs(x * sin, interleaved)
    return x * cos + xp.rotate_pairs(x, interleaved) * sin
