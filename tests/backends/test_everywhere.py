r"""What is more than one operation gives on every device what it gives on NumPy: a representative part of the suite.

On other devices than processors', on a machine that has them:

    JAX_PLATFORMS= JAX_DEFAULT_MATMUL_PRECISION=highest PULLBACK_TEST_DEVICES="torch:cuda:0 jax:gpu:0 cupy:0" \
        pytest tests/backends/test_everywhere.py
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import pullback as pb
from pullback.train import Trainer

from .installed import require

DEVICES = os.environ.get("PULLBACK_TEST_DEVICES", "torch:cpu jax:cpu").split()
everywhere = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def _needs_library(request):
    require(request.getfixturevalue("device"))


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def model(device):
    pb.random.seed(2)
    layers = [
        pb.nn.Conv2d(2, 4, 3, padding=1, bias=False),
        pb.nn.BatchNorm2d(4),
        pb.nn.ReLU(),
        pb.nn.MaxPool2d(2),
        pb.nn.Flatten(),
        pb.nn.Linear(4 * 3 * 3, 6),
        pb.nn.LayerNorm(6),
        pb.nn.GELU(),
        pb.nn.Dropout(0.3),
        pb.nn.Linear(6, 3),
    ]
    made = pb.nn.Sequential(*layers)
    for parameter in made.parameters():
        assert parameter.dtype == pb.float32
    return made.to_device(device)


def samples(device, count=5):
    x = array(count, 2, 6, 6).astype(np.float32)
    return pb.asarray(x, device=device), pb.asarray(np.arange(count) % 3, device=device)


def gradients(network, device):
    x, y = samples(device)
    pb.random.seed(4)
    loss = pb.cross_entropy(network(x), y)
    found = pb.backward(loss)
    return [loss.detach().numpy(), *(found[p].numpy() for p in network.parameters())]


def assert_same(found, expected, tolerance=1e-9):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@everywhere
def test_networks(device):
    assert_same(gradients(model(device), device), gradients(model("numpy"), "numpy"), 1e-4)


@everywhere
@pytest.mark.parametrize("strategy", [pb.BalancedCheckpointing, lambda: pb.BudgetCheckpointing(2000)])
def test_checkpointing(device, strategy):
    expected = gradients(model(device), device)
    with pb.checkpointing(strategy()):
        assert_same(gradients(model(device), device), expected, 1e-6)


@everywhere
@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adafactor"])
def test_optimizers(device, name):
    def trained(device):
        network = model(device)
        optimizer = getattr(pb.optim, name)(network.parameters(), lr=0.05)
        x, y = samples(device)
        for step in range(3):
            pb.random.seed(step)
            optimizer.step(pb.backward(pb.cross_entropy(network(x), y)))
        return [p.detach().numpy() for p in network.parameters()]

    assert_same(trained(device), trained("numpy"), 2e-3)


@everywhere
def test_the_trainer(device):
    def run(device):
        network = model(device)
        optimizer = pb.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
        trainer = Trainer(network, pb.cross_entropy, optimizer, compile=False)
        x, y = (tensor.numpy() for tensor in samples("numpy", 8))
        pb.random.seed(5)
        history = trainer.fit(pb.data.Batches((x, y), 4), epochs=2)
        return [np.array([record["loss"] for record in history.steps])]

    assert_same(run(device), run("numpy"), 1e-3)


@everywhere
def test_transforms(device):
    def f(x, w):
        return pb.sum(pb.tanh(x @ w) ** 2)

    def results(device):
        x, w, v = (pb.asarray(array(*s, seed=i), device=device) for i, s in enumerate(((3, 4), (4, 2), (4, 2))))
        yield pb.grad(f, argnums=1)(x, w)
        yield pb.jvp(lambda w: f(x, w), (w,), (v,))[1]
        yield pb.hvp(lambda w: f(x, w), (w,), (v,))
        yield pb.hessian(lambda w: f(x, w))(w)
        yield pb.jacrev(lambda w: pb.tanh(x @ w))(w)

    def numbers(device):
        found = results(device)
        return [pb.tree.leaves(one)[-1].numpy() for one in found]

    assert_same(numbers(device), numbers("numpy"))


@everywhere
def test_writes_in_place(device):
    def results(device):
        x = pb.asarray(array(3, 4), device=device).set_requires_grad(True)
        y = x.clone()
        y[0] = 2 * y[1]
        y[:, 1] *= 3
        y += pb.ones(4, dtype=y.dtype, device=device)
        y[pb.asarray(np.array([2, 0]), device=device), 0] = y[0, :2]
        y[y > 1] = 0.5
        total = pb.sum(y * y)
        return [total.detach().numpy(), pb.backward(total)[x].numpy(), y.detach().numpy()]

    assert_same(results(device), results("numpy"))


@everywhere
def test_a_graph_does_not_see_a_later_write(device):
    x = pb.asarray(array(4), device=device).set_requires_grad(True)
    y = x.clone()
    loss = pb.sum(y * y)
    y[0] = 100.0
    np.testing.assert_allclose(pb.backward(loss)[x].numpy(), 2 * array(4))


@everywhere
def test_the_guard_names_what_is_not_finite(device):
    x = pb.asarray(np.array([1.0, 0.0]), device=device).set_requires_grad(True)
    with pytest.raises(pb.NumericalInstabilityError, match=r"log|trace"):
        pb.backward(pb.sum(pb.log(x)))[x].numpy()  # on a device it is looked at when something is read
    with pb.guard("off"):
        assert np.isinf(pb.backward(pb.sum(pb.log(x)))[x].numpy()[1])
