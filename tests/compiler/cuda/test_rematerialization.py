"""Checkpointing strategies and accumulation on the CUDA target, in Triton's interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import targets

from . import interpreted  # noqa: F401  (the interpreter's own functions)

DEVICE = "torch:cpu"
NUMBERS = np.random.default_rng(0)
WEIGHTS = NUMBERS.standard_normal((3, 8, 8)).astype(np.float32) / 3
X = NUMBERS.standard_normal((6, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch):
    monkeypatch.setitem(targets._MODULES, "torch:cpu", "cuda.target")
    with np.errstate(all="ignore"):  # NumPy's, which the interpreter computes with
        yield


def outcome(strategy, wrap):
    """Gradients of two calls, taken inside and outside, and what the steps have in memory."""
    weights = [pb.tensor(w, device=DEVICE, requires_grad=True) for w in WEIGHTS]
    pb.random.seed(0)
    block = wrap(lambda h, w: h + pb.dropout(pb.tanh(h @ w), 0.3) * pb.sigmoid(h))

    def loss_of(x):
        h = x
        for w in weights:
            h = block(h, w)
        return (h * h).mean()

    def gradients(x):
        found = pb.backward(loss_of(x))
        return [found[w] for w in weights]

    inside, outside = pb.compile(gradients), pb.compile(loss_of)
    x = pb.tensor(X, device=DEVICE)
    with pb.checkpointing(strategy):
        found = [*inside(x), *inside(x)]
        loss = outside(x)
        outside(x)
    loss.backward()
    arrays = [g.to_device("numpy").numpy() for g in (*found, *[w.grad for w in weights])]
    return arrays, inside.memory, outside.memory


def test_strategies_have_the_same_numbers_in_less_memory():
    plain, memory, memory_outside = outcome(pb.NoCheckpointing(), lambda f: f)
    for strategy, wrap in (
        (pb.BalancedCheckpointing(), lambda f: f),
        (pb.BudgetCheckpointing(memory["saved"] // 2), lambda f: f),
        (pb.NoCheckpointing(), pb.checkpoint),
    ):
        mine, used, used_outside = outcome(strategy, wrap)
        for x, y in zip(mine, plain):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        assert used["saved"] < memory["saved"]
        assert used["arena"] <= memory["arena"]
        assert used_outside["outputs"] < memory_outside["outputs"]


def test_steps_of_several_batches():
    results = []
    for compile in (False, True):
        pb.random.seed(0)
        model = pb.nn.Sequential(pb.nn.Linear(8, 8), pb.nn.Tanh(), pb.nn.Linear(8, 8))
        model.to_device(DEVICE)
        optimizer = pb.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, accumulate=2, clip_norm=0.5, compile=compile)
        trainer.fit([(X[:3], X[3:]), (X[3:], X[:3]), (X[:3], X[:3])], epochs=2)
        assert trainer.why_not_compiled is None
        results.append([p.detach().to_device("numpy").numpy() for p in model.parameters()])
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
