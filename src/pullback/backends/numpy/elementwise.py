"""Elementwise kernels."""

from __future__ import annotations

from typing import Any

import numpy as _np
from numpy import (  # noqa: F401
    absolute as abs, add, arccos as acos, arccosh as acosh, arcsin as asin, arcsinh as asinh, arctan as atan,
    arctan2 as atan2, arctanh as atanh, bitwise_and, bitwise_left_shift, bitwise_invert, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide,
    greater, greater_equal, hypot, isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter, not_equal,
    positive, reciprocal, remainder, rint as round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh,
    trunc, where,
)  # fmt: skip


def pow(x: Any, y: Any) -> Any:
    if type(y) is int or type(y) is float:
        if y == 2:
            return _np.square(x)
        if y == 1:
            return _np.positive(x)
    return _np.power(x, y)


def astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype, copy=False)


def conj(x: Any) -> Any:
    return _np.conjugate(x)


def real(x: Any) -> Any:
    return _np.real(x)


def imag(x: Any) -> Any:
    return _np.imag(x)
