"""Activation functions, and softmax with its relatives. `axis` is a tuple of negative integers."""

from __future__ import annotations

import math
from typing import Any

TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715
NORMAL_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def rules(xp: Any, op: Any) -> None:
    where, zero = xp.where, xp.zeros_like

    def unary(name: str, static: str, x: Any, **marks: Any) -> None:
        op(name, "x", static, elementwise=True, x=x, **marks)

    unary("relu", "", lambda g, out: where(out > 0, g, zero(g)), masking=True)
    unary("leaky_relu", "negative_slope", lambda g, x, negative_slope: where(x > 0, g, g * negative_slope))
    unary(
        "elu", "alpha",
        lambda g, x, alpha: where(x > 0, g, g * (alpha * xp.exp(xp.minimum(x, zero(x))))),
    )  # fmt: skip
    unary("sigmoid", "", lambda g, out: g * (out * (1 - out)))
    unary("log_sigmoid", "", lambda g, x: g * xp.sigmoid(-x))
    unary("softplus", "beta", lambda g, x, beta: g * xp.sigmoid(x * beta))

    def silu_x(g: Any, x: Any) -> Any:
        s = xp.sigmoid(x)
        return g * (s * (1 + x * (1 - s)))

    def gelu_x(g: Any, x: Any, approximate: str) -> Any:
        if approximate == "none":
            return g * (xp.ndtr(x) + x * (NORMAL_DENSITY_AT_0 * xp.exp(-0.5 * x * x)))
        t = xp.tanh(TANH_SCALE * x * (1 + TANH_CUBIC * x * x))
        slope = TANH_SCALE * (1 + 3 * TANH_CUBIC * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)

    unary("silu", "", silu_x)
    unary("gelu", "approximate", gelu_x)

    def softmax_x(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        p = xp.widened(out)
        weighted = xp.widened(g) * p
        return xp.narrowed(weighted - p * xp.sum(weighted, axis, True), x_dtype)

    def log_softmax_x(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        wide = xp.widened(g)
        return xp.narrowed(wide - xp.exp(xp.widened(out)) * xp.sum(wide, axis, True), x_dtype)

    def logsumexp_x(g: Any, x: Any, out: Any, x_shape: Any, x_dtype: Any, axis: Any) -> Any:
        kept = tuple(1 if i - len(x_shape) in axis else n for i, n in enumerate(x_shape))
        total = xp.reshape(xp.widened(out), kept)
        total = where(xp.isfinite(total), total, zero(total))  # of -inf alone: every share is zero
        return xp.narrowed(xp.reshape(xp.widened(g), kept) * xp.exp(xp.widened(x) - total), x_dtype)

    op("softmax", "x", "axis", x=softmax_x)
    op("log_softmax", "x", "axis", x=log_softmax_x)
    op("logsumexp", "x", "axis keepdims", x=logsumexp_x)
