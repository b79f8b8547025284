"""Memory that is planned without compiling is what a compiled program then needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


def network(width: int = 32) -> Any:
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(width, 4 * width), pb.nn.GELU(), pb.nn.Linear(4 * width, 3))
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        loss = pb.cross_entropy(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    return model, pb.compile(step)


@pytest.mark.parametrize("strategy", [pb.NoCheckpointing(), pb.BalancedCheckpointing(), pb.BudgetCheckpointing(20_000)])
def test_a_plan_is_what_a_call_then_needs(strategy: Any) -> None:
    model, step = network()
    x, y = np.ones((64, 32), np.float32), np.zeros(64, np.int64)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    with pb.checkpointing(strategy):
        plan = step.plan(x, y)
        assert step.traces == 0
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name])
        step(x, y)
    scratch = step.memory.pop("arena") - plan.pop("arena")
    assert step.memory == plan
    assert 0 <= scratch < 1 << 20  # room of kernels, which only compiling knows


def test_a_plan_for_a_gpu_needs_no_gpu() -> None:
    _, step = network()
    x, y = np.ones((64, 32), np.float32), np.zeros(64, np.int64)
    plan = step.plan_on("torch:cuda:0", x, y)
    assert plan["inputs"] == step.plan(x, y)["inputs"] and plan["arena"] > 0
