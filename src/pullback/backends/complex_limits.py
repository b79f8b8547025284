"""Complex functions at zeros, infinities and NaN, as C's standard and NumPy have them, where a library has not.

A negative zero decides on which side of a branch cut a number is. Each function takes a namespace, the parts `a` and
`b` of the argument and the parts of the library's own result, and returns the parts of the right one.
"""

from __future__ import annotations

import math
from typing import Any, Callable

_HALF_PI = math.pi / 2


def exp(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    re, im = s.where(b == 0, s.exp(a), re), s.where(b == 0, b, im)
    lost = s.isinf(a) & ~s.isfinite(b)
    return s.where(lost, s.exp(a), re), s.where(lost, s.where(a > 0, math.nan, s.zeros_like(b)), im)


def expm1(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    re, im = exp(s, a, b, re, im)
    return s.where((b == 0) | s.isinf(a) & ~s.isfinite(b), s.expm1(a), re) + 0.0, im


def log(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    return s.where(s.isinf(a) | s.isinf(b), math.inf, re), im


def log1p(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    re, im = log(s, a, b, re, im)
    return re, s.copysign(s.where(s.isinf(b) & s.isfinite(a), s.full_like(a, _HALF_PI), im), b)


def sqrt(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    lost = s.isinf(a) & s.isnan(b)
    re, im = s.where(lost, s.where(a > 0, math.inf, b), re), s.where(lost, s.where(a > 0, b, math.inf), im)
    return s.where(s.isinf(b), math.inf, re), s.copysign(s.where(s.isinf(b), b, im), b)


def cosh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    zero = (a == 0) & ~s.isfinite(b) | s.isnan(a) & (b == 0)
    lost = s.isinf(a) & ~s.isfinite(b)
    re = s.where(lost, math.inf, s.where(zero, math.nan, re))
    return re, s.where(lost, math.nan, s.where(zero, s.zeros_like(b), im))


def sinh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    lost = ((a == 0) | s.isinf(a)) & ~s.isfinite(b)
    re, im = s.where(lost, a, re), s.where(lost, math.nan, im)
    return re, s.where(b == 0, b, im)


def tanh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    lost = (a == 0) & ~s.isfinite(b)
    re, im = s.where(lost, a, re), s.where(lost, math.nan, im)
    limit = s.isinf(a)
    re = s.where(limit, s.tanh(a), re)
    return re, s.where(limit, s.copysign(s.zeros_like(b), b), s.where(b == 0, b, im))


def acos(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    nothing = s.isnan(b) & ~s.isinf(a) | s.isnan(a) & ~s.isinf(b)
    re = s.where(nothing, s.where(a == 0, s.full_like(a, _HALF_PI), math.nan), re)
    return re, s.copysign(s.where(nothing, math.nan, im), -b)


def acosh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    nothing = s.isnan(b) & ~s.isinf(a) | s.isnan(a) & ~s.isinf(b)
    im = s.where(nothing, s.where(a == 0, s.full_like(a, _HALF_PI), math.nan), im)
    return s.where(nothing, math.nan, re), s.copysign(im, b)


def asin(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    return s.copysign(re, a), s.copysign(im, b)


def asinh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    return s.copysign(re, a), s.copysign(s.where(s.isnan(a) & (b == 0), b, im), b)


def atanh(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    nothing = s.isnan(a) & ~s.isinf(b) | s.isnan(b)
    re = s.where(nothing, s.where((a == 0) | s.isinf(a), s.zeros_like(a), math.nan), re)
    return s.copysign(re, a), s.copysign(s.where(nothing, math.nan, im), b)


def reciprocal(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    zero = (a == 0) & (b == 0)
    return s.where(zero, math.nan, s.copysign(re, a)), s.where(zero, math.nan, s.copysign(im, -b))


def sign(s: Any, a: Any, b: Any, re: Any, im: Any) -> tuple[Any, Any]:
    one, none = s.ones_like(a), s.zeros_like(a)
    nothing = s.isnan(a) | s.isnan(b) | s.isinf(a) & s.isinf(b)
    re = s.where(s.isinf(a), s.copysign(one, a), s.where(s.isinf(b), none, s.copysign(re, a)))
    im = s.where(s.isinf(b), s.copysign(one, b), s.where(s.isinf(a), none, s.copysign(im, b)))
    return s.where(nothing, math.nan, re), s.where(nothing, math.nan, im)


LIMITS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "exp": exp, "expm1": expm1, "log": log, "log1p": log1p, "sqrt": sqrt, "cosh": cosh, "sinh": sinh, "tanh": tanh,
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": asin, "atanh": atanh,
    "reciprocal": reciprocal, "sign": sign,
}  # fmt: skip


def with_limits(space: Any, name: str, function: Any, combine: Any, is_complex: Any) -> Any:
    """`function` with the right limits for complex numbers, which `combine` makes of their parts."""
    limits = LIMITS[name]

    def compute(x: Any) -> Any:
        out = function(x)
        if not is_complex(x):
            return out
        return combine(*limits(space, space.real(x), space.imag(x), space.real(out), space.imag(out)))

    compute.plain = function  # type: ignore[attr-defined]  # for what is known to be real
    return compute
