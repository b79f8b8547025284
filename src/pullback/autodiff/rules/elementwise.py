"""Elementwise operations. The engine undoes broadcasting and promotion."""

from __future__ import annotations

import math
from typing import Any

LN2, LN10 = math.log(2.0), math.log(10.0)
SCALARS = (int, float, complex, bool)


def rules(xp: Any, op: Any) -> None:
    zero = xp.zeros_like
    where = xp.where

    def unary(name: str, x: Any = None, **marks: Any) -> None:
        op(name, "x", elementwise=True, **({"x": x} if x else {}), **marks)

    def binary(name: str, x: Any = None, y: Any = None, **marks: Any) -> None:
        op(name, "x y", elementwise=True, **({"x": x, "y": y} if x else {}), **marks)

    def nonzero(x: Any) -> Any:
        """`x` with ones for zeros, to divide by where the numerator is zero too."""
        return where(xp.equal(x, 0), xp.ones_like(x), x)

    # arithmetic
    binary("add", lambda g: g, lambda g: g)
    binary("subtract", lambda g: g, lambda g: -g)
    binary("multiply", lambda g, y: g * y, lambda g, x: g * x)
    binary("divide", lambda g, y: g / y, lambda g, y, out: -g * out / y)
    unary("negative", lambda g: -g)
    unary("positive", lambda g: g)
    unary("square", lambda g, x: g * (2 * x))
    unary("reciprocal", lambda g, out: -g * out * out)
    unary("sqrt", lambda g, out: g / (2 * out))
    binary("remainder", lambda g: g, lambda g, x, y: -g * xp.floor_divide(x, y))
    binary("floor_divide", lambda g: zero(g), lambda g: zero(g), masking=True)

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

    binary("pow", pow_x, pow_y)

    # exponentials and logarithms
    unary("exp", lambda g, out: g * out)
    unary("expm1", lambda g, out: g * (out + 1))
    unary("log", lambda g, x: g / x)
    unary("log1p", lambda g, x: g / (1 + x))
    unary("log2", lambda g, x, x_dtype: g / (x * xp.full((), LN2, x_dtype, x)))
    unary("log10", lambda g, x, x_dtype: g / (x * xp.full((), LN10, x_dtype, x)))

    def share(x: Any, y: Any, out: Any) -> Any:
        """The part of exp(x) in exp(x) + exp(y); infinities of the same sign count equally.

        Not as exp(x - out), which would be wrong by as much as `out` is rounded.
        """
        both_infinite = xp.logical_and(xp.isinf(out), xp.equal(x, y))
        return xp.sigmoid(where(both_infinite, zero(out), x - y))

    binary("logaddexp", lambda g, x, y, out: g * share(x, y, out), lambda g, x, y, out: g * share(y, x, out))

    # trigonometry
    unary("sin", lambda g, x: g * xp.cos(x))
    unary("cos", lambda g, x: -g * xp.sin(x))
    unary("tan", lambda g, out: g * (1 + out * out))
    unary("asin", lambda g, x: g / xp.sqrt((1 - x) * (1 + x)))
    unary("acos", lambda g, x: -g / xp.sqrt((1 - x) * (1 + x)))
    unary("atan", lambda g, x: g / (1 + x * x))
    unary("sinh", lambda g, x: g * xp.cosh(x))
    unary("cosh", lambda g, x: g * xp.sinh(x))
    unary("tanh", lambda g, out: g * (1 - out * out))
    unary("asinh", lambda g, x: g / xp.sqrt(1 + x * x))
    unary("acosh", lambda g, x: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)))
    unary("atanh", lambda g, x: g / ((1 - x) * (1 + x)))

    def direction(x: Any, y: Any) -> Any:
        """x / (x*x + y*y) without overflow, and 0 at the origin."""
        distance = nonzero(xp.hypot(x, y))
        return x / distance / distance

    binary("hypot", lambda g, x, out: g * (x / nonzero(out)), lambda g, y, out: g * (y / nonzero(out)))
    binary("atan2", lambda g, x, y: g * direction(y, x), lambda g, x, y: -g * direction(x, y))

    # absolute values, signs, rounding
    def sign_x(g: Any, x: Any, out: Any) -> Any:
        if not xp.is_complex(x):
            return zero(g)
        # the derivative turns with x: d(x/|x|) = (dx - sign(x)**2 conj(dx)) / (2 |x|)
        turning = (g - xp.conj(g * out * out)) / (2 * nonzero(xp.abs(x)))
        return where(xp.equal(x, 0), zero(turning), turning)

    unary("abs", lambda g, x: g * xp.conj(xp.sign(x)))
    op("sign", "x", cheap=True, masking=True, x=sign_x)  # on complex numbers its tangent is not its rule
    for name in ("floor", "ceil", "round", "trunc"):
        unary(name, lambda g: zero(g), masking=True)
    binary("copysign", lambda g, x, y: g * (xp.sign(x) * xp.copysign(xp.ones_like(g), y)), lambda g: zero(g))
    binary("nextafter", lambda g: g, lambda g: zero(g))

    # complex numbers
    op("conj", "x", elementwise=True, linear="x", x=lambda g: xp.conj(g))
    op("real", "x", elementwise=True, linear="x", x=lambda g, x_dtype: xp.astype(g, x_dtype))
    op(
        "imag", "x", elementwise=True, linear="x",
        x=lambda g, x_dtype: xp.astype(g, x_dtype) * -1j if "complex" in str(x_dtype) else zero(g),
    )  # fmt: skip

    # the larger, the smaller, the chosen
    def larger(g: Any, x: Any, y: Any) -> Any:
        """The cotangent where x > y, half of it where the two are equal."""
        return where(xp.greater(x, y), g, where(xp.equal(x, y), g / 2, zero(g)))

    binary("maximum", lambda g, x, y: larger(g, x, y), lambda g, x, y: larger(g, y, x), masking=True)
    binary("minimum", lambda g, x, y: larger(g, y, x), lambda g, x, y: larger(g, x, y), masking=True)

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

    op("clip", "x lower upper", elementwise=True, masking=True, x=clip_x, lower=clip_lower, upper=clip_upper)
    op(
        "where", "condition x y", elementwise=True, masking=True,
        x=lambda g, condition: where(condition, g, zero(g)),
        y=lambda g, condition: where(condition, zero(g), g),
    )  # fmt: skip
    op("tril", "x", "k", linear="x", cheap=True, masking=True, x=lambda g, k: xp.tril(g, k))
    op("triu", "x", "k", linear="x", cheap=True, masking=True, x=lambda g, k: xp.triu(g, k))
    op("astype", "x", "dtype", linear="x", cheap=True, x=lambda g, x_dtype: xp.astype(g, x_dtype))

    # truth values and integers: no gradients
    for name in (
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
        "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    ):  # fmt: skip
        binary(name)
    for name in ("isfinite", "isnan", "isinf", "signbit", "logical_not", "bitwise_invert"):
        unary(name)
