"""Three 3 x 3 convolutions 3-32-64-128, each with batch normalisation, relu and pooling, and a linear head."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

BATCH, SIZE, CHANNELS, CLASSES = 32, 32, (3, 32, 64, 128), 10
FEATURES = CHANNELS[-1] * (SIZE // 8) ** 2
EPSILON, MOMENTUM = 1e-5, 0.1


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((BATCH, CHANNELS[0], SIZE, SIZE)).astype(np.float32)
    return x, generator.integers(0, CLASSES, BATCH)


def pullback() -> Any:
    import pullback as pb

    return _module(pb.nn, pb.cross_entropy)


def torch() -> Any:
    import torch

    return _module(torch.nn, torch.nn.functional.cross_entropy)


def _module(nn: Any, cross_entropy: Any) -> Any:
    class Cnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[Any] = []
            for inputs, outputs in pairwise(CHANNELS):
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
                layers += [nn.MaxPool2d(2)]
            self.layers = nn.Sequential(*layers)
            self.head = nn.Linear(FEATURES, CLASSES)

        def forward(self, x: Any, y: Any) -> Any:
            return cross_entropy(self.head(self.layers(x).reshape(BATCH, FEATURES)), y)

    return Cnn()


def jax(parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
    from jax import lax, nn, numpy as jnp

    new = {}
    h = x
    for i in range(3):
        convolution, norm = f"layers.{4 * i}", f"layers.{4 * i + 1}"
        h = lax.conv_general_dilated(h, parameters[f"{convolution}.weight"], (1, 1), "SAME")
        h = h + parameters[f"{convolution}.bias"][:, None, None]
        mean, variance = h.mean((0, 2, 3)), h.var((0, 2, 3))
        count = h.size // h.shape[1]
        unbiased = variance * (count / (count - 1))
        new[f"{norm}.running_mean"] = (1 - MOMENTUM) * buffers[f"{norm}.running_mean"] + MOMENTUM * mean
        new[f"{norm}.running_var"] = (1 - MOMENTUM) * buffers[f"{norm}.running_var"] + MOMENTUM * unbiased
        new[f"{norm}.num_batches_tracked"] = buffers[f"{norm}.num_batches_tracked"] + 1
        factor = parameters[f"{norm}.weight"] * lax.rsqrt(variance + EPSILON)
        h = (h - mean[:, None, None]) * factor[:, None, None] + parameters[f"{norm}.bias"][:, None, None]
        h = lax.reduce_window(nn.relu(h), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    logits = h.reshape(BATCH, FEATURES) @ parameters["head.weight"].T + parameters["head.bias"]
    return -jnp.take_along_axis(nn.log_softmax(logits), y[:, None], -1).mean(), new
