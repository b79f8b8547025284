"""Activation functions, and softmax with its relatives. `axis` is a tuple of negative integers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715
NORMAL_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def rules(xp: Any, op: Any) -> None:
    where, zero, wide, narrowed = xp.where, xp.zeros_like, xp.widened, xp.narrowed

    def unary(name: str, static: str, x: Any, **marks: Any) -> None:
        op(name, "x", static, elementwise=True, x=x, real=True, **{"expands": "floats", **marks})

    def silu_x(g: Any, x: Any) -> Any:
        s = xp.sigmoid(x)
        return g * (s * (1 + x * (1 - s)))

    unary("relu", "", lambda g, x_dtype, out: g * xp.astype(out > 0, x_dtype), masking=True)
    unary(
        "leaky_relu", "negative_slope",
        lambda g, x, x_dtype, negative_slope: where(x > 0, g, narrowed(g * negative_slope, x_dtype)),
    )  # fmt: skip
    unary(
        "elu", "alpha",
        lambda g, x, x_dtype, alpha: where(x > 0, g, g * narrowed(alpha * xp.exp(xp.minimum(x, zero(x))), x_dtype)),
    )  # fmt: skip
    unary(
        "sigmoid", "", lambda g, out: g * (out * (1 - out)), expands="", scalar=True, dtypes="floating", scipy="expit"
    )
    unary("log_sigmoid", "", lambda g, x: g * xp.sigmoid(-x), autocast="float32", scipy="log_expit")
    unary(
        "softplus", "beta", lambda g, x, x_dtype, beta: g * narrowed(xp.sigmoid(wide(x) * beta), x_dtype),
        autocast="float32",
    )  # fmt: skip
    unary("silu", "", silu_x)

    def gelu_slope(g: Any, x: Any) -> Any:
        y = wide(x)
        slope = xp.ndtr(y) + y * (NORMAL_DENSITY_AT_0 * xp.exp(-0.5 * y * y))
        return g * narrowed(slope, x.dtype)

    def tanh_gelu_slope(g: Any, x: Any) -> Any:
        y = wide(x)
        s = xp.sigmoid(2 * TANH_SCALE * y * (1 + TANH_CUBIC * y * y))  # gelu is x * s
        y = xp.clip(y, -100.0, 100.0)  # far out, where the slope is 0 or 1, squares overflow
        slope = s + y * s * (1 - s) * (2 * TANH_SCALE * (1 + 3 * TANH_CUBIC * y * y))
        return g * narrowed(slope, x.dtype)

    unary(
        "gelu", "approximate",
        lambda g, x, approximate: xp.blockwise(gelu_slope if approximate == "none" else tanh_gelu_slope, 0, g, x),
    )  # fmt: skip

    def softmax_x(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        p = wide(out)
        weighted = wide(g) * p
        return narrowed(weighted - p * xp.sum(weighted, axis, True), x_dtype)

    def log_softmax_x(g: Any, out: Any, x_dtype: Any, axis: Any) -> Any:
        g = wide(g)
        return narrowed(g - xp.exp(wide(out)) * xp.sum(g, axis, True), x_dtype)

    def logsumexp_x(g: Any, x: Any, out: Any, x_shape: Any, x_dtype: Any, axis: Any) -> Any:
        kept = tuple(1 if axis is None or i - len(x_shape) in axis else n for i, n in enumerate(x_shape))
        total = xp.reshape(wide(out), kept)
        terms = xp.exp(wide(x) - where(xp.isfinite(total), total, zero(total)))
        whole = xp.sum(terms, axis, True)  # one, but for the rounding of `total`; zero if all of x is -inf
        share_of_g = xp.reshape(wide(g), kept) / where(xp.equal(whole, 0), xp.ones_like(whole), whole)
        return narrowed(terms * share_of_g, x_dtype)

    op = partial(op, autocast="float32", real=True, expands="floats")
    op("softmax", "x", "axis", batch="leading", x=softmax_x)
    op("log_softmax", "x", "axis", batch="leading", x=log_softmax_x)
    op("logsumexp", "x", "axis=None keepdims=False", batch="reduction", x=logsumexp_x)
