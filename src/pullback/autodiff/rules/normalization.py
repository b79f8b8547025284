"""Normalisation layers, dropout and embedding. `axis` is a tuple of negative integers.

Weights and biases broadcast against `x`, and may be absent.
"""

from __future__ import annotations

import math
from typing import Any


def rules(xp: Any, op: Any) -> None:
    wide = xp.widened

    def summed(g: Any, shape: Any, dtype: Any) -> Any:
        return xp.narrowed(xp.sum_to(g, shape), dtype)

    def uncut(axis: Any, *shapes: Any) -> int:
        """How many of the last axes the computation must see whole."""
        return max(-min(axis), *(len(shape or ()) for shape in shapes))

    def centred_and_scaled(g: Any, normalized: Any, rstd: Any, axis: Any) -> Any:
        """The gradient of (x - mean) * rstd: what is left of `g` without its parts along 1 and along the result."""
        return (g - xp.mean(g, axis, True) - normalized * xp.mean(g * normalized, axis, True)) * rstd

    def layer_norm(
        g: Any, x: Any, weight: Any, mean: Any, rstd: Any, x_dtype: Any, weight_shape: Any, weight_dtype: Any,
        bias_shape: Any, bias_dtype: Any, axis: Any, needs: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        def piece(g: Any, x: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
            g, normalized = wide(g), (wide(x) - mean) * rstd
            inner = g if weight is None else g * weight
            return (
                xp.narrowed(centred_and_scaled(inner, normalized, rstd, axis), x_dtype),
                summed(g * normalized, weight_shape, weight_dtype) if needs[1] else None,
                summed(g, bias_shape, bias_dtype) if needs[2] else None,
            )

        return xp.blockwise(piece, uncut(axis, weight_shape, bias_shape), g, x, mean, rstd)

    op(
        "layer_norm", "x weight bias", "axis eps", batch="first", residuals="mean rstd", composite=True, cheap=True,
        autocast="float32", real=True, joint=layer_norm,
    )  # fmt: skip

    def rms_norm(
        g: Any,
        x: Any,
        weight: Any,
        rstd: Any,
        x_dtype: Any,
        weight_shape: Any,
        weight_dtype: Any,
        axis: Any,
        needs: Any,
    ) -> tuple[Any, Any]:
        def piece(g: Any, x: Any, rstd: Any) -> tuple[Any, Any]:
            g, normalized = wide(g), wide(x) * rstd
            inner = g if weight is None else g * weight
            grad = (inner - normalized * xp.mean(inner * normalized, axis, True)) * rstd
            return (
                xp.narrowed(grad, x_dtype),
                summed(g * normalized, weight_shape, weight_dtype) if needs[1] else None,
            )

        return xp.blockwise(piece, uncut(axis, weight_shape), g, x, rstd)

    op(
        "rms_norm", "x weight", "axis eps", residuals="rstd", composite=True, cheap=True, autocast="float32", real=True,
        batch="first",
        joint=rms_norm,
    )  # fmt: skip

    def batch_norm(
        g: Any, x: Any, weight: Any, mean: Any, variance: Any, x_shape: Any, x_dtype: Any, weight_shape: Any,
        weight_dtype: Any, bias_shape: Any, bias_dtype: Any, axis: Any, eps: Any, needs: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """With the gradients of the statistics, which higher orders need; `g` has None for what nothing depends on."""
        g_out, g_mean, g_variance = g
        count = math.prod(x_shape[a] for a in axis)
        centred = wide(x) - mean
        rstd = xp.reciprocal_deviation(centred, variance, axis, eps)
        normalized = centred * rstd
        g_out = xp.zeros_like(centred) if g_out is None else wide(g_out)
        total = centred_and_scaled(g_out if weight is None else g_out * weight, normalized, rstd, axis)
        if g_mean is not None:
            total = total + g_mean / count
        if g_variance is not None:
            total = total + g_variance * (2 / count) * centred
        return (
            xp.narrowed(total, x_dtype),
            summed(g_out * normalized, weight_shape, weight_dtype) if needs[1] else None,
            summed(g_out, bias_shape, bias_dtype) if needs[2] else None,
        )

    op(
        "batch_norm",
        "x weight bias",
        "axis eps",
        outputs="out mean variance",
        autocast="float32",
        real=True,
        joint=batch_norm,
    )

    op(
        "multiply_add", "x scale shift", elementwise=True, real=True, expands="always",
        x=lambda g, scale: g * scale, scale=lambda g, x: g * x, shift=lambda g: g,
    )  # fmt: skip

    op(
        "dropout", "x", "p key offset", residuals="kept", linear="x", real=True, expands="always",
        x=lambda g, kept, x_dtype, p: (
            xp.where(kept, xp.narrowed(g * (0 if p == 1 else 1 / (1 - p)), x_dtype), xp.zeros_like(g))
        ),
    )  # fmt: skip

    def embedding_weight(g: Any, indices: Any, weight_shape: Any, weight_dtype: Any) -> Any:
        count = math.prod(indices.shape)
        rows, flat = xp.reshape(wide(g), (count, weight_shape[1])), xp.reshape(indices, (count,))
        return xp.narrowed(xp.take_transposed(rows, flat, weight_shape[0], -2), weight_dtype)

    op("embedding", "indices weight", linear="weight", weight=embedding_weight)
