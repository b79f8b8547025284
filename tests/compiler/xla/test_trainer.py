"""`pb.Trainer` compiles the steps of a model on JAX by itself, and they are the eager ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NumericalInstabilityError
from pullback.train import Trainer

from ...backends.installed import require

DEVICE = "jax:cpu"


@pytest.fixture(autouse=True)
def needs_jax() -> None:
    require(DEVICE)


def data(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((count, 5)).astype(np.float32), generator.integers(0, 3, count)


def trained(compile: bool, loss: Any = pb.cross_entropy, device: str = DEVICE, **options: Any) -> Any:
    pb.random.seed(1)
    layers = [
        pb.nn.Linear(5, 8, bias=False),
        pb.nn.BatchNorm1d(8),
        pb.nn.Tanh(),
        pb.nn.Dropout(0.2),
        pb.nn.Linear(8, 3),
    ]
    model = pb.nn.Sequential(*layers).to_device(device)
    optimizer = pb.optim.AdamW(model.parameters(), 0.01)
    trainer = Trainer(model, loss, optimizer, compile=compile, **options)
    history = trainer.fit(pb.data.Batches(data(), 8), epochs=3)
    assert trainer.why_not_compiled is None
    return [[record["loss"], record["gradient_norm"]] for record in history.steps], model, trainer


def summed(output: Any, target: Any) -> Any:
    """A sum, and its weight."""
    return pb.cross_entropy(output, target, reduction="sum"), pb.ones_like(output[:, 0]).sum()


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.1}, {"loss": summed}], ids=["plain", "clipped", "sum"])
def test_a_compiled_run_is_the_eager_one(options: Any) -> None:
    expected, eager, _ = trained(False, **options)
    found, model, _ = trained(True, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    for (name, ours), theirs in zip(model.state_dict().items(), eager.state_dict().values()):
        assert ours.device == DEVICE
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


def test_an_alarm_is_the_eager_ones() -> None:
    x, y = data(8)
    x[3, 2] = np.nan
    model = pb.nn.Linear(5, 3).to_device(DEVICE)
    before = model.weight.detach().numpy().copy()
    trainer = Trainer(model, pb.cross_entropy, pb.optim.SGD(model.parameters(), 0.1), compile=True)
    with pytest.raises(NumericalInstabilityError):
        trainer.fit(pb.data.Batches((x, y), 8), epochs=1)
    np.testing.assert_array_equal(model.weight.detach().numpy(), before)
