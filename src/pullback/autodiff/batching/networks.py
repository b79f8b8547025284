"""Forms of what networks are made of: more samples where weights are shared, more groups where they are not."""

from __future__ import annotations

from typing import Any

from .call import Call
from .forms import KEEPING_RESIDUALS, form


def _folded(xp: Any, x: Any) -> Any:
    """Examples and samples as one axis."""
    return xp.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _unfolded(xp: Any, x: Any, size: int) -> Any:
    return xp.reshape(x, (size, x.shape[0] // size, *x.shape[1:]))


def _in_channels(xp: Any, x: Any) -> Any:
    """Arrays (examples, samples, channels, ...) with the examples' channels beside each other."""
    examples, samples, channels, *rest = x.shape
    ndim = len(x.shape)
    moved = xp.permute_dims(x, (1 - ndim, -ndim, *range(2 - ndim, 0)))
    return xp.reshape(moved, (samples, examples * channels, *rest))


def _of_channels(xp: Any, x: Any, size: int) -> Any:
    samples, channels, *rest = x.shape
    split = xp.reshape(x, (samples, size, channels // size, *rest))
    ndim = len(split.shape)
    return xp.permute_dims(split, (1 - ndim, -ndim, *range(2 - ndim, 0)))


def _with_groups(call: Call) -> tuple[Any, ...]:
    return (*call.static[:-1], call.static[-1] * call.size)


@form
def samples(call: Call) -> Any:
    """Each of the samples along the first axis of all inputs goes its own way."""
    result = call.run([_folded(call.xp, call.spread(i)) for i in range(len(call.xs))], call.static)
    if type(result) is tuple:
        return tuple([_unfolded(call.xp, out, call.size) for out in result])
    return _unfolded(call.xp, result, call.size)


@form
def convolution(call: Call) -> Any:
    """Of images and a weight; its first static argument may be a size, its last one is how many groups there are."""
    if not call.stacked[1]:
        return _unfolded(call.xp, call.run([_folded(call.xp, call.xs[0]), call.xs[1]], call.static), call.size)
    x, weight = _in_channels(call.xp, call.spread(0)), _folded(call.xp, call.xs[1])
    return _of_channels(call.xp, call.run([x, weight], _with_groups(call)), call.size)


@form
def biased_convolution(call: Call) -> Any:
    if call.stacked[1] or call.stacked[2]:
        return None
    return _unfolded(call.xp, call.run([_folded(call.xp, call.xs[0]), *call.xs[1:]], call.static), call.size)


@form
def convolution_weight_gradient(call: Call) -> Any:
    out = call.run([_in_channels(call.xp, call.spread(0)), _in_channels(call.xp, call.spread(1))], _with_groups(call))
    return _unfolded(call.xp, out, call.size)


@form
def batch_norm(call: Call) -> Any:
    if any(call.stacked[1:]):
        return None
    return call.run(call.xs, call.static)


@form
def embedding(call: Call) -> Any:
    if call.stacked[1]:
        return None
    return call.run(call.xs, call.static)


@form
def dropout(call: Call) -> Any:
    if call.draws(call.static):
        return call.run([call.spread(0)], call.static)
    ones = call.xp.full(call.shape(0), 1, call.dtype(0), call.xs[0])  # the same elements for every example
    return call.xp.multiply(call.xs[0], call.run([ones], call.static))


@form
def ssm_scan(call: Call) -> Any:
    """Inputs (..., time, ...), factors that broadcast against them, and a first state without the axis of time."""
    rank = call.rank(0)
    h0 = None if call.xs[2] is None else call.aligned(2, rank - 1)
    return call.run([call.spread(0), call.aligned(1, rank), h0], call.static)


@form
def attention(call: Call) -> Any:
    """Queries, keys and values (..., heads, length, width), and a mask that broadcasts against (..., heads, q, k)."""
    rank = max([call.rank(i) for i in range(3)])
    if any(call.rank(i) != rank for i in range(3)) or (call.static[2] and not call.draws(call.static)):
        return None
    mask = call.xs[3]
    if mask is not None:
        mask = call.aligned(3, rank)
    return call.run([*[call.spread(i) for i in range(3)], mask], call.static)


KEEPING_RESIDUALS.update((samples, attention))


@form
def attention_gradient(call: Call) -> Any:
    rank = call.rank(1)
    if not call.is_raw or any(call.rank(i) != rank for i in range(4)) or call.static[3] or call.xs[6] is None:
        return None
    mask = call.xs[4]
    if mask is not None:
        if call.static[0][3]:
            return None  # its gradient is summed over what it was broadcast over
        mask = call.aligned(4, rank)
    g, q, k, v = [call.spread(i) for i in range(4)]
    return call.run([g, q, k, v, mask, call.spread(5), call.spread(6)], call.static)
