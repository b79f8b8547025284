"""Training in mixed precision, with loss scaling and averaged weights, comes as far as training in float32."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require

STEPS = 60


def data() -> tuple[pb.Tensor, pb.Tensor]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(128, 6)).astype(np.float32)
    return pb.asarray(x), pb.asarray(np.argmax(np.tanh(x @ generator.normal(size=(6, 4))), axis=1))


def network(device: str) -> pb.nn.Module:
    pb.random.seed(0)
    layers = (pb.nn.Linear(6, 32), pb.nn.LayerNorm(32), pb.nn.GELU(), pb.nn.Linear(32, 4))
    return pb.nn.Sequential(*layers).to_device(device)


def trained(dtype: str | None, scaler: Any, device: str = "numpy") -> tuple[pb.nn.Module, float, float]:
    """The model, its loss, and its loss with averaged weights, in float32."""
    x, y = (part.to_device(device) for part in data())
    model = network(device)
    optimizer = pb.optim.AdamW(model.parameters(), lr=0.02)
    average = pb.optim.ExponentialMovingAverage(model, decay=0.9)
    for step in range(STEPS):
        rows = slice(32 * (step % 4), 32 * (step % 4 + 1))
        optimizer.zero_grad()
        with nullcontext() if dtype is None else pb.autocast(dtype):
            output = model(x[rows])
            loss = pb.cross_entropy(output, y[rows])
        assert output.dtype == (dtype or "float32")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update()
    with pb.no_grad():
        own = pb.cross_entropy(model(x), y).item()
        with average.applied():
            averaged = pb.cross_entropy(model(x), y).item()
    return model, own, averaged


@pytest.fixture(scope="module")
def in_float32() -> tuple[float, float]:
    _, own, averaged = trained(None, pb.optim.LossScaler(enabled=False))
    assert own < 0.15  # it learns: the loss starts at about log 4
    return own, averaged


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_reaches_the_loss_of_float32(dtype: str, device: str, in_float32: tuple[float, float]) -> None:
    require(device, dtype)
    scaler = pb.optim.LossScaler(init_scale=2.0**24, growth_interval=20, enabled=dtype == "float16")
    model, *losses = trained(dtype, scaler, device)
    np.testing.assert_allclose(losses, in_float32, atol=0.02)
    assert all(parameter.dtype == pb.float32 for parameter in model.parameters())
    if dtype == "float16":
        assert scaler.get_scale() < 2.0**24  # it overflowed at first, and recovered


def test_accumulated_micro_batches() -> None:
    x, y = data()
    model, reference = network("numpy"), network("numpy")
    optimizer, expected = (pb.optim.SGD(m.parameters(), lr=0.5) for m in (model, reference))
    scaler = pb.optim.LossScaler(init_scale=2.0**10)
    accumulation = pb.optim.Accumulation(scaler)
    for _ in range(10):
        for rows in (slice(0, 20), slice(20, 100), slice(100, 128)):
            with pb.autocast("float16"):
                loss = pb.cross_entropy(model(x[rows]), y[rows], reduction="sum")
            accumulation.backward(loss, rows.stop - rows.start)
        assert accumulation.step(optimizer, clip_norm=1.0)
        scaler.update()
        grads = pb.backward(pb.cross_entropy(reference(x), y))
        grads.clip_global_norm(1.0)
        expected.step(grads)
    for mine, other in zip(model.parameters(), reference.parameters()):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), atol=0.01)
