"""Children made by fork beside threads that train, walk, draw numbers and compile: none hangs, all are right."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb

from .test_threads import child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


class Network:
    """A regression whose steps call BLAS, on the thread that makes it."""

    def __init__(self, wrap: Callable[..., Any]) -> None:
        generator = pb.random.Generator(3)
        self.x, self.y = generator.normal((64, 96)), generator.normal((64, 8))
        self.w = generator.normal((96, 8)).set_requires_grad(True)
        self.optimizer = pb.optim.Adam([self.w], lr=1e-3)
        self.step = wrap(self._step)

    def _step(self) -> pb.Tensor:
        self.optimizer.zero_grad()
        loss = pb.mean((pb.tanh(self.x @ self.w) - self.y) ** 2)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, count: int) -> list[float]:
        return [self.step().item() for _ in range(count)]


def compiled_anew() -> None:
    number = float(np.random.default_rng().random())
    found = pb.compile(lambda x: pb.sin(x) * number)(pb.ones((5,), dtype=pb.float64))
    np.testing.assert_allclose(found.numpy(), np.full(5, np.sin(1.0) * number))


def budgeted(strategy: pb.BudgetCheckpointing) -> None:
    w = pb.ones((16, 16)).set_requires_grad(True)
    with pb.checkpointing(strategy):
        x = w
        for _ in range(4):
            x = pb.tanh(x @ w)
    x.sum().backward()


@pytest.fixture
def busy(request: Any) -> Iterator[Callable[[], None]]:
    """Eight threads at work; what is given is work that a child does with the same things."""
    compiled, eager = Network(pb.compile), Network(lambda function: function)
    expected = Network(pb.compile).losses(2)
    strategy = pb.BudgetCheckpointing(8192)
    generator = pb.random.Generator(1)
    works: list[Callable[[], object]] = [
        lambda: compiled.losses(1), lambda: eager.losses(1), lambda: Network(pb.compile).losses(2), compiled_anew,
        lambda: budgeted(strategy), lambda: generator.uniform((3,)), lambda: compiled.losses(1),
        lambda: pb.random.normal((2,)),
    ]  # fmt: skip
    for work in works:
        work()  # imports what it needs: not while others fork
    stop, errors = threading.Event(), []

    def keep(work: Callable[[], object]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # shown in the end
            errors.append(error)

    threads = [threading.Thread(target=keep, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()

    def inherited() -> None:
        for work in works:
            work()
        assert Network(pb.compile).losses(2) == expected

    yield inherited
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)


def test_forks_beside_eight_busy_threads(busy: Callable[[], None]) -> None:
    assert [child(busy) for _ in range(10)] == [0] * 10


@pytest.mark.slow
def test_500_forks_beside_eight_busy_threads(busy: Callable[[], None]) -> None:
    assert [child(busy) for _ in range(500)] == [0] * 500
