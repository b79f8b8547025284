"""Elementwise operations. The engine undoes broadcasting and promotion."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

LN2, LN10 = math.log(2.0), math.log(10.0)
SCALARS = (int, float, complex, bool)


def rules(xp: Any, op: Any) -> None:
    zero = xp.zeros_like
    where = xp.where

    op = partial(op, elementwise=True)

    def unary(name: str, x: Any = None, dtypes: str = "promoted", **marks: Any) -> None:
        op(name, "x", dtypes=dtypes, scalar=True, standard="main", **({"x": x} if x else {}), **marks)

    def binary(name: str, x: Any = None, y: Any = None, dtypes: str = "promoted", **marks: Any) -> None:
        op(name, "x y", dtypes=dtypes, scalar=True, standard="main", **({"x": x, "y": y} if x else {}), **marks)

    floating = partial(unary, dtypes="floating")
    precise = partial(floating, autocast="float32")

    def nonzero(x: Any) -> Any:
        """`x` with ones for zeros, to divide by where the numerator is zero too."""
        return where(xp.equal(x, 0), xp.ones_like(x), x)

    # arithmetic
    binary("add", lambda g: g, lambda g: g, commutes=True)
    binary("subtract", lambda g: g, lambda g: -g)
    binary("multiply", lambda g, y: g * y, lambda g, x: g * x, commutes=True)
    binary("divide", lambda g, y: g / y, lambda g, y, out: -g * out / y, "floating")
    unary("negative", lambda g: -g)
    unary("positive", lambda g: g)
    unary("square", lambda g, x: g * (2 * x), autocast="float32")
    precise("reciprocal", lambda g, out: -g * out * out)
    floating("sqrt", lambda g, out: g / (2 * out))
    binary("remainder", lambda g: g, lambda g, x, y: -g * xp.floor_divide(x, y), real=True)
    binary("floor_divide", lambda g: zero(g), lambda g: zero(g), masking=True, real=True)

    def pow_x(g: Any, x: Any, y: Any) -> Any:
        if type(y) in SCALARS:
            if y == 2:
                return g * (2 * x)
            return zero(g) if y == 0 else g * (y * xp.pow(x, y - 1))
        if y.dtype != g.dtype:
            y = y + zero(g)  # an unsigned integer has no y - 1
        # 0**0 is flat in its base; elsewhere at y = 0 the exact form must stay, for the derivative in y
        flat = xp.logical_and(xp.equal(x, 0), xp.equal(y, 0))
        return g * (y * xp.pow(x, where(flat, zero(y), y - 1)))

    def pow_y(g: Any, x: Any, out: Any) -> Any:
        if type(x) in SCALARS:
            x = x + zero(out)
        elif x.dtype != g.dtype:
            x = xp.add(x, zero(g))
        there = xp.not_equal(x, 0) if xp.is_complex(x) else xp.greater(x, 0)
        return g * where(there, out * xp.log(where(there, x, xp.ones_like(x))), zero(out))

    binary("pow", pow_x, pow_y, autocast="float32")

    # exponentials and logarithms
    precise("exp", lambda g, out: g * out)
    precise("expm1", lambda g, out: g * (out + 1))
    precise("log", lambda g, x: g / x)
    precise("log1p", lambda g, x: g / (1 + x))
    precise("log2", lambda g, x, x_dtype: g / (x * xp.full((), LN2, x_dtype, x)))
    precise("log10", lambda g, x, x_dtype: g / (x * xp.full((), LN10, x_dtype, x)))

    def share(x: Any, y: Any, out: Any) -> Any:
        """The part of exp(x) in exp(x) + exp(y); infinities of the same sign count equally.

        Not as exp(x - out), which would be wrong by as much as `out` is rounded.
        """
        both_infinite = xp.logical_and(xp.isinf(out), xp.equal(x, y))
        return xp.sigmoid(where(both_infinite, zero(out), x - y))

    binary(
        "logaddexp", lambda g, x, y, out: g * share(x, y, out), lambda g, x, y, out: g * share(y, x, out), "floating",
        autocast="float32", real=True,
    )  # fmt: skip

    # trigonometry
    floating("sin", lambda g, x: g * xp.cos(x))
    floating("cos", lambda g, x: -g * xp.sin(x))
    precise("tan", lambda g, out: g * (1 + out * out))
    precise("asin", lambda g, x: g / xp.sqrt((1 - x) * (1 + x)))
    precise("acos", lambda g, x: -g / xp.sqrt((1 - x) * (1 + x)))
    floating("atan", lambda g, x: g / (1 + x * x))
    precise("sinh", lambda g, x: g * xp.cosh(x))
    precise("cosh", lambda g, x: g * xp.sinh(x))
    floating("tanh", lambda g, out: g * (1 - out * out))
    floating("asinh", lambda g, x: g / xp.sqrt(1 + x * x))
    floating("acosh", lambda g, x: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)))
    floating("atanh", lambda g, x: g / ((1 - x) * (1 + x)))

    def direction(x: Any, y: Any) -> Any:
        """x / (x*x + y*y) without overflow, and 0 at the origin."""
        distance = nonzero(xp.hypot(x, y))
        return x / distance / distance

    binary(
        "hypot", lambda g, x, out: g * (x / nonzero(out)), lambda g, y, out: g * (y / nonzero(out)), "floating",
        commutes=True, real=True,
    )  # fmt: skip
    binary("atan2", lambda g, x, y: g * direction(y, x), lambda g, x, y: -g * direction(x, y), "floating", real=True)

    # absolute values, signs, rounding
    def sign_x(g: Any, x: Any, out: Any) -> Any:
        if not xp.is_complex(x):
            return zero(g)
        # the derivative turns with x: d(x/|x|) = (dx - sign(x)**2 conj(dx)) / (2 |x|)
        turning = (g - xp.conj(g * out * out)) / (2 * nonzero(xp.abs(x)))
        return where(xp.equal(x, 0), zero(turning), turning)

    unary("abs", lambda g, x: g * xp.conj(xp.sign(x)))
    op(
        "sign", "x", elementwise=False, cheap=True, masking=True, dtypes="promoted", scalar=True, standard="main",
        batch="leading",
        x=sign_x,  # on complex numbers its tangent is not its rule
    )  # fmt: skip
    for name in ("floor", "ceil", "trunc"):
        unary(name, lambda g: zero(g), masking=True, real=True)
    unary("round", lambda g: zero(g), masking=True, numpy="rint")
    binary(
        "copysign", lambda g, x, y: g * (xp.sign(x) * xp.copysign(xp.ones_like(g), y)), lambda g: zero(g), "floating",
        real=True,
    )  # fmt: skip
    binary("nextafter", lambda g: g, lambda g: zero(g), "floating", real=True)

    # complex numbers
    op("conj", "x", linear="x", x=lambda g: xp.conj(g))
    op("real", "x", linear="x", x=lambda g, x_dtype: xp.astype(g, x_dtype))
    op(
        "imag", "x", linear="x",
        x=lambda g, x_dtype: xp.astype(g, x_dtype) * -1j if "complex" in str(x_dtype) else zero(g),
    )  # fmt: skip

    # the larger, the smaller, the chosen
    def larger(g: Any, x: Any, y: Any) -> Any:
        """The cotangent where x > y, half of it where the two are equal."""
        return where(xp.greater(x, y), g, where(xp.equal(x, y), g / 2, zero(g)))

    binary("maximum", lambda g, x, y: larger(g, x, y), lambda g, x, y: larger(g, y, x), masking=True, commutes=True)
    binary("minimum", lambda g, x, y: larger(g, y, x), lambda g, x, y: larger(g, x, y), masking=True, commutes=True)

    def clip_x(g: Any, x: Any, lower: Any, upper: Any) -> Any:
        if lower is not None:
            g = where(xp.less(x, lower), zero(g), g)
        return g if upper is None else where(xp.greater(x, upper), zero(g), g)

    def clip_lower(g: Any, x: Any, lower: Any, upper: Any) -> Any:
        g = where(xp.less(x, lower), g, zero(g))
        return g if upper is None else where(xp.less_equal(lower, upper), g, zero(g))

    def clip_upper(g: Any, x: Any, lower: Any, upper: Any) -> Any:
        outside = xp.greater(x, upper)
        if lower is not None:
            outside = xp.logical_or(outside, xp.greater(lower, upper))
        return where(outside, g, zero(g))

    op(
        "clip", "x lower upper", masking=True, real=True, expands="always",
        x=clip_x, lower=clip_lower, upper=clip_upper,
    )  # fmt: skip
    op(
        "where", "condition x y", masking=True, scalar=True,
        x=lambda g, condition: where(condition, g, zero(g)),
        y=lambda g, condition: where(condition, zero(g), g),
    )  # fmt: skip
    triangle = partial(op, elementwise=False, linear="x", cheap=True, masking=True, standard="main")
    triangle("tril", "x", "k", batch="leading", x=lambda g, k: xp.tril(g, k))
    triangle("triu", "x", "k", batch="leading", x=lambda g, k: xp.triu(g, k))
    op(
        "astype", "x", "dtype", elementwise=False, linear="x", cheap=True, scalar=True, autocast="given",
        batch="leading",
        x=lambda g, x_dtype: xp.astype(g, x_dtype),
    )  # fmt: skip

    # truth values and integers: no gradients
    for name in ("equal", "not_equal"):
        binary(name, dtypes="comparison", commutes=True)
    for name in ("less", "less_equal", "greater", "greater_equal"):
        binary(name, dtypes="comparison")
    for name in ("logical_and", "logical_or", "logical_xor"):
        binary(name, dtypes="logical", commutes=True)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        binary(name, dtypes="bitwise", commutes=True)
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        binary(name, dtypes="bitwise")
    for name in ("isfinite", "isnan", "isinf", "signbit"):
        unary(name, dtypes="test")
    unary("logical_not", dtypes="logical")
    unary("bitwise_invert", dtypes="bitwise")
