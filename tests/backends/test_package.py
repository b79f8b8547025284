"""What is built on tensors gives on PyTorch and JAX what it gives on NumPy: writes, transforms, layers, training."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

from .installed import require

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 6))
Y = RNG.standard_normal((4, 3))
IMAGE = RNG.standard_normal((2, 4, 5, 5))
SEQUENCE = RNG.standard_normal((2, 3, 4))


@pytest.fixture(params=["torch:cpu", "jax:cpu"])
def device(request):
    require(request.param)
    return request.param


def numpy(tensor):
    return np.asarray(tensor.detach().to_device("numpy"))


def agree(scenario, device, rtol=1e-9):
    """Compare the arrays that `scenario(device)` gives with those on NumPy."""
    found, expected = scenario(device), scenario("numpy")
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected):
        a, b = (numpy(t) if isinstance(t, pb.Tensor) else np.asarray(t) for t in (a, b))
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-11)


# -- writes in place ---------------------------------------------------------------------------------


def _writes(device):
    w = pb.asarray(X, device=device).set_requires_grad(True)
    x = w * 2
    before, view = x.clone(), x[1:3]
    x[0] = 7.0
    x[:, ::2] *= w[:, ::2]
    x[x > 1] -= 0.5
    x[np.asarray([1, 1, 3])] = pb.asarray(X[:3], device=device)
    x += before
    x[-1, ::-1] /= 3
    view += 1
    loss = (x * x).sum() + (view * before[1:3]).sum()
    return x, before, view, pb.backward(loss)[w]


def test_writes_in_place_are_recorded_and_leave_clones_alone(device):
    agree(_writes, device)


def test_a_leaf_is_written_where_nothing_is_recorded(device):
    w = pb.asarray(X, device=device).set_requires_grad(True)
    with pytest.raises(pb.GradientError, match="no_grad"):
        w -= 1.0
    with pb.no_grad():
        w -= 1.0
    np.testing.assert_array_equal(numpy(w), X - 1)


# -- the engine --------------------------------------------------------------------------------------

STRATEGIES = {
    "balanced": pb.BalancedCheckpointing,
    "budget": lambda: pb.BudgetCheckpointing(64),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradients_under_a_strategy_are_those_without_it(device, strategy):
    def gradients():
        pb.random.seed(1)
        w = pb.asarray(X, device=device).set_requires_grad(True)
        hidden = pb.dropout(pb.tanh(w @ pb.asarray(X.T, device=device)), 0.3)
        return pb.backward((pb.softmax(hidden) * hidden).sum())[w]

    plain = gradients()
    with pb.checkpointing(STRATEGIES[strategy]()):
        again = gradients()
    assert numpy(again).tobytes() == numpy(plain).tobytes()


def test_the_guard_names_the_operation_and_the_line(device):
    w = pb.asarray(np.asarray([0.0, 4.0]), device=device).set_requires_grad(True)
    loss = pb.log(w).sum()
    with pytest.raises(pb.NumericalInstabilityError, match=r"`log`.*test_package\.py:\d+"):
        loss.backward()
    loss = pb.sqrt(w).sum()
    with pytest.raises(pb.NumericalInstabilityError, match=r"gradient of `sqrt`.*test_package\.py:\d+"):
        loss.backward()
    with pb.guard("off"):
        pb.sqrt(w).sum().backward()
    assert numpy(w.grad).tolist() == [np.inf, 0.25]


def _scalar(x):
    return pb.sum(pb.sin(x) * x**3)


TRANSFORMS = {
    "grad": lambda x: [pb.grad(_scalar)(x)],
    "value_and_grad": lambda x: list(pb.value_and_grad(_scalar)(x)),
    "vjp": lambda x: [pb.vjp(lambda x: x * x[::-1], x)[1](x)],
    "jvp": lambda x: list(pb.jvp(_scalar, (x,), (x,))),
    "jacrev": lambda x: [pb.jacrev(lambda x: x * x[::-1])(x)],
    "jacfwd": lambda x: [pb.jacfwd(lambda x: x * x[::-1])(x)],
    "hessian": lambda x: [pb.hessian(_scalar)(x)],
    "hvp": lambda x: [pb.hvp(_scalar, (x,), (x,))],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(device, name):
    def scenario(place):
        out = TRANSFORMS[name](pb.asarray(X[0, :3], device=place))
        return [part for entry in out for part in (entry if isinstance(entry, (tuple, list)) else (entry,))]

    agree(scenario, device)


# -- layers and training -----------------------------------------------------------------------------

LAYERS = {
    "Linear": (lambda: nn.Linear(6, 3), X),
    "Conv2d": (lambda: nn.Conv2d(4, 2, 3, padding=1, groups=2), IMAGE),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 3, stride=2), IMAGE),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), IMAGE),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm(6), X),
    "RMSNorm": (lambda: nn.RMSNorm(6), X),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), IMAGE),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), IMAGE),
    "LSTM": (lambda: nn.LSTM(4, 3, batch_first=True), SEQUENCE),
    "GELU": (lambda: nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Dropout(0.5), nn.Softmax(-1)), X),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(device, name):
    make, data = LAYERS[name]

    def scenario(place):
        pb.random.seed(0)
        layer = make().astype(pb.float64).to_device(place)
        x = pb.asarray(data, device=place).set_requires_grad(True)
        out = layer(x)
        out = out[0] if isinstance(out, tuple) else out
        (out * out).sum().backward()
        return [out, x.grad, *(p.grad for p in layer.parameters()), *layer.buffers()]

    agree(scenario, device)


def test_the_trainer(device):
    def scenario(place):
        pb.random.seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).astype(pb.float64).to_device(place)
        optimizer = pb.optim.AdamW(model.parameters(), lr=0.05)
        trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, clip_norm=0.5, accumulate=2, average=0.9)
        history = trainer.fit(pb.data.Batches((X, Y), 2), epochs=2)
        return [history.steps.column("loss"), *model.parameters(), trainer.evaluate([(X, Y)])["loss"]]

    agree(scenario, device)
