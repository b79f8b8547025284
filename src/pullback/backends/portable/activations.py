"""Portable kernels: activation functions, and softmax with its relatives."""

from __future__ import annotations

import math
from typing import Any

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def relu(xp: Any, x: Any) -> Any:
    return xp.maximum(x, xp.zeros_like(x))


def leaky_relu(xp: Any, x: Any, negative_slope: float) -> Any:
    return xp.where(x > 0, x, x * negative_slope)


def elu(xp: Any, x: Any, alpha: float) -> Any:
    return xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, xp.zeros_like(x))))


def gelu(xp: Any, x: Any, approximate: str) -> Any:
    if approximate == "none":
        return x * xp.ndtr(x)
    # (1 + tanh(u)) / 2 is sigmoid(2 u), which takes fewer steps, and keeps its digits where it is small.
    return x * xp.sigmoid(2 * _TANH_SCALE * x * (1 + _TANH_CUBIC * x * x))


def sigmoid(xp: Any, x: Any) -> Any:
    small = xp.exp(-xp.abs(x))
    return xp.where(x < 0, small, xp.ones_like(small)) / (1 + small)


def silu(xp: Any, x: Any) -> Any:
    return x * xp.sigmoid(x)


def softplus(xp: Any, x: Any, beta: float) -> Any:
    scaled = x * beta
    return (xp.maximum(scaled, xp.zeros_like(scaled)) + xp.log1p(xp.exp(-xp.abs(scaled)))) / beta


def log_sigmoid(xp: Any, x: Any) -> Any:
    return xp.minimum(x, xp.zeros_like(x)) - xp.log1p(xp.exp(-xp.abs(x)))


def softmax(xp: Any, x: Any, axis: Any) -> Any:
    wide = xp.widened(x)
    terms = xp.exp(wide - xp.max(wide, axis, True)) if _size(x) else wide
    return xp.narrowed(terms / xp.sum(terms, axis, True), x.dtype)


def log_softmax(xp: Any, x: Any, axis: Any) -> Any:
    wide = xp.widened(x)
    shifted = wide - xp.max(wide, axis, True) if _size(x) else wide
    return xp.narrowed(shifted - xp.log(xp.sum(xp.exp(shifted), axis, True)), x.dtype)


def logsumexp(xp: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axis = tuple(range(-len(x.shape), 0)) if axis is None else axis
    wide = xp.widened(x)
    if _size(x):
        shift = xp.max(wide, axis, True)
        shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        wide = wide - shift
        total = xp.log(xp.sum(xp.exp(wide), axis, True)) + shift
    else:
        total = xp.log(xp.sum(wide, axis, True))
    if not keepdims:
        total = xp.reshape(total, tuple(n for i, n in enumerate(x.shape) if i - len(x.shape) not in axis))
    return xp.narrowed(total, x.dtype)


def _size(x: Any) -> int:
    return math.prod(x.shape)
