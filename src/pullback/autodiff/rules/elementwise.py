"""Elementwise operations. The engine undoes broadcasting and promotion."""

from __future__ import annotations

import math
from typing import Any

LN2, LN10 = math.log(2.0), math.log(10.0)


def rules(xp: Any, op: Any) -> None:
    zero = xp.zeros_like
    where = xp.where

    def unary(name: str, x: Any = None, **marks: Any) -> None:
        op(name, "x", elementwise=True, **({"x": x} if x else {}), **marks)

    def binary(name: str, x: Any = None, y: Any = None, **marks: Any) -> None:
        op(name, "x y", elementwise=True, **({"x": x, "y": y} if x else {}), **marks)

    # arithmetic
    binary("add", lambda g: g, lambda g: g)
    binary("subtract", lambda g: g, lambda g: -g)
    binary("multiply", lambda g, y: g * y, lambda g, x: g * x, singular=True)
    binary("divide", lambda g, y: g / y, lambda g, y, out: -g * out / y, singular=True)
    unary("negative", lambda g: -g)
    unary("positive", lambda g: g)
    unary("square", lambda g, x: g * (2 * x))
    unary("reciprocal", lambda g, out: -g * out * out, singular=True)
    unary("sqrt", lambda g, out: g / (2 * out), singular=True)

    # exponentials and logarithms
    unary("exp", lambda g, out: g * out)
    unary("expm1", lambda g, out: g * (out + 1))
    unary("log", lambda g, x: g / x, singular=True)
    unary("log1p", lambda g, x: g / (1 + x), singular=True)
    unary("log2", lambda g, x: g / (x * LN2), singular=True)
    unary("log10", lambda g, x: g / (x * LN10), singular=True)

    # trigonometry
    unary("sin", lambda g, x: g * xp.cos(x))
    unary("cos", lambda g, x: -g * xp.sin(x))
    unary("tan", lambda g, out: g * (1 + out * out))
    unary("sinh", lambda g, x: g * xp.cosh(x))
    unary("cosh", lambda g, x: g * xp.sinh(x))
    unary("tanh", lambda g, out: g * (1 - out * out))

    # comparisons
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        binary(name)
    for name in ("isfinite", "isnan", "isinf"):
        unary(name)

    op(
        "where", "condition x y", elementwise=True, masking=True,
        x=lambda g, condition: where(condition, g, zero(g)),
        y=lambda g, condition: where(condition, zero(g), g),
    )  # fmt: skip
    op("astype", "x", "dtype", linear="x", cheap=True, x=lambda g, x_dtype: xp.astype(g, x_dtype))
