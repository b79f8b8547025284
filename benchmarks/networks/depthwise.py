"""Two blocks of depthwise 3 x 3 and 1 x 1 convolutions and relu, 16 x 32 x 32 x 32, then the mean of each channel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

BATCH, SIZE, CHANNELS = 16, 32, (32, 64, 64)


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((BATCH, CHANNELS[0], SIZE, SIZE)).astype(np.float32)
    return x, generator.standard_normal((BATCH, CHANNELS[-1])).astype(np.float32)


def pullback() -> Any:
    import pullback as pb

    return _module(pb.nn)


def torch() -> Any:
    import torch

    return _module(torch.nn)


def _module(nn: Any) -> Any:
    class Depthwise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[Any] = []
            for inputs, outputs in pairwise(CHANNELS):
                layers += [nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs), nn.ReLU()]
                layers += [nn.Conv2d(inputs, outputs, 1), nn.ReLU()]
            self.layers = nn.Sequential(*layers)

        def forward(self, x: Any, y: Any) -> Any:
            return ((self.layers(x).mean((2, 3)) - y) ** 2).mean()

    return Depthwise()


def jax(parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
    from jax import lax, nn

    h = x
    for i in range(4):
        weight, bias = parameters[f"layers.{2 * i}.weight"], parameters[f"layers.{2 * i}.bias"]
        groups = 1 if i % 2 else h.shape[1]
        h = lax.conv_general_dilated(h, weight, (1, 1), "SAME", feature_group_count=groups)
        h = nn.relu(h + bias[:, None, None])
    return ((h.mean((2, 3)) - y) ** 2).mean(), buffers
