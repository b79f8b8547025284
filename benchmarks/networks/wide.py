"""A network 512-2048-2048-512 with gelu and layer normalisation, batch 256: mean squared error."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

BATCH, SIZES = 256, (512, 2048, 2048, 512)
EPSILON = 1e-5


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    return x, generator.standard_normal((BATCH, SIZES[-1])).astype(np.float32)


def pullback() -> Any:
    import pullback as pb

    return _module(pb.nn)


def torch() -> Any:
    import torch

    return _module(torch.nn)


def _module(nn: Any) -> Any:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[Any] = []
            for inputs, outputs in pairwise(SIZES[:-1]):
                layers += [nn.Linear(inputs, outputs), nn.GELU(), nn.LayerNorm(outputs)]
            self.layers = nn.Sequential(*layers, nn.Linear(*SIZES[-2:]))

        def forward(self, x: Any, y: Any) -> Any:
            return ((self.layers(x) - y) ** 2).mean()

    return Wide()


def jax(parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
    from jax import lax, nn

    def linear(i: int, h: Any) -> Any:
        return h @ parameters[f"layers.{i}.weight"].T + parameters[f"layers.{i}.bias"]

    h = x
    for i in (0, 3):
        h = nn.gelu(linear(i, h), approximate=False)
        mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
        h = (h - mean) * lax.rsqrt(variance + EPSILON)
        h = h * parameters[f"layers.{i + 2}.weight"] + parameters[f"layers.{i + 2}.bias"]
    return ((linear(6, h) - y) ** 2).mean(), buffers


def floor() -> Callable[[], Any]:
    """The matrix products of forward and backward, each alone, and nothing else."""
    generator = np.random.default_rng(2)

    def array(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape).astype(np.float32)

    products = []
    for i, (inputs, outputs) in enumerate(pairwise(SIZES)):
        x, w, g = array(BATCH, inputs), array(outputs, inputs), array(BATCH, outputs)
        products += [(x, w.T), (g.T, x)] + [(g, w)] * (i > 0)
    results = [np.empty(np.matmul(x, y).shape, np.float32) for x, y in products]

    def run() -> None:
        for (x, y), out in zip(products, results):
            np.matmul(x, y, out=out)

    return run
