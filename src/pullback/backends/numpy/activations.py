"""NumPy kernels: activation functions, and softmax with its relatives.

float16 and bfloat16 are computed in float32 and rounded once; integers are computed in float64.
"""

from __future__ import annotations

from math import pi as _pi, prod as _prod, sqrt as _sqrt
from typing import Any

import numpy as _np

from .precision import narrowed, widened  # noqa: F401 (kernels that rules use)
from .special import _blockwise, _formulas

_TANH_SCALE = _sqrt(2 / _pi)
_TANH_CUBIC = 0.044715
_BLOCK = 1 << 16  # bytes that `blockwise` looks at once: memory so small is given back and taken again for nothing


def _converted(kernel: Any, x: Any, *static: Any) -> Any:
    """What `kernel` gives for an `x` that is neither float32 nor float64."""
    if x.dtype.kind == "c":
        raise TypeError(f"expected real numbers, got {x.dtype.name}.")
    if x.dtype.kind in "iub":
        return kernel(x.astype(_np.float64), *static)
    return _np.asarray(kernel(x.astype(_np.float32), *static)).astype(x.dtype)


def blockwise(function: Any, kept: int, *arrays: Any) -> Any:
    """`function(*arrays)`, computed piece by piece so that what it makes on the way stays in the cache.

    The arrays agree in all but the last `kept` axes, and are not cut along those. Where the function gives a tuple its
    first result is put together from the pieces, the others are added up.
    """
    shape = arrays[0].shape
    size = arrays[0].nbytes
    if size <= 4 * _BLOCK or len(shape) == kept:
        return function(*arrays)
    cut = len(shape) - kept
    count = _prod(shape[:cut])
    rows = [x.reshape(count, *x.shape[cut:]) for x in arrays]
    step = max(1, _BLOCK * count // size)
    out: Any = None
    sums: Any = ()
    for start in range(0, count, step):
        result = function(*[x[start : start + step] for x in rows])
        first, more = (result[0], result[1:]) if type(result) is tuple else (result, None)
        if out is None:
            out = _np.empty((count, *first.shape[1:]), first.dtype)
            sums = more
        elif more is not None:
            sums = tuple([None if s is None else s + m for s, m in zip(sums, more)])
        out[start : start + step] = first
    out = out.reshape(*shape[:cut], *out.shape[1:])
    return out if sums is None else (out, *sums)


def relu(x: Any) -> Any:
    if x.dtype.kind not in "fiu":
        return _converted(relu, x)
    return _np.maximum(x, 0)


def leaky_relu(x: Any, negative_slope: float) -> Any:
    if x.dtype.char not in "fd":
        return _converted(leaky_relu, x, negative_slope)
    out = _np.multiply(x, negative_slope, out=_np.empty(x.shape, x.dtype))
    if 0 <= negative_slope <= 1:
        return _np.maximum(x, out, out=out)
    if negative_slope > 1:
        return _np.minimum(x, out, out=out)
    _np.minimum(x, 0, out=out)
    out *= negative_slope
    out += _np.maximum(x, 0)  # one of the two is zero
    return out


def elu(x: Any, alpha: float) -> Any:
    if x.dtype.char not in "fd":
        return _converted(elu, x, alpha)
    out = _np.minimum(x, 0, out=_np.empty(x.shape, x.dtype))
    _np.expm1(out, out=out)
    out *= alpha
    out += _np.maximum(x, 0)  # one of the two is zero
    return out


def gelu(x: Any, approximate: str) -> Any:
    if x.dtype.char not in "fd":
        return _converted(gelu, x, approximate)
    if approximate == "none":
        out = _blockwise(_formulas.ndtr, True, x)
        out *= x
        return out
    out = _np.multiply(x, x, out=_np.empty(x.shape, x.dtype))
    out *= _TANH_SCALE * _TANH_CUBIC
    out += _TANH_SCALE
    out *= x
    _np.tanh(out, out=out)
    out += 1
    out *= 0.5
    out *= x
    return out


def sigmoid(x: Any) -> Any:
    if x.dtype.char not in "fd":
        return _converted(sigmoid, x)
    out = _np.negative(x, out=_np.empty(x.shape, x.dtype))
    with _np.errstate(over="ignore"):  # where it overflows the result is zero, as it should be
        _np.exp(out, out=out)
    out += 1
    return _np.reciprocal(out, out=out)


def silu(x: Any) -> Any:
    if x.dtype.char not in "fd":
        return _converted(silu, x)
    out = sigmoid(x)
    out *= x
    return out


def _log1p_exp_of_minus_size(x: Any) -> Any:
    """log(1 + exp(-|x|)), which never overflows."""
    out = _np.abs(x, out=_np.empty(x.shape, x.dtype))
    _np.negative(out, out=out)
    _np.exp(out, out=out)
    return _np.log1p(out, out=out)


def softplus(x: Any, beta: float) -> Any:
    if x.dtype.char not in "fd":
        return _converted(softplus, x, beta)
    if beta != 1:
        x = x * beta
    out = _log1p_exp_of_minus_size(x)
    out += _np.maximum(x, 0)
    if beta != 1:
        out /= beta
    return out


def log_sigmoid(x: Any) -> Any:
    if x.dtype.char not in "fd":
        return _converted(log_sigmoid, x)
    out = _log1p_exp_of_minus_size(x)
    return _np.subtract(_np.minimum(x, 0), out, out=out)


# -- over axes: `axis` is a tuple of negative integers ---------------------------------------------


def _minus_maximum(x: Any, axis: Any) -> Any:
    return _np.subtract(x, _np.maximum.reduce(x, axis, keepdims=True, initial=-_np.inf))


def softmax(x: Any, axis: Any) -> Any:
    if x.dtype.char not in "fd":
        return _converted(softmax, x, axis)
    out = _minus_maximum(x, axis)
    _np.exp(out, out=out)
    out /= _np.add.reduce(out, axis, keepdims=True)
    return out


def log_softmax(x: Any, axis: Any) -> Any:
    if x.dtype.char not in "fd":
        return _converted(log_softmax, x, axis)
    out = _minus_maximum(x, axis)
    if out.size:  # the logarithm of an empty sum is infinite
        out -= _np.log(_np.add.reduce(_np.exp(out), axis, keepdims=True))
    return out


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axis = tuple(range(-x.ndim, 0)) if axis is None else axis
    if x.dtype.char not in "fd":
        return _converted(logsumexp, x, axis, keepdims)
    largest = _np.maximum.reduce(x, axis, keepdims=True, initial=-_np.inf)
    shift = _np.where(_np.isfinite(largest), largest, x.dtype.type(0))
    terms = _np.subtract(x, shift, out=_np.empty(x.shape, x.dtype))
    with _np.errstate(divide="ignore", over="ignore"):  # the logarithm of an empty sum is -inf
        _np.exp(terms, out=terms)
        out = _np.log(_np.add.reduce(terms, axis, keepdims=True))
    out = out + shift
    return out if keepdims else _np.reshape(out, [n for i, n in enumerate(x.shape) if i - x.ndim not in axis])
