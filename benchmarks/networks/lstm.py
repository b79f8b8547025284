"""An LSTM 64-128 over 64 steps, batch 32: mean squared error of all outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

LENGTH, BATCH, INPUTS, WIDTH = 64, 32, 64, 128


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((LENGTH, BATCH, INPUTS)).astype(np.float32)
    return x, generator.standard_normal((LENGTH, BATCH, WIDTH)).astype(np.float32)


def pullback() -> Any:
    import pullback as pb

    return _module(pb.nn)


def torch() -> Any:
    import torch

    return _module(torch.nn)


def _module(nn: Any) -> Any:
    class Lstm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(INPUTS, WIDTH)

        def forward(self, x: Any, y: Any) -> Any:
            return ((self.lstm(x)[0] - y) ** 2).mean()

    return Lstm()


def jax(parameters: Any, buffers: Any, x: Any, y: Any) -> tuple[Any, Any]:
    from jax import lax, nn, numpy as jnp

    p = {name.removeprefix("lstm."): array for name, array in parameters.items()}
    projected = x @ p["weight_ih_l0"].T + (p["bias_ih_l0"] + p["bias_hh_l0"])

    def body(state: Any, row: Any) -> tuple[Any, Any]:
        h, c = state
        i, f, g, o = jnp.split(row + h @ p["weight_hh_l0"].T, 4, -1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((BATCH, WIDTH), x.dtype)
    _, outputs = lax.scan(body, (zeros, zeros), projected)
    return ((outputs - y) ** 2).mean(), buffers
