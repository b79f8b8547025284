"""Portable kernels: convolutions as a sum over the kernel's taps of one matrix product each."""

from __future__ import annotations

import itertools as _itertools
import math as _math
from typing import Any

_ALL = slice(None)


def convolution(xp: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    kernel = tuple(weight.shape[2:])
    padded = _padded(xp, x, padding)
    out = [(n - step * (k - 1) - 1) // jump + 1 for n, k, jump, step in zip(padded.shape[2:], kernel, stride, dilation)]
    features = weight.shape[0]
    total: Any = None
    for number, place in _places(kernel, stride, dilation, out):
        seen = xp.reshape(xp.getitem(padded, place), (x.shape[0], groups, x.shape[1] // groups, _math.prod(out)))
        term = xp.matmul(_tap(xp, weight, number, groups), seen)
        total = term if total is None else total + term
    return xp.reshape(total, (x.shape[0], features, *out))


def biased_convolution(
    xp: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    out = xp.convolution(x, weight, stride, padding, dilation, groups)
    return out + xp.reshape(bias, (bias.shape[0], *(1,) * (len(x.shape) - 2)))


def convolution_input_gradient(
    xp: Any, g: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    kernel, out = tuple(weight.shape[2:]), tuple(g.shape[2:])
    channels = weight.shape[1] * groups
    shape = (g.shape[0], channels, *(n + low + high for n, (low, high) in zip(size, padding)))
    flat = xp.reshape(g, (g.shape[0], groups, g.shape[1] // groups, _math.prod(out)))
    total = None
    for number, place in _places(kernel, stride, dilation, out):
        term = xp.matmul(xp.matrix_transpose(_tap(xp, weight, number, groups)), flat)
        total = xp.zeros(shape, term.dtype, term) if total is None else total
        total = xp.index_add(total, xp.reshape(term, (g.shape[0], channels, *out)), place)
    return _padded(xp, total, tuple((-low, -high) for low, high in padding))


def convolution_weight_gradient(
    xp: Any, g: Any, x: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    out, samples = tuple(g.shape[2:]), g.shape[0]
    features, channels = g.shape[1] // groups, x.shape[1] // groups
    padded = _padded(xp, x, padding)
    flat = xp.reshape(g, (samples, groups, features, _math.prod(out)))
    taps = []
    for _, place in _places(size, stride, dilation, out):
        seen = xp.reshape(xp.getitem(padded, place), (samples, groups, channels, _math.prod(out)))
        taps.append(xp.sum(xp.matmul(flat, xp.matrix_transpose(seen)), (-4,), False))
    return xp.reshape(xp.stack(taps, -1), (groups * features, channels, *size))


def _places(kernel: Any, stride: Any, dilation: Any, out: Any) -> Any:
    """The number of each tap, and what it sees of the padded input."""
    for tap in _itertools.product(*map(range, kernel)):
        number = 0
        for t, k in zip(tap, kernel):
            number = number * k + t
        places = (
            slice(t * step, t * step + (n - 1) * jump + 1, jump) for t, step, n, jump in zip(tap, dilation, out, stride)
        )
        yield number, (_ALL, _ALL, *places)


def _tap(xp: Any, weight: Any, number: int, groups: int) -> Any:
    """The matrices (groups, features, channels) of one tap."""
    features, channels = weight.shape[0] // groups, weight.shape[1]
    flat = xp.reshape(weight, (groups, features, channels, _math.prod(weight.shape[2:])))
    return xp.getitem(flat, (_ALL, _ALL, _ALL, number))


def _padded(xp: Any, x: Any, padding: Any) -> Any:
    """`x` with zeros around its spatial axes; negative padding cuts off."""
    if any(low < 0 or high < 0 for low, high in padding):
        kept = (slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape[2:], padding))
        x = xp.getitem(x, (_ALL, _ALL, *kept))
    if any(low > 0 or high > 0 for low, high in padding):
        around = [(max(low, 0), max(high, 0)) for low, high in padding]
        shape = (*x.shape[:2], *(n + low + high for n, (low, high) in zip(x.shape[2:], around)))
        place = (_ALL, _ALL, *(slice(low, low + n) for n, (low, _) in zip(x.shape[2:], around)))
        x = xp.index_add(xp.zeros(shape, x.dtype, x), x, place)
    return x
