"""PyTorch's own batch normalization, both ways."""

from __future__ import annotations

import math
from typing import Any

import torch

from .torch_aten import operator

_WIDE = frozenset((torch.float32, torch.float64))
_backward = operator("native_batch_norm_backward")


def _is_fused(x: Any, axis: Any, *parameters: Any) -> bool:
    """Whether PyTorch's kernel takes it: statistics of each channel (axis 1), with parameters of the same dtype."""
    dtype, ndim = x.dtype, x.ndim
    return (
        dtype in _WIDE
        and ndim > 1
        and x.numel() > 0
        and sorted(axis) == [a for a in range(-ndim, 0) if a != 1 - ndim]
        and all([p is None or (p.dtype is dtype and p.numel() == x.shape[1]) for p in parameters])
    )


def _row(parameter: Any) -> Any:
    return None if parameter is None else parameter.reshape(-1)


def batch_norm_kernels(general: Any) -> dict[str, Any]:
    def batch_norm(x: Any, weight: Any, bias: Any, axis: Any, eps: float) -> Any:
        count = x.numel() // x.shape[1] if x.ndim > 1 and x.shape[1] else 0
        if count < 2 or not _is_fused(x, axis, weight, bias):
            return general("batch_norm")(x, weight, bias, axis, eps)
        # As running statistics that forget everything: there the variance is exact, and not in what is saved.
        mean, variance = x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
        out = torch.native_batch_norm(x, _row(weight), _row(bias), mean, variance, True, 1.0, eps)[0]
        shape = (1, x.shape[1], *(1,) * (x.ndim - 2))
        return out, mean.reshape(shape), (variance * ((count - 1) / count)).reshape(shape)

    return {"batch_norm": batch_norm}


def batch_norm_rule(general: Any) -> Any:
    """The rule, with the arguments of the table's, `general`, which takes gradients of the statistics too."""

    def batch_norm(
        g: Any, x: Any, weight: Any, mean: Any, variance: Any, x_shape: Any, x_dtype: Any, weight_shape: Any,
        weight_dtype: Any, bias_shape: Any, bias_dtype: Any, axis: Any, eps: Any, needs: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        g_out, g_mean, g_variance = g
        if (
            g_out is None
            or g_mean is not None
            or g_variance is not None
            or g_out.dtype is not x.dtype
            or not _is_fused(x, axis, weight)
            or (needs[2] and (bias_dtype is not x.dtype or math.prod(bias_shape) != x.shape[1]))
        ):
            return general(
                g, x, weight, mean, variance, x_shape, x_dtype, weight_shape, weight_dtype, bias_shape, bias_dtype,
                axis, eps, needs,
            )  # fmt: skip
        rstd = torch.rsqrt(variance + eps).reshape(-1)
        scale = _row(weight)
        if scale is None and (needs[1] or needs[2]):
            scale = torch.ones_like(rstd)
        gradients = _backward(g_out, x, scale, None, None, mean.reshape(-1), rstd, True, eps, needs)
        return tuple(
            [
                None if gradient is None or shape is None else gradient.reshape(shape)
                for gradient, shape in zip(gradients, (x_shape, weight_shape, bias_shape))
            ]
        )

    return batch_norm
