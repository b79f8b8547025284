"""A hundred steps on a network's loss end where PyTorch's optimizers end."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional
from .problems import MATRICES, matrices_loss, parameters, torch_trained, trained, values

torch = optional("torch")

CASES = {
    "SGD": [
        {"lr": 0.05},
        {"lr": 0.05, "weight_decay": 0.01},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
        {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
        {"lr": 1e-4, "momentum": 0.5, "maximize": True, "weight_decay": 0.01},
    ],
    "Adam": [
        {},
        {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.05},
        {"lr": 0.02, "amsgrad": True, "betas": (0.5, 0.6)},
        {"lr": 1e-3, "maximize": True, "weight_decay": 0.1},
    ],
    "AdamW": [
        {},
        {"lr": 0.02, "weight_decay": 0.3},
        {"lr": 0.02, "weight_decay": 0.3, "amsgrad": True, "betas": (0.5, 0.6), "eps": 1e-2},
        {"lr": 1e-3, "maximize": True},
    ],
    "RMSprop": [
        {},
        {"lr": 1e-3, "alpha": 0.9, "eps": 1e-4, "weight_decay": 0.05},
        {"lr": 1e-3, "momentum": 0.8, "weight_decay": 0.05},
        {"lr": 1e-3, "centered": True, "weight_decay": 0.05, "eps": 1e-3},
        {"lr": 1e-3, "centered": True, "momentum": 0.8, "maximize": True, "eps": 1e-3},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.02, "initial_accumulator_value": 0.3, "eps": 1e-3},
        {"lr": 1e-3, "maximize": True},
    ],
    "NAdam": [
        {},
        {"lr": 0.005, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.05, "momentum_decay": 0.1},
        {"lr": 0.02, "weight_decay": 0.3, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.05},
        {"lr": 0.02, "betas": (0.8, 0.5), "weight_decay": 0.3},
        {"lr": 0.02, "weight_decay": 0.3, "decoupled_weight_decay": True, "maximize": True},
    ],
    "Adafactor": [
        {},
        {"lr": 0.1, "weight_decay": 0.1, "beta2_decay": -0.5, "d": 1.5},
        {"lr": 0.05, "eps": (1e-2, 0.3), "d": 2.0},
        {"lr": 1e-3, "maximize": True},
    ],
}

ALL = [(name, options) for name, cases in CASES.items() for options in cases]


def difference(ours, theirs):
    return max(float(np.max(np.abs(a - b) / (1 + np.abs(b)))) for a, b in zip(ours, theirs))


@pytest.mark.usefixtures("pytorchs_numbers_in_float64")
@pytest.mark.parametrize(("name", "options"), ALL, ids=str)
def test_same_parameters_after_100_steps(name, options):
    initial = values()
    ours, optimizer = trained(lambda p: getattr(pb.optim, name)(p, **options), 100, initial)
    theirs, reference = torch_trained(lambda p: getattr(torch.optim, name)(p, **options), 100, initial)
    assert difference(theirs, initial) > 1e-3
    assert difference(ours, theirs) < 1e-9
    assert optimizer.param_groups[0].keys() <= reference.param_groups[0].keys()


@pytest.mark.parametrize(("name", "options"), ALL, ids=str)
def test_same_parameters_in_float32_with_the_same_gradients(name, options):
    """A network's own gradients would differ more and more: training magnifies rounding errors."""
    initial = values(dtype=np.float32)
    tensors, reference = parameters(initial), [torch.tensor(value, requires_grad=True) for value in initial]
    ours, theirs = (getattr(o, name)(p, **options) for o, p in ((pb.optim, tensors), (torch.optim, reference)))
    for seed in range(100):
        gradients = values(dtype=np.float32, seed=seed)
        ours.step(gradients)
        for parameter, gradient in zip(reference, gradients):
            parameter.grad = torch.tensor(gradient)
        theirs.step()
    assert difference([t.detach().numpy() for t in tensors], [t.detach().numpy() for t in reference]) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_same_defaults_as_pytorch(name):
    ours = getattr(pb.optim, name)([pb.tensor([1.0], requires_grad=True)]).defaults
    theirs = getattr(torch.optim, name)([torch.ones(1, requires_grad=True)]).defaults
    assert ours == {key: theirs[key] for key in ours}


MUON_CASES = [
    {"lr": 0.005},
    {"lr": 0.005, "weight_decay": 0.0, "nesterov": False, "momentum": 0.8, "adjust_lr_fn": "original"},
    {"lr": 0.005, "ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"},
]


@pytest.mark.parametrize("options", MUON_CASES, ids=str)  # rates that stay clear of the minimum, where it is chaotic
def test_muon_is_pytorchs_but_for_its_rounding_to_bfloat16(options, monkeypatch):
    initial = values(MATRICES)
    ours, _ = trained(lambda p: pb.optim.Muon(p, **options), 100, initial, matrices_loss)
    rounded, _ = torch_trained(lambda p: torch.optim.Muon(p, **options), 3, initial, matrices_loss)
    close, _ = trained(lambda p: pb.optim.Muon(p, **options), 3, initial, matrices_loss)
    assert difference(close, rounded) < 2e-2
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    theirs, _ = torch_trained(lambda p: torch.optim.Muon(p, **options), 100, initial, matrices_loss)
    assert difference(theirs, initial) > 1e-3
    assert difference(ours, theirs) < 1e-9
