"""Statistics in one pass over an array, where a second one costs more than arithmetic."""

from __future__ import annotations

from math import prod
from typing import Any


def normalized_by_batch(xp: Any, x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
    """`batch_norm`: the result, the mean and the variance over `axis`, all elements of which are there.

    Sums of x - c and of its square give both statistics at once. Far from zero they would cancel, unless c is near the
    mean: it is an element, from the middle of the array, where no padding has come in. Whichever it is, with n elements
    (mean - c)**2 is at most n times the variance, which bounds what can be lost. Numbers whose squares overflow have an
    infinite variance, as for the kernels of a library.
    """
    ndim, count = len(x.shape), prod([x.shape[a] for a in axis])
    wide = xp.widened(x)
    middle = [slice(None)] * ndim
    for a in axis:
        middle[a] = slice(x.shape[a] // 2, x.shape[a] // 2 + 1)
    one = xp.widened(x[tuple(middle)])
    moved = wide - one
    offset = xp.sum(moved, axis, True) * (1 / count)
    variance = xp.maximum(xp.sum(xp.square(moved), axis, True) * (1 / count) - xp.square(offset), 0.0)
    mean = one + offset
    out = (wide - mean) * (1 / xp.sqrt(variance + eps))
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return xp.narrowed(out, x.dtype), mean, variance
