"""Gradients of arrays that are read in parts: added up in one array of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import guard as guard_module
from tests.backends.installed import optional, require

torch = optional("torch")
DEVICES = ["numpy", "torch:cpu", "jax:cpu"]
C = np.random.default_rng(0).standard_normal((5, 3, 4)).astype(np.float32)


def weighted(parts):
    return sum((part * pb.asarray(c, device=part.device)).sum() for part, c in parts)


USES = {
    "parts alone": lambda x: weighted([(x[i], C[i]) for i in range(5)]),
    "parts that overlap": lambda x: weighted([(x[:3], C[:3]), (x[1:], C[1:]), (x[::-1], C), (x[2, 1], C[0, 0])]),
    "the whole first": lambda x: weighted([(x[0], C[0]), (x[1], C[1]), (x, C)]),
    "the whole last": lambda x: weighted([(x, C), (x[0], C[0]), (x[1], C[1])]),
    "positions": lambda x: weighted([(x[np.array([0, 0, 2])], C[:3]), (x[1], C[1]), (x[np.array([1, 1])], C[3:])]),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_gradients_of_parts_are_added_up(use, device):
    require(device)
    value = np.random.default_rng(1).standard_normal(C.shape).astype(np.float32)
    w = pb.asarray(value, device=device).set_requires_grad(True)
    step = np.float32(2**-7)
    direction = np.random.default_rng(2).standard_normal(C.shape).astype(np.float32)
    found = pb.backward(use(w))[w].to_device("numpy").numpy()
    ends = [use(pb.asarray(value + sign * step * direction)).item() for sign in (1, -1)]  # linear: exact differences
    np.testing.assert_allclose((found * direction).sum(), (ends[0] - ends[1]) / (2 * step), rtol=2e-4)
    between = w * 1.0
    grads = pb.backward(use(between), wrt=[between, w])
    np.testing.assert_array_equal(grads[between].to_device("numpy").numpy(), found)
    np.testing.assert_array_equal(grads[w].to_device("numpy").numpy(), found)
    if device != "jax:cpu":
        grads[between].data_mut()[...] = 0
        np.testing.assert_array_equal(grads[w].to_device("numpy").numpy(), found)  # they share no memory


def test_the_parts_of_an_array_make_one_array_of_zeros():
    require("torch:cpu")
    from torch.utils._python_dispatch import TorchDispatchMode

    made = []

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    w = pb.ones((5, 3, 4), device="torch:cpu").set_requires_grad(True)
    loss = sum((w[i] * float(i)).sum() for i in range(5))
    with Counting():
        gradient = pb.backward(loss)[w]
    assert made.count("zeros") == 1
    np.testing.assert_array_equal(gradient.to_device("numpy").numpy()[:, 0, 0], np.arange(5))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_a_gradient_that_a_window_has_found_finite_is_not_looked_at_again(monkeypatch, device):
    require(device)
    monkeypatch.setattr(guard_module, "WINDOW_BYTES", 64)
    seen = []
    all_finite = guard_module.all_finite

    def noted(cotangents):
        found = list(cotangents)
        seen.extend(tuple(raw.shape) for raw in found)
        return all_finite(found)

    monkeypatch.setattr(guard_module, "all_finite", noted)
    weights = [pb.full((3, 3), 0.5, device=device).set_requires_grad(True) for _ in range(6)]
    x = pb.ones((2, 3), device=device)
    for w in weights:
        x = pb.tanh(x @ w)
    pb.backward(x.sum())
    assert len(seen) > seen.count((3, 3)) == len(weights)


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
def test_what_is_added_to_a_gradient_after_that_is_looked_at(monkeypatch, device):
    require(device)
    monkeypatch.setattr(guard_module, "WINDOW_BYTES", 64)
    w = pb.full((3, 3), 0.5, device=device).set_requires_grad(True)
    first = pb.sqrt(w - 0.5)  # walked last: its factor is infinite
    x = pb.ones((3, 3), device=device)
    for _ in range(4):
        x = pb.tanh(x @ w)
    with pytest.raises(pb.NumericalInstabilityError, match="sqrt"):
        pb.backward((x + first).sum())
