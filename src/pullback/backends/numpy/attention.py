"""NumPy kernels: attention and rotary embedding.

The scores of a few heads, or of a few rows of one, are in memory at a time. The gradient computes them again, from the
inputs and from the logarithm of each row's denominator, so that nothing of the size of all scores is kept.
"""

from __future__ import annotations

import math as _math
from typing import Any, Iterator

import numpy as _np

from .precision import computed_in as _computed_in
from .random import philox_uint32 as _philox_uint32

_BLOCK_BYTES = 1 << 22  # of the scores that are in memory at a time
_CAUSAL_ROWS = 128  # most rows in a block where the hidden half of the scores is to be left out


def attention(
    q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, dropout: float, key: int, offset: int
) -> tuple[Any, Any]:
    dtype, (queries, keys, values) = _grouped(q, k, v)
    out = _np.zeros((*queries.shape[:-1], values.shape[-1]), queries.dtype)
    lse = _np.full(queries.shape[:-1], _np.inf, queries.dtype)  # of a row that sees nothing: exp(-lse) is 0
    bias = None if mask is None else _with_grouped_heads(mask, q.shape[:-3], queries.shape[1:3])
    for block in _blocks(queries.shape, keys.shape[-2], is_causal, queries.itemsize):
        scores = _scores(queries, keys, bias, block, is_causal, scale)
        if not scores.size:
            continue
        highest = scores.max(axis=-1, keepdims=True)
        hidden = highest == -_np.inf
        highest[hidden] = 0
        scores -= highest
        _np.exp(scores, out=scores)
        total = scores.sum(axis=-1, keepdims=True)
        total[hidden] = 1
        if dropout:
            scores *= _kept(queries.shape, keys.shape[-2], block, scores, dropout, key, offset)
        some, heads, rows = block
        weighted = _np.matmul(_joined(scores), values[some, heads, : scores.shape[-1]])
        out[some, heads, :, rows] = weighted.reshape(*scores.shape[:-1], v.shape[-1]) / total
        lse[some, heads, :, rows] = _np.where(hidden, _np.inf, highest + _np.log(total))[..., 0]
    shape = q.shape[:-1]
    return out.reshape(*shape, v.shape[-1]).astype(dtype, copy=False), lse.reshape(shape)


def attention_gradient(
    g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any,
    is_causal: bool, scale: float, dropout: float, key: int, offset: int,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of those of q, k, v and mask that `needs` asks for."""
    _, (queries, keys, values) = _grouped(q, k, v)
    work = queries.dtype
    g, out = (x.astype(work, copy=False).reshape(*queries.shape[:-1], v.shape[-1]) for x in (g, out))
    lse = lse.astype(work, copy=False).reshape(queries.shape[:-1])
    bias: Any = None if mask is None else _with_grouped_heads(mask, q.shape[:-3], queries.shape[1:3])
    wants_scores = needs[0] or needs[1] or needs[3]
    dq = _np.zeros_like(queries) if needs[0] else None
    dk = _np.zeros_like(keys) if needs[1] else None
    dv = _np.zeros_like(values) if needs[2] else None
    dbias = _np.zeros(bias.shape, work) if needs[3] else None
    for block in _blocks(queries.shape, keys.shape[-2], is_causal, queries.itemsize):
        some, heads, rows = block
        share = _scores(queries, keys, bias, block, is_causal, scale)
        if not share.size:
            continue
        visible = share.shape[-1]
        share -= lse[some, heads, :, rows, None]
        _np.exp(share, out=share)
        dout = g[some, heads, :, rows]
        dout_rows = _joined(dout)
        kept = _kept(queries.shape, keys.shape[-2], block, share, dropout, key, offset) if dropout else None
        if dv is not None:
            used = share if kept is None else share * kept
            dv[some, heads, :visible] += _np.matmul(_joined(used).swapaxes(-1, -2), dout_rows)
        if not wants_scores:
            continue
        dscores = _np.matmul(dout_rows, values[some, heads, :visible].swapaxes(-1, -2)).reshape(share.shape)
        if kept is not None:
            dscores *= kept
        dscores -= (dout * out[some, heads, :, rows]).sum(axis=-1, keepdims=True)
        dscores *= share
        if dbias is not None:
            place = _part(dbias.shape, block, visible)
            summed = tuple(axis for axis, n in enumerate(dbias.shape) if n == 1 and dscores.shape[axis] != 1)
            dbias[place] += dscores.sum(axis=summed, keepdims=True) if summed else dscores
        by_row = _joined(dscores)
        if dq is not None:
            product = _np.matmul(by_row, keys[some, heads, :visible]) * scale
            dq[some, heads, :, rows] = product.reshape(*share.shape[:-1], q.shape[-1])
        if dk is not None:
            rows_of_q = _joined(queries[some, heads, :, rows]) * scale
            dk[some, heads, :visible] += _np.matmul(by_row.swapaxes(-1, -2), rows_of_q)
    gradients = [
        None if d is None else d.reshape(x.shape).astype(x.dtype, copy=False) for d, x in ((dq, q), (dk, k), (dv, v))
    ]
    return (*gradients, None if dbias is None else _summed_like(dbias, mask, q.shape[:-3]))


def _kept(shape: Any, width: int, block: Any, scores: Any, dropout: float, key: int, offset: int) -> Any:
    """The factors of dropout on a block: 0, or 1 / (1 - dropout). All scores are numbered, hidden ones too."""
    factors = _np.zeros(scores.shape, scores.dtype)
    threshold = round(dropout * 2**32)
    if threshold >= 2**32:
        return factors
    some, heads, rows = block
    _, all_heads, group, length, _ = shape
    visible = scores.shape[-1]
    for i, sample in enumerate(range(some.start, some.stop)):
        for j, head in enumerate(range(heads.start, heads.stop)):
            for m in range(group):
                first = ((sample * all_heads + head) * group + m) * length + rows.start
                words = _philox_uint32(key, offset + first * width, (rows.stop - rows.start) * width)
                factors[i, j, m] = (words >= _np.uint32(threshold)).reshape(-1, width)[:, :visible]
    factors *= 1 / (1 - dropout)
    return factors


# -- blocks ------------------------------------------------------------------------------------------------------


def _grouped(q: Any, k: Any, v: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    """q as (samples, heads of k, n, length, width), k and v as (samples, heads, length, width), in one dtype.

    Half precision is computed in single.
    """
    dtype = _np.result_type(q, k, v)
    work = _computed_in(dtype)
    q, k, v = (x.astype(work, copy=False) for x in (q, k, v))
    samples = _math.prod(q.shape[:-3])
    heads = k.shape[-3]
    group = q.shape[-3] // heads if heads else 1
    return dtype, (
        q.reshape(samples, heads, group, *q.shape[-2:]),
        k.reshape(samples, *k.shape[-3:]),
        v.reshape(samples, *v.shape[-3:]),
    )


def _blocks(shape: Any, width: int, is_causal: bool, itemsize: int) -> Iterator[tuple[slice, slice, slice]]:
    """Cut the queries into (samples, heads, rows): several samples, several heads of one, or rows of one head."""
    samples, heads, group, length, _ = shape
    row = max(1, group * width * itemsize)
    most = length if not is_causal or length * row * heads <= _BLOCK_BYTES // 4 else _CAUSAL_ROWS
    rows = max(1, min(length, most, _BLOCK_BYTES // row))
    together = max(1, _BLOCK_BYTES // (row * rows))
    at_once = min(heads, together)
    some = max(1, together // max(1, heads))
    for sample in range(0, samples, some):
        for head in range(0, heads, max(1, at_once)):
            for start in range(0, length, rows):
                yield (
                    slice(sample, min(sample + some, samples)),
                    slice(head, min(head + at_once, heads)),
                    slice(start, min(start + rows, length)),
                )


def _scores(queries: Any, keys: Any, bias: Any, block: Any, is_causal: bool, scale: float) -> Any:
    """The scores of a block of queries with the keys that they may see, (samples, heads, n, rows, keys)."""
    some, heads, rows = block
    visible = min(keys.shape[-2], rows.stop) if is_causal else keys.shape[-2]
    part = queries[some, heads, :, rows]
    scores = _np.matmul(_joined(part * scale), keys[some, heads, :visible].swapaxes(-1, -2))
    scores = scores.reshape(*part.shape[:-1], visible)
    if bias is not None:
        shown = bias[_part(bias.shape, block, visible)]
        scores += _np.where(shown, scores.dtype.type(0), scores.dtype.type(-_np.inf)) if shown.dtype == bool else shown
    if is_causal and visible > rows.start:
        row, column = _np.arange(rows.start, rows.stop), _np.arange(rows.start, visible)
        scores[..., rows.start :] += _np.where(column <= row[:, None], 0, -_np.inf).astype(scores.dtype)
    return scores


def _joined(x: Any) -> Any:
    """Heads that share their keys as more rows."""
    samples, heads, group, rows, width = x.shape
    return x.reshape(samples, heads, group * rows, width)


def _with_grouped_heads(mask: Any, batch: Any, heads: Any) -> Any:
    """A mask as (samples, heads of k, n, rows, keys), where every axis may be 1 long instead."""
    mask = mask.reshape((1,) * (len(batch) + 3 - mask.ndim) + mask.shape)
    lead = mask.shape[: len(batch)]
    if _math.prod(lead) > 1:
        mask = _np.broadcast_to(mask, (*batch, *mask.shape[len(batch) :]))
    samples = _math.prod(mask.shape[: len(batch)])
    grouped = heads if mask.shape[-3] != 1 else (1, 1)
    return mask.reshape(samples, *grouped, *mask.shape[-2:])


def _part(shape: Any, block: Any, visible: int) -> tuple[slice, ...]:
    """What a mask has for a block."""
    some, heads, rows = block
    wanted = (some, heads, slice(None), rows, slice(visible))
    return tuple(slice(None) if n == 1 else part for n, part in zip(shape, wanted))


def _summed_like(dbias: Any, mask: Any, batch: Any) -> Any:
    """Bring the gradient of a mask with grouped heads back to the mask's own shape."""
    full = (1,) * (len(batch) + 3 - mask.ndim) + mask.shape
    if _math.prod(full[: len(batch)]) > 1:
        dbias = dbias.reshape(*batch, *dbias.shape[1:])
        axes = tuple(axis for axis, n in enumerate(batch) if full[axis] != n)
        dbias = dbias.sum(axis=axes, keepdims=True)
    return dbias.reshape(mask.shape).astype(mask.dtype, copy=False)


# -- rotary embedding --------------------------------------------------------------------------------------------


def rotate_pairs(x: Any, interleaved: bool) -> Any:
    out = _np.empty_like(x)
    (a, b), (left, right) = _pairs(x, interleaved), _pairs(out, interleaved)
    _np.negative(b, out=left)
    right[...] = a
    return out


def rotary_embedding(x: Any, cos: Any, sin: Any, interleaved: bool, transposed: bool) -> Any:
    half = x.dtype.itemsize == 2
    work = _np.float32 if half else _np.result_type(x, cos, sin)
    wide = x.astype(work, copy=False)
    cos, sin = cos.astype(work, copy=False), sin.astype(work, copy=False)
    out = wide * cos
    (a, b), (left, right) = _pairs(wide, interleaved), _pairs(out, interleaved)
    first, second = _pairs(sin, interleaved)
    if transposed:
        left += b * second
        right -= a * first
    else:
        left -= b * first
        right += a * second
    return out.astype(x.dtype) if half else out


def _pairs(x: Any, interleaved: bool) -> tuple[Any, Any]:
    """The first and the second elements of the pairs along the last axis: neighbours, or half of it apart."""
    if interleaved:
        return x[..., 0::2], x[..., 1::2]
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]
