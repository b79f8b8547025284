"""Forms of losses. Over classes: the losses of all samples of all examples at once, and then what each example makes of
its own."""

from __future__ import annotations

import math
from typing import Any

from .call import Call
from .forms import KEEPING_RESIDUALS, form


def _samples(call: Call, i: int, target: int) -> Any:
    """Logits (examples, samples, classes, ...), or (examples, classes), with one axis for all samples."""
    x = call.spread(i)
    return x if call.rank(target) == 0 else call.xp.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _one_by_one(call: Call) -> Any:
    """Whether the kernel for one sample after the other says all: no classes count more than others."""
    return call.xs[2] is None if call.operation.name == "cross_entropy" else call.xs[3] is None


@form
def cross_entropy(call: Call) -> Any:
    if not _one_by_one(call):
        return None
    ignore_index, reduction, smoothing = call.static
    x, target = _samples(call, 0, 1), _samples(call, 1, 1)
    result = call.run([x, target, None], (ignore_index, "none", smoothing))
    losses = result[0] if call.keeps_residuals else result
    xp, size = call.xp, call.size
    if reduction == "none":
        out = xp.reshape(losses, (size, *call.shape(1)))
        counted = None
    else:
        out = xp.sum(xp.reshape(losses, (size, math.prod(call.shape(1)))), (-1,), False)
        counted = xp.reshape(xp.not_equal(target, ignore_index), (size, math.prod(call.shape(1))))
        counted = xp.astype(xp.sum(counted, (-1,), False), _wide(call))
        if reduction == "mean":
            out = xp.narrowed(xp.widened(out) / xp.maximum(counted, xp.ones_like(counted)), call.dtype(0))
    if not call.keeps_residuals:
        return out
    if counted is None:
        counted = xp.zeros((size,), _wide(call), x)
    return out, xp.reshape(result[1], (size, -1)), counted


KEEPING_RESIDUALS.add(cross_entropy)


def _wide(call: Call) -> Any:
    """The dtype that sums are made in."""
    x = call.array
    return getattr(call.xp.widened(x), "_raw", call.xp.widened(x)).dtype


@form
def cross_entropy_gradient(call: Call) -> Any:
    if not call.is_raw or not _one_by_one(call):
        return None
    ignore_index, reduction, smoothing = call.static
    xp, size, shape = call.xp, call.size, call.shape(2)
    g = call.spread(0)
    if reduction != "none":
        g = xp.widened(g)
        if reduction == "mean":
            counted = call.spread(5)
            g = g / xp.maximum(counted, xp.ones_like(counted))
        g = xp.broadcast_to(xp.reshape(g, (size,) + (1,) * len(shape)), (size, *shape))
    x, target = _samples(call, 1, 2), _samples(call, 2, 2)
    g = xp.reshape(g, target.shape)
    lse = xp.reshape(call.spread(4), (-1,))
    counted = xp.zeros((), lse.dtype, lse)
    gradient = call.run([g, x, target, None, lse, counted], (ignore_index, "none", smoothing))
    return xp.reshape(gradient, (size, *call.shape(1)))


@form
def binary_cross_entropy(call: Call) -> Any:
    """By its own kernel, so that its slopes at 0 and 1 are bounded for examples, too."""
    xp, reduction, shape = call.xp, call.static[0], call.shape(0)
    weight = None if call.xs[2] is None else call.aligned(2, len(shape))
    losses = call.run([call.spread(0), call.spread(1), weight], ("none",))
    if reduction == "none":
        return losses
    rows = xp.reshape(losses, (call.size, math.prod(shape)))
    return (xp.mean if reduction == "mean" else xp.sum)(rows, (-1,), False)
