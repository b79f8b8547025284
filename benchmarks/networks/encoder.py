"""Four layers of a transformer encoder, width 256, 8 heads, 1024 inside, gelu; 8 sequences of 64 tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

BATCH, LENGTH, WIDTH, HEADS, INNER, LAYERS = 8, 64, 256, 8, 1024, 4
EPSILON = 1e-5


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    shape = (BATCH, LENGTH, WIDTH)
    return generator.standard_normal(shape).astype(np.float32), generator.standard_normal(shape).astype(np.float32)


def pullback() -> Any:
    import pullback as pb

    return _module(pb.nn)


def torch() -> Any:
    import torch

    return _module(torch.nn)


def _module(nn: Any) -> Any:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            options: Any = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
            self.layers = nn.ModuleList(
                [nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, **options) for _ in range(LAYERS)]
            )

        def forward(self, x: Any, y: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return ((x - y) ** 2).mean()

    return Encoder()


def jax(parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
    from jax import lax, nn, numpy as jnp

    def linear(name: str, h: Any) -> Any:
        return h @ parameters[f"{name}weight"].T + parameters[f"{name}bias"]

    def norm(name: str, h: Any) -> Any:
        mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
        return (h - mean) * lax.rsqrt(variance + EPSILON) * parameters[f"{name}weight"] + parameters[f"{name}bias"]

    def heads(h: Any) -> Any:
        return h.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    h = x
    for i in range(LAYERS):
        layer = f"layers.{i}."
        joint = linear(f"{layer}self_attn.in_proj_", norm(f"{layer}norm1.", h))
        q, k, v = map(heads, jnp.split(joint, 3, -1))
        shares = nn.softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(WIDTH // HEADS))
        mixed = (shares @ v).transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH)
        h = h + linear(f"{layer}self_attn.out_proj.", mixed)
        inner = nn.gelu(linear(f"{layer}linear1.", norm(f"{layer}norm2.", h)), approximate=False)
        h = h + linear(f"{layer}linear2.", inner)
    return ((h - y) ** 2).mean(), buffers
