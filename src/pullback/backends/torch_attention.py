"""PyTorch's fused attention, forward and backward, without a mask other than the causal one and without dropout.

The residual is the logarithm of each row's denominator, as in the portable kernel: whoever has computed it, either can
compute the gradient.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from .torch_aten import operator

_cpu_gradient = operator("_scaled_dot_product_flash_attention_for_cpu_backward")
_flash_gradient = operator("_scaled_dot_product_flash_attention_backward")
_cudnn_gradient = operator("_scaled_dot_product_cudnn_attention_backward")
_efficient_gradient = operator("_scaled_dot_product_efficient_attention_backward")
_EFFICIENT_ROWS = 32  # of which its logarithms of denominators are a multiple

_HALF = frozenset((torch.float16, torch.bfloat16))
_FLOATS = _HALF | {torch.float32, torch.float64}


def attention_kernels(general: Any) -> dict[str, Any]:
    def attention(
        q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, dropout: float, *random: Any
    ) -> Any:
        forward = _FORWARD.get(_library(q, k, v, mask, is_causal, dropout))
        if forward is None:
            return general("attention")(q, k, v, mask, is_causal, scale, dropout, *random)
        if q.ndim == 4 and k.shape[1] == q.shape[1]:
            out, lse = forward(q, k, v, is_causal, scale)
        else:
            out, lse = forward(_flat(q), *_keys(q, k, v), is_causal, scale)
            out = out.reshape(q.shape)
        return out, lse.reshape(q.shape[:-1])

    def attention_gradient(
        g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any, is_causal: bool, scale: float,
        dropout: float, *random: Any,
    ) -> Any:  # fmt: skip
        backward = _BACKWARD.get(_library(q, k, v, mask, is_causal, dropout))
        if g.stride(-1) != 1:
            g = g.contiguous()
        if backward is None or g.dtype != q.dtype:
            return general("attention_gradient")(g, q, k, v, mask, out, lse, needs, is_causal, scale, dropout, *random)
        if q.ndim == 4 and k.shape[1] == q.shape[1]:
            return *backward(g, q, k, v, out, lse, is_causal, scale), None
        keys, values = _keys(q, k, v)
        dq, dk, dv = backward(_flat(g), _flat(q), keys, values, _flat(out), lse, is_causal, scale)
        return dq.reshape(q.shape), _summed(dk, k), _summed(dv, v), None

    return {"attention": attention, "attention_gradient": attention_gradient}


def _library(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, dropout: float) -> str | None:
    """Whose kernel takes these arrays: "cudnn", "flash", "efficient", "cpu"; None for nobody's."""
    dtype, shape, keys = q.dtype, q.shape, k.shape
    if (
        mask is not None
        or dropout
        or dtype not in _FLOATS
        or k.dtype is not dtype
        or v.dtype is not dtype
        or v.shape != keys
        or len(shape) < 3
        or 0 in shape
    ):
        return None
    if shape != keys and (
        shape[:-3] != keys[:-3] or 0 in keys or shape[-1] != keys[-1] or (is_causal and shape[-2] != keys[-2])
    ):
        return None
    if not q.is_cuda:
        return "cpu" if dtype not in _HALF and q.device.type == "cpu" else None
    width = shape[-1]
    if dtype is torch.float64 or width % 8 or width > 256:
        return None
    repeats = torch.are_deterministic_algorithms_enabled()  # only one of them can
    if dtype is torch.float32:
        return None if repeats else "efficient"
    return "cudnn" if width <= 128 and not repeats and _has_cudnn(q.device) else "flash"


@cache
def _has_cudnn(device: Any) -> bool:
    """Whether cuDNN's attention is there and fast: from Hopper on."""
    return torch.cuda.get_device_capability(device) >= (9, 0) and torch.backends.cudnn.is_available()


def _flat(x: Any) -> Any:
    """(batch, heads, length, width)"""
    return x if x.ndim == 4 else x.reshape(-1, *x.shape[-3:])


def _keys(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """Keys and values, with as many heads as the queries."""
    if k.shape[-3] != q.shape[-3]:
        times = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(times, -3), v.repeat_interleave(times, -3)
    return _flat(k), _flat(v)


def _summed(gradient: Any, like: Any) -> Any:
    """The gradient of keys or values whose heads were used by several queries'."""
    *batch, heads, length, width = like.shape
    return (
        gradient.reshape(*batch, heads, -1, length, width).sum(-3)
        if gradient.numel() != like.numel()
        else (gradient.reshape(like.shape))
    )


def _cpu_forward(q: Any, k: Any, v: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    return torch._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal, scale=scale)


def _cpu_backward(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, is_causal: bool, scale: float) -> Any:
    lse = lse.reshape(q.shape[:-1])
    return _cpu_gradient(g, q, k, v, out, lse, 0.0, is_causal, scale=scale)


def _flash_forward(q: Any, k: Any, v: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    return torch._scaled_dot_product_flash_attention(q, k, v, 0.0, is_causal, scale=scale)[:2]


def _flash_backward(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, is_causal: bool, scale: float) -> Any:
    lengths = (None, None, q.shape[-2], k.shape[-2])
    lse, seed = lse.reshape(q.shape[:-1]), _no_seed(q)
    return _flash_gradient(g, q, k, v, out, lse, *lengths, 0.0, is_causal, seed, seed, scale=scale)


def _cudnn_forward(q: Any, k: Any, v: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    return torch._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, is_causal, scale=scale)[:2]


def _cudnn_backward(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, is_causal: bool, scale: float) -> Any:
    lengths = (None, None, q.shape[-2], k.shape[-2])
    lse, seed = lse.reshape(*q.shape[:-1], 1), _no_seed(q)
    return _cudnn_gradient(g, q, k, v, out, lse, seed, seed, None, *lengths, 0.0, is_causal, scale=scale)


def _efficient_forward(q: Any, k: Any, v: Any, is_causal: bool, scale: float) -> tuple[Any, Any]:
    out, lse = torch._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, is_causal, scale=scale)[:2]
    return out, lse[..., : q.shape[-2]]  # without the rows that it adds


def _efficient_backward(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, is_causal: bool, scale: float) -> Any:
    length, seed = q.shape[-2], _no_seed(q)
    lse = torch.nn.functional.pad(lse.reshape(q.shape[:-1]), (0, -length % _EFFICIENT_ROWS), value=torch.inf)
    return _efficient_gradient(
        g, q, k, v, None, out, lse, seed, seed, 0.0, [True, True, True, False], is_causal, scale=scale
    )[:3]


def _no_seed(q: Any) -> Any:
    """What the kernels want of a generator of random numbers, although nothing is dropped."""
    return torch.empty((), dtype=torch.int64, device=q.device)


_FORWARD: dict[Any, Any] = {
    "cpu": _cpu_forward,
    "flash": _flash_forward,
    "cudnn": _cudnn_forward,
    "efficient": _efficient_forward,
}
_BACKWARD: dict[Any, Any] = {
    "cpu": _cpu_backward,
    "flash": _flash_backward,
    "cudnn": _cudnn_backward,
    "efficient": _efficient_backward,
}
