"""Parameters that a step does not use: left alone after `zero_grad(set_to_none=True)`, moved by zeros."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")

OPTIMIZERS = [
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05}),
]
USED = [True, False, True, False, False, True, True]
SMALL, LARGE = (3, 2), (130, 1027)  # large ones are updated by native code


def values(shape):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape), rng.standard_normal(shape)]


def theirs(name, options, shape, set_to_none):
    weights = [torch.tensor(value, requires_grad=True) for value in values(shape)]
    optimizer = getattr(torch.optim, name)(weights, **options)
    for used in USED:
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = (weights[0] ** 2).sum()
        (loss + (weights[1] ** 2).sum() if used else loss).backward()
        optimizer.step()
    return [weight.detach().numpy() for weight in weights]


def ours(name, options, shape, set_to_none, device, compiled=False):
    weights = [pb.tensor(value, device=device, requires_grad=True) for value in values(shape)]
    optimizer = getattr(pb.optim, name)(weights, **options)

    def step(used):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = (weights[0] ** 2).sum()
        (loss + (weights[1] ** 2).sum() if used else loss).backward()
        optimizer.step()
        return loss

    run = pb.compile(step) if compiled else step
    for used in USED:
        run(used)
    return [np.asarray(weight.detach().to_device("numpy")) for weight in weights]


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("shape", [SMALL, LARGE])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_parameters_move_as_in_pytorch(name, options, device, shape, set_to_none):
    require(device)
    found = ours(name, options, shape, set_to_none, device)
    for one, other in zip(found, theirs(name, options, shape, set_to_none)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_compiled_step_moves_the_same_parameters(name, options, set_to_none):
    pytest.importorskip("llvmlite")
    found = ours(name, options, SMALL, set_to_none, "numpy", compiled=True)
    for one, other in zip(found, ours(name, options, SMALL, set_to_none, "numpy")):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_model_forgets_its_gradients():
    model = pb.nn.Linear(2, 1)
    model(pb.ones(2)).sum().backward()
    model.zero_grad(set_to_none=True)
    assert model.weight.grad is None and model.bias.grad is None
