"""Portable kernels: losses.

Classes are on axis 1 of the logits (samples, classes, ...), or on their only axis.
"""

from __future__ import annotations

import math
from typing import Any

from .core import raw_dtype


def _class_axis(x: Any) -> int:
    """The axis of the classes, as a negative integer."""
    return 1 - len(x.shape) if len(x.shape) > 1 else -1


def _reduced(xp: Any, losses: Any, reduction: str, dtype: Any) -> Any:
    if reduction != "none":
        losses = (xp.mean if reduction == "mean" else xp.sum)(losses, None, False)
    return xp.narrowed(losses, dtype)


def _along_classes(xp: Any, weight: Any, x: Any) -> Any:
    """One number per class, in a shape that broadcasts against the logits."""
    return xp.reshape(xp.widened(weight), (weight.shape[0],) + (1,) * (-1 - _class_axis(x)))


def cross_entropy(
    xp: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Any, Any, Any]:
    axis, wide = _class_axis(x), xp.widened(x)
    classes = x.shape[axis]
    counts = xp.not_equal(target, ignore_index)
    classes_wanted = xp.where(counts, target, xp.zeros_like(target))
    kept = xp.reshape(counts, _with_one(target.shape, axis))
    wide = xp.where(kept, wide, xp.zeros_like(wide))  # what is ignored may be infinite
    lse = xp.logsumexp(wide, (axis,), True)
    costs = -xp.log_softmax(wide, (axis,))  # not lse - wide, which is wrong by as much as `lse` is rounded
    chosen = xp.reshape(classes_wanted, _with_one(target.shape, axis))
    nll = xp.reshape(xp.take_along_axis(costs, chosen, axis), target.shape)
    ones = xp.ones_like(nll)
    if weight is not None:
        ones = xp.reshape(xp.take(xp.widened(weight), xp.reshape(classes_wanted, (-1,)), -1), target.shape)
    weights = xp.where(counts, ones, xp.zeros_like(ones))
    losses = (1 - label_smoothing) * weights * nll
    if label_smoothing:
        terms = costs if weight is None else costs * _along_classes(xp, weight, x)
        smooth = xp.sum(terms, (axis,), False)
        losses = losses + (label_smoothing / classes) * xp.where(counts, smooth, xp.zeros_like(smooth))
    normalizer = xp.sum(weights, None, False)
    if reduction != "none":
        losses = xp.sum(losses, None, False)
    if reduction == "mean":
        losses = losses / xp.where(xp.equal(normalizer, 0), xp.ones_like(normalizer), normalizer)
    return xp.narrowed(losses, raw_dtype(x)), xp.reshape(lse, (-1,)), normalizer


def _with_one(shape: Any, axis: int) -> tuple[int, ...]:
    """`shape` with an axis of length 1 put in, so that it is the (negative) axis `axis` of the result."""
    position = len(shape) + 1 + axis
    return (*shape[:position], 1, *shape[position:])


def cross_entropy_gradient(
    xp: Any, g: Any, x: Any, target: Any, weight: Any, lse: Any, normalizer: Any, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Any:  # fmt: skip
    axis = _class_axis(x)
    classes = x.shape[axis]
    row = _with_one(target.shape, axis)
    counts = xp.reshape(xp.not_equal(target, ignore_index), row)
    number = xp.reshape(xp.arange(0, classes, 1, target.dtype, target), (classes,) + (1,) * (-1 - axis))
    share = xp.softmax(xp.widened(x), (axis,))
    zero = xp.zeros_like(share)
    one_hot = xp.where(xp.equal(number, xp.reshape(target, row)), xp.ones_like(share), zero)
    scale = xp.widened(g) if reduction != "none" else xp.reshape(xp.widened(g), row)
    if reduction == "mean":
        scale = scale / xp.where(xp.equal(normalizer, 0), xp.ones_like(normalizer), normalizer)
    weights = xp.ones_like(share) if weight is None else _along_classes(xp, weight, x) + zero
    own = xp.sum(weights * one_hot, (axis,), True) * (1 - label_smoothing)
    smooth = label_smoothing / classes
    grad = own * (share - one_hot) + smooth * (share * xp.sum(weights, (axis,), True) - weights)
    return xp.narrowed(xp.where(counts, scale * grad, zero), raw_dtype(x))


def soft_cross_entropy(xp: Any, x: Any, target: Any, weight: Any, reduction: str, label_smoothing: float) -> Any:
    axis = _class_axis(x)
    wanted = xp.widened(target)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / x.shape[axis]
    if weight is not None:
        wanted = wanted * _along_classes(xp, weight, x)
    logs = xp.log_softmax(xp.widened(x), (axis,))
    logs = xp.where(xp.equal(wanted, 0), xp.zeros_like(logs), logs)  # a class that is not wanted at all costs nothing
    losses = -xp.sum(logs * wanted, (axis,), False)
    return _reduced(xp, losses, reduction, raw_dtype(x))


def binary_cross_entropy_with_logits(xp: Any, x: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    wide, wanted = xp.widened(x), xp.widened(target)
    if pos_weight is None:  # what cancels comes first
        losses = (xp.relu(wide) - wide * wanted) + xp.softplus(-xp.abs(wide), 1.0)
    else:
        losses = (1 - wanted) * wide + (1 + (xp.widened(pos_weight) - 1) * wanted) * xp.softplus(-wide, 1.0)
    if weight is not None:
        losses = losses * xp.widened(weight)
    return _reduced(xp, losses, reduction, raw_dtype(x))


def binary_cross_entropy(xp: Any, x: Any, target: Any, weight: Any, reduction: str) -> Any:
    wanted = xp.widened(target)
    of_one, of_zero = bounded_logs(xp, xp.widened(x))
    losses = (wanted - 1) * of_zero - wanted * of_one
    if weight is not None:
        losses = losses * xp.widened(weight)
    return _reduced(xp, losses, reduction, raw_dtype(x))


def bounded_logs(xp: Any, p: Any) -> tuple[Any, Any]:
    """log(p) and log(1 - p), neither of them below -100."""
    never, always = xp.equal(p, 0), xp.equal(p, 1)
    lowest = xp.zeros_like(p) - 100
    log_p = xp.maximum(xp.log(xp.where(never, xp.ones_like(p), p)), lowest)
    log_rest = xp.maximum(xp.log1p(xp.where(always, xp.zeros_like(p), -p)), lowest)
    return xp.where(never, lowest, log_p), xp.where(always, lowest, log_rest)


def mse_loss(xp: Any, x: Any, target: Any, reduction: str) -> Any:
    difference = xp.widened(x) - xp.widened(target)
    return _reduced(xp, difference * difference, reduction, raw_dtype(x - target))


def l1_loss(xp: Any, x: Any, target: Any, reduction: str) -> Any:
    return _reduced(xp, xp.abs(xp.widened(x) - xp.widened(target)), reduction, raw_dtype(x - target))


def huber_loss(xp: Any, x: Any, target: Any, reduction: str, delta: float) -> Any:
    size = xp.abs(xp.widened(x) - xp.widened(target))
    losses = xp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    return _reduced(xp, losses, reduction, raw_dtype(x - target))


def per_element(xp: Any, g: Any, shape: Any, reduction: str) -> Any:
    """The cotangent of each element of a loss, given that of the reduced loss."""
    return xp.widened(g) / max(math.prod(shape), 1) if reduction == "mean" else xp.widened(g)
