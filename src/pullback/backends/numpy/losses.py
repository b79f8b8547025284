"""NumPy kernels: losses. float16 and bfloat16 are computed in float32 and rounded once.

Classes are on axis 1 of the logits (samples, classes, ...), or on their only axis.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from .activations import _log1p_exp_of_minus_size
from .precision import widened as _widened

_BLOCK = 1 << 16  # logits looked at once
_LARGE = 2.0**20  # of log(sum(exp(x))): what is larger has too few digits left to tell shares apart


def _reduced(losses: Any, reduction: str, dtype: Any) -> Any:
    losses = _np.asarray(losses)
    if reduction == "none":
        return losses.astype(dtype, copy=False)
    total = _np.add.reduce(losses, None)
    if reduction == "mean":
        with _np.errstate(invalid="ignore"):  # the mean of nothing is NaN
            total = total / _np.float64(losses.size)
    return total.astype(dtype)


def _rows(x: Any) -> Any:
    """The logits with a row for each sample and position."""
    classes_last = x if x.ndim < 3 else _np.moveaxis(x, 1, -1)
    return classes_last.reshape(-1, classes_last.shape[-1])


def _blocks(rows: Any) -> Any:
    step = max(1, _BLOCK // max(rows.shape[1], 1))
    return (slice(start, start + step) for start in range(0, len(rows), step))


def _targets(target: Any, ignore_index: int, classes: int) -> tuple[Any, Any]:
    """All targets as valid classes, and which of them count: None if all do."""
    flat = target.reshape(-1)
    if not flat.size:
        return flat, None
    lowest, highest = int(_np.minimum.reduce(flat)), int(_np.maximum.reduce(flat))
    counts = flat != ignore_index if lowest <= ignore_index <= highest else None
    if counts is not None and not counts.all():
        flat = _np.where(counts, flat, flat.dtype.type(0))
        lowest, highest = int(_np.minimum.reduce(flat)), int(_np.maximum.reduce(flat))
    else:
        counts = None
    if lowest < 0 or highest >= classes:
        raise IndexError(f"targets from {lowest} to {highest} for {classes} classes.")
    return flat, counts


def _target_weights(flat: Any, counts: Any, weight: Any, dtype: Any) -> Any:
    """What the loss of each sample is multiplied by; None if by one."""
    if weight is None:
        return None if counts is None else counts.astype(dtype)
    weights = _widened(weight)[flat]
    return (weights if counts is None else _np.where(counts, weights, 0)).astype(dtype, copy=False)


@_np.errstate(invalid="ignore", over="ignore")  # ignored samples may be infinite, differences of logits overflow
def cross_entropy(
    x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any, Any]:
    """The loss, log(sum(exp(x))) of each row, and what a mean is divided by.

    Losses are differences to the largest logit, and the logarithms are kept in double: rounded to the precision of
    the logits, which may be large, they would be as wrong as a loss is large.
    """
    rows = _rows(x)
    classes = rows.shape[1]
    flat, counts = _targets(target, ignore_index, classes)
    work = _np.dtype(_np.float64 if x.dtype.itemsize == 8 else _np.float32)
    lse = _np.empty(len(rows))
    losses = _np.empty(len(rows), work)
    smooth = _np.empty(len(rows), work) if label_smoothing else None
    total = classes if weight is None else _np.add.reduce(_widened(weight))
    for block in _blocks(rows):
        part = _widened(rows[block])
        largest = _np.maximum.reduce(part, 1)
        shifted = part - largest[:, None]
        wanted = shifted[_np.arange(len(part)), flat[block]]
        if smooth is not None:
            smooth[block] = _np.add.reduce(shifted, 1) if weight is None else shifted @ _widened(weight)
        _np.exp(shifted, out=shifted)
        logarithm = _np.log(_np.add.reduce(shifted, 1))
        _np.subtract(logarithm, wanted, out=losses[block])
        _np.add(logarithm, largest, out=lse[block], dtype=_np.float64)
        if smooth is not None:
            smooth[block] = total * logarithm - smooth[block]
    weights = _target_weights(flat, counts, weight, work)
    if weights is not None:
        losses *= weights
    if smooth is not None:
        losses *= 1 - label_smoothing
        losses += (label_smoothing / classes) * smooth
    if counts is not None:
        losses[~counts] = 0  # also where the logits of an ignored sample are infinite
    normalizer = work.type(len(rows)) if weights is None else _np.add.reduce(weights)
    if reduction == "none":
        return losses.reshape(target.shape).astype(x.dtype, copy=False), lse, normalizer
    loss = _np.add.reduce(losses)
    if reduction == "mean":
        loss = loss / normalizer if normalizer != 0 else loss * 0
    return loss.astype(x.dtype), lse, normalizer


def cross_entropy_gradient(
    g: Any, x: Any, target: Any, weight: Any, lse: Any, normalizer: Any, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Any:  # fmt: skip
    rows = _rows(x)
    classes = rows.shape[1]
    flat, counts = _targets(target, ignore_index, classes)
    scale = _widened(g).reshape(-1)  # one number for all rows, or one for each
    if reduction == "mean" and normalizer != 0:
        scale = scale / normalizer
    work = _np.dtype(_np.float64 if x.dtype.itemsize == 8 else _np.float32)
    weights = _target_weights(flat, counts, weight, work)
    own = scale if weights is None else scale * weights
    total = own
    if label_smoothing:
        own = own * work.type(1 - label_smoothing)
        smooth = scale * work.type(label_smoothing / classes)
        total = own + smooth * (classes if weight is None else _np.add.reduce(_widened(weight)))
    out = _np.empty(rows.shape, x.dtype)
    rounded, scale_of_rows = lse.astype(work, copy=False), total
    if work != lse.dtype:
        total = total * _np.exp(rounded - lse).astype(work)
    is_rounded = bool(lse.size) and not (_np.minimum.reduce(lse) > -_LARGE and _np.maximum.reduce(lse) < _LARGE)
    if is_rounded:
        total = scale_of_rows
    for block in _blocks(rows):
        if is_rounded:
            part = _softmax(_widened(rows[block]))
        else:
            part = _np.subtract(_widened(rows[block]), rounded[block, None])
            _np.exp(part, out=part)
        part *= _of_block(total, block)[:, None]
        if label_smoothing:
            constant = _of_block(smooth, block)[:, None]
            part -= constant if weight is None else constant * _widened(weight)
        part[_np.arange(len(part)), flat[block]] -= _of_block(own, block)
        if counts is not None:
            part[~counts[block]] = 0
        out[block] = part
    if x.ndim < 3:
        return out.reshape(x.shape)
    return _np.moveaxis(out.reshape(x.shape[0], *x.shape[2:], classes), -1, 1)


@_np.errstate(invalid="ignore", over="ignore")
def _softmax(part: Any) -> Any:
    part = _np.exp(part - _np.maximum.reduce(part, 1)[:, None])
    part /= _np.add.reduce(part, 1)[:, None]
    return part


def _of_block(values: Any, block: slice) -> Any:
    return values if len(values) == 1 else values[block]


@_np.errstate(invalid="ignore", over="ignore")
def soft_cross_entropy(x: Any, target: Any, weight: Any, reduction: str, label_smoothing: float) -> Any:
    rows, targets = _rows(x), _rows(target)
    losses = _np.empty(len(rows), _np.float64 if x.dtype.itemsize == 8 else _np.float32)
    for block in _blocks(rows):
        part, wanted = _widened(rows[block]), _widened(targets[block])
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / rows.shape[1]
        if weight is not None:
            wanted = wanted * _widened(weight)
        part = part - _np.maximum.reduce(part, 1)[:, None]
        part -= _np.log(_np.add.reduce(_np.exp(part), 1))[:, None]
        losses[block] = -_np.vecdot(part, wanted)
        if not _np.isfinite(losses[block]).all():  # a class that is not wanted at all costs nothing
            losses[block] = -_np.add.reduce(_np.multiply(part, wanted, where=wanted != 0, out=_np.zeros_like(part)), 1)
    losses = losses.reshape((x.shape[0], *x.shape[2:]) if x.ndim > 1 else ())
    return _reduced(losses, reduction, x.dtype)


def binary_cross_entropy_with_logits(x: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    wide, wanted = _widened(x), _widened(target)
    losses = _log1p_exp_of_minus_size(wide)
    if pos_weight is None:  # max(x, 0) - x y + log(1 + exp(-|x|)): what cancels comes first
        losses = losses + (_np.maximum(wide, 0) - wide * wanted)
    else:  # (1 - y) x + (1 + (p - 1) y) (log(1 + exp(-|x|)) + max(-x, 0))
        losses -= _np.minimum(wide, 0)
        losses = losses * (1 + (_widened(pos_weight) - 1) * wanted) + (1 - wanted) * wide
    if weight is not None:
        losses = losses * _widened(weight)
    return _reduced(losses, reduction, x.dtype)


def mse_loss(x: Any, target: Any, reduction: str) -> Any:
    difference = _widened(x) - _widened(target)
    return _reduced(_np.square(difference), reduction, _np.result_type(x.dtype, target.dtype))


def l1_loss(x: Any, target: Any, reduction: str) -> Any:
    difference = _widened(x) - _widened(target)
    return _reduced(_np.abs(difference), reduction, _np.result_type(x.dtype, target.dtype))


def huber_loss(x: Any, target: Any, reduction: str, delta: float) -> Any:
    size = _np.asarray(_np.abs(_widened(x) - _widened(target)))
    within = _np.minimum(size, delta)
    size -= 0.5 * within
    size *= within
    return _reduced(size, reduction, _np.result_type(x.dtype, target.dtype))
