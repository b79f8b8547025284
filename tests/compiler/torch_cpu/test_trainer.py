"""`pb.Trainer` compiles the steps of a model on PyTorch's processor by itself, and they are the eager ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NumericalInstabilityError
from pullback.train import Trainer

from ...backends.installed import require
from ..xla.test_trainer import data, summed, trained

DEVICE = "torch:cpu"


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require(DEVICE)


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.1}, {"loss": summed}], ids=["plain", "clipped", "sum"])
def test_a_compiled_run_is_the_eager_one(options: Any) -> None:
    expected, eager, _ = trained(False, device=DEVICE, **options)
    found, model, _ = trained(True, device=DEVICE, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    for (name, ours), theirs in zip(model.state_dict().items(), eager.state_dict().values()):
        assert ours.device == DEVICE
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


def test_parameters_stay_where_they_are() -> None:
    model = pb.nn.Linear(5, 3).to_device(DEVICE)
    trainer = Trainer(model, pb.cross_entropy, pb.optim.AdamW(model.parameters(), 0.01), compile=True)
    trainer.fit(pb.data.Batches(data(), 8), epochs=1)
    places = [parameter._raw.data_ptr() for parameter in model.parameters()]
    trainer.fit(pb.data.Batches(data(), 8), epochs=2)
    assert [parameter._raw.data_ptr() for parameter in model.parameters()] == places


def test_an_alarm_is_the_eager_ones() -> None:
    x, y = data(8)
    x[3, 2] = np.nan
    model = pb.nn.Linear(5, 3).to_device(DEVICE)
    before = model.weight.tolist()
    trainer = Trainer(model, pb.cross_entropy, pb.optim.SGD(model.parameters(), 0.1), compile=True)
    with pytest.raises(NumericalInstabilityError):
        trainer.fit(pb.data.Batches((x, y), 8), epochs=1)
    assert model.weight.tolist() == before
