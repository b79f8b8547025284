"""Normalisation layers, dropout and embedding. `axis` is a tuple of negative integers.

Weights and biases broadcast against `x`, and may be absent.
"""

from __future__ import annotations

import math
from typing import Any


def rules(xp: Any, op: Any) -> None:
    wide = xp.widened

    def parameters(g: Any, normalized: Any, weight_shape: Any, bias_shape: Any, needs: Any) -> tuple[Any, Any]:
        """The gradients of the weight and the bias that `normalized` is multiplied and shifted by."""
        return (
            xp.sum_to(g * normalized, weight_shape) if needs[1] else None,
            xp.sum_to(g, bias_shape) if needs[2] else None,
        )

    def centred_and_scaled(g: Any, normalized: Any, rstd: Any, axis: Any) -> Any:
        """The gradient of (x - mean) * rstd: what is left of `g` without its parts along 1 and along the result."""
        return (g - xp.mean(g, axis, True) - normalized * xp.mean(g * normalized, axis, True)) * rstd

    def layer_norm(
        g: Any, x: Any, weight: Any, mean: Any, rstd: Any, x_dtype: Any, weight_shape: Any, bias_shape: Any,
        axis: Any, needs: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        g, normalized = wide(g), (wide(x) - mean) * rstd
        inner = g if weight is None else g * weight
        grad = xp.narrowed(centred_and_scaled(inner, normalized, rstd, axis), x_dtype) if needs[0] else None
        return grad, *parameters(g, normalized, weight_shape, bias_shape, needs)

    op("layer_norm", "x weight bias", "axis eps", residuals="mean rstd", composite=True, joint=layer_norm)

    def rms_norm(
        g: Any, x: Any, weight: Any, rstd: Any, x_dtype: Any, weight_shape: Any, axis: Any, needs: Any
    ) -> tuple[Any, Any]:
        g, normalized = wide(g), wide(x) * rstd
        inner = g if weight is None else g * weight
        grad = (inner - normalized * xp.mean(inner * normalized, axis, True)) * rstd
        return xp.narrowed(grad, x_dtype), xp.sum_to(g * normalized, weight_shape) if needs[1] else None

    op("rms_norm", "x weight", "axis eps", residuals="rstd", composite=True, joint=rms_norm)

    def batch_norm(
        g: Any, x: Any, weight: Any, mean: Any, variance: Any, x_shape: Any, x_dtype: Any, weight_shape: Any,
        bias_shape: Any, axis: Any, eps: Any, needs: Any,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """With gradients of the statistics, which higher orders need; `g` has None for what nothing depends on."""
        g_out, g_mean, g_variance = g
        count = math.prod(x_shape[a] for a in axis)
        centred = wide(x) - mean
        total = xp.zeros_like(centred)
        g_weight = g_bias = None
        if g_out is not None:
            g_out, rstd = wide(g_out), 1 / xp.sqrt(variance + eps)
            normalized = centred * rstd
            total = total + centred_and_scaled(g_out if weight is None else g_out * weight, normalized, rstd, axis)
            g_weight, g_bias = parameters(g_out, normalized, weight_shape, bias_shape, needs)
        if g_mean is not None:
            total = total + g_mean / count
        if g_variance is not None:
            total = total + g_variance * (2 / count) * centred
        if needs[1] and g_weight is None:
            g_weight = xp.zeros_like(weight)
        if needs[2] and g_bias is None:
            g_bias = xp.zeros(bias_shape, mean.dtype, mean)
        return xp.narrowed(total, x_dtype), g_weight, g_bias

    op("batch_norm", "x weight bias", "axis eps", outputs="out mean variance", joint=batch_norm)

    op(
        "multiply_add", "x scale shift", elementwise=True,
        x=lambda g, scale: g * scale, scale=lambda g, x: g * x, shift=lambda g: g,
    )  # fmt: skip

    op(
        "dropout", "x", "p key offset", residuals="kept", linear="x",
        x=lambda g, kept, p: xp.where(kept, g * (0 if p == 1 else 1 / (1 - p)), xp.zeros_like(g)),
    )  # fmt: skip

    def embedding_weight(g: Any, indices: Any, weight_shape: Any, weight_dtype: Any, padding_index: Any) -> Any:
        g = wide(g)
        if padding_index is not None:
            g = xp.where(xp.not_equal(xp.expand_dims(indices, (-1,)), padding_index), g, xp.zeros_like(g))
        rows = xp.reshape(g, (math.prod(indices.shape), weight_shape[1]))
        flat = xp.reshape(indices, (math.prod(indices.shape),))
        return xp.narrowed(xp.take_transposed(rows, flat, weight_shape[0], -2), weight_dtype)

    op("embedding", "indices weight", "padding_index", weight=embedding_weight)
