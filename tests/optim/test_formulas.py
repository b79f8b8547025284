"""Lion and LAMB, which PyTorch does not have, against their papers' formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from .problems import data, network_loss, trained, values


def losses_gradients(parameters):
    tensors = [pb.tensor(value, requires_grad=True) for value in parameters]
    grads = pb.backward(network_loss(pb, tensors, *map(pb.asarray, data())))
    return [grads[t].numpy() for t in tensors]


def lion(parameters, steps, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    averages = [np.zeros_like(w) for w in parameters]
    for _ in range(steps):
        for i, g in enumerate(losses_gradients(parameters)):
            g = -g if maximize else g
            direction = np.sign(betas[0] * averages[i] + (1 - betas[0]) * g)
            parameters[i] = parameters[i] - lr * (direction + weight_decay * parameters[i])
            averages[i] = betas[1] * averages[i] + (1 - betas[1]) * g
    return parameters


def lamb(parameters, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
    first, second = ([np.zeros_like(w) for w in parameters] for _ in range(2))
    for step in range(1, steps + 1):
        for i, g in enumerate(losses_gradients(parameters)):
            first[i] = betas[0] * first[i] + (1 - betas[0]) * g
            second[i] = betas[1] * second[i] + (1 - betas[1]) * g**2
            mean, square = first[i] / (1 - betas[0] ** step), second[i] / (1 - betas[1] ** step)
            direction = mean / (np.sqrt(square) + eps) + weight_decay * parameters[i]
            size, length = np.linalg.norm(parameters[i]), np.linalg.norm(direction)
            trust = size / length if size > 0 and length > 0 else 1.0
            parameters[i] = parameters[i] - lr * trust * direction
    return parameters


CASES = [
    ("Lion", lion, {"lr": 1e-3}),
    ("Lion", lion, {"lr": 1e-3, "betas": (0.7, 0.9), "weight_decay": 0.5}),
    ("Lion", lion, {"lr": 1e-4, "maximize": True, "weight_decay": 0.5}),
    ("LAMB", lamb, {}),
    ("LAMB", lamb, {"lr": 0.01, "betas": (0.7, 0.9), "eps": 1e-2, "weight_decay": 0.3}),
]


def named(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("name", "reference", "options"), CASES, ids=named)
def test_same_parameters_after_100_steps(name, reference, options):
    ours, _ = trained(lambda p: getattr(pb.optim, name)(p, **options), 100, values())
    expected = reference(values(), 100, **options)
    for a, b, start in zip(ours, expected, values()):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
        assert np.all(a != start)


def test_lamb_takes_zero_parameters_as_they_are():
    w = pb.tensor(np.zeros(3), requires_grad=True)
    pb.optim.LAMB([w], lr=0.5, eps=0.0).step([np.array([1.0, -2.0, 3.0])])
    np.testing.assert_allclose(w.detach().numpy(), [-0.5, 0.5, -0.5])


def test_lamb_stays_where_there_is_no_gradient():
    w = pb.tensor(np.ones(3), requires_grad=True)
    pb.optim.LAMB([w], lr=0.5).step([np.zeros(3)])
    assert w.tolist() == [1.0, 1.0, 1.0]
