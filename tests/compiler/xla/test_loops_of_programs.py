"""Long loops on JAX: one loop of XLA's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.iteration import iterations
from pullback.functions import traced_control_flow

from ...backends.installed import optional, require
from ...control_flow.test_compiled import differentiated
from ...control_flow.test_rolled import cell, program_of, random

DEVICE = "jax:cpu"
jax = optional("jax")


@pytest.fixture(autouse=True)
def needs_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    require(DEVICE)
    monkeypatch.setattr(traced_control_flow, "LONGEST_UNROLLED", 4)


def tensor(*shape: int) -> pb.Tensor:
    return pb.tensor(random(*shape).astype(np.float32), device=DEVICE)


@pytest.mark.parametrize("reverse", [False, True])
def test_values_and_derivatives(reverse: bool) -> None:
    def f(u: pb.Tensor, start: pb.Tensor, xs: pb.Tensor) -> pb.Tensor:
        def step(carry: Any, x: Any) -> Any:
            h, y = cell(u)(carry[0], x)
            return (h, carry[1] + 1), y * carry[1]

        last, states = pb.scan(step, (start, 0), xs, reverse=reverse)
        return (states * states).sum() * 0.01 + last[0].sum() * last[1]

    arguments = tensor(3, 3), tensor(2, 3), tensor(9, 2, 3)
    eager = differentiated(f)
    compiled = pb.compile(eager)
    for _ in range(2):
        for one, other in zip(pb.tree.leaves(compiled(*arguments)), pb.tree.leaves(eager(*arguments)), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)
    assert len(iterations(program_of(compiled))) == 4


def test_while_loop_stops() -> None:
    def f(x: pb.Tensor) -> pb.Tensor:
        return pb.while_loop(lambda x: x.sum() < 10, lambda x: x * 1.5, x, max_steps=12)

    compiled = pb.compile(pb.grad(lambda x: f(x).sum()))
    for scale in (0.1, 1.0, 40.0):
        x = pb.tensor(np.full(2, scale, np.float32), device=DEVICE)
        np.testing.assert_allclose(compiled(x).numpy(), pb.grad(lambda x: f(x).sum())(x).numpy(), rtol=1e-5)
    assert len(iterations(program_of(compiled))) == 2
    assert any(use.times >= 12 for use in compiled.kernels)
