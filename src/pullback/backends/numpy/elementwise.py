"""Elementwise kernels: NumPy's functions, and what the array API standard wants different."""

from __future__ import annotations

from typing import Any

import numpy as _np
from numpy import (  # noqa: F401
    absolute as abs,
    add,
    arccos as acos,
    arccosh as acosh,
    arcsin as asin,
    arcsinh as asinh,
    arctan as atan,
    arctan2 as atan2,
    arctanh as atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    greater,
    greater_equal,
    hypot,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    reciprocal,
    remainder,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tril,
    triu,
    where,
)  # fmt: skip


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def pow(x: Any, y: Any) -> Any:
    if (type(y) is int or type(y) is float) and x.dtype.kind == "f":
        if y == 2:
            return _np.square(x)
        if y == 3:
            return x * x * x
        if y == 1:
            return _np.positive(x)
    return _np.power(x, y)


def expm1(x: Any) -> Any:
    if x.dtype.kind != "c":
        return _np.expm1(x)
    with _np.errstate(all="ignore"):
        out = _np.asarray(_np.expm1(x))
        if not _np.isfinite(x).all():  # NumPy gives NaN for parts that have a limit
            out = _np.where(_np.isfinite(x), out, _np.exp(x) - 1)
    out.imag[...] = _np.where(x.imag == 0, x.imag, out.imag)  # NumPy's is NaN where the real part overflows
    out.real += 0.0  # no negative zero
    return out


def tanh(x: Any) -> Any:
    if x.dtype.kind != "c":
        return _np.tanh(x)
    with _np.errstate(all="ignore"):
        out = _np.asarray(_np.tanh(x))
    limit = _np.isinf(x.real) & _np.isfinite(x.imag)
    if limit.any():  # a zero with the sign of the imaginary part there; NumPy's sign goes round with it
        out.imag = _np.where(limit, _np.copysign(0.0, x.imag), out.imag)
    return out


def sign(x: Any) -> Any:
    out = _np.sign(x)
    if x.dtype.kind == "c" and _np.isnan(x).any():  # NumPy sees the infinity alone where the other part is NaN
        out = _np.where(_np.isnan(x), complex(_np.nan, _np.nan), out).astype(x.dtype)
    return out


def floor_divide(x: Any, y: Any) -> Any:
    with _np.errstate(invalid="ignore"):
        out = _np.floor_divide(x, y)
        if out.dtype.kind == "f":
            infinite = _np.isinf(x) | _np.isinf(y)
            if infinite.any():  # the quotient has a limit there; NumPy gives its neighbour or NaN
                out = _np.where(infinite, _np.floor(_np.divide(x, y)), out)
    return out


def _keeping_integers(function: Any) -> Any:
    def kernel(x: Any) -> Any:
        return function(x) if x.dtype.kind not in "iub" else _np.array(x)

    kernel.__name__ = function.__name__
    return kernel


floor, ceil, trunc, round = map(_keeping_integers, (_np.floor, _np.ceil, _np.trunc, _np.rint))


def clip(x: Any, lower: Any, upper: Any) -> Any:
    if lower is not None:
        x = _np.maximum(x, _in_range(lower, x))
    return x if upper is None else _np.minimum(x, _in_range(upper, x))


def _in_range(bound: Any, x: Any) -> Any:
    """A Python integer as the nearest that an integer array can hold."""
    if type(bound) is int and x.dtype.kind in "iu":
        limits = _np.iinfo(x.dtype)
        return sorted((int(limits.min), bound, int(limits.max)))[1]
    return bound


def astype(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "c" and dtype.kind[0] != "c":  # keeps the real part, without a warning
        x = x.real
    return x.astype(dtype, copy=False)


def conj(x: Any) -> Any:
    return _np.conjugate(x) if x.dtype.kind == "c" else x


def real(x: Any) -> Any:
    return x.real


def imag(x: Any) -> Any:
    return x.imag
