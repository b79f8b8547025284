"""Audits: a function is traced again now and then, and must give the program that it gave before."""

from __future__ import annotations

import gc
import sys
from typing import Any, Iterator

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.calling.audits import NEVER, Schedule

LARGE = pb.tensor(np.ones((300, 300), np.float32))


@pytest.fixture
def limit() -> Iterator[int]:
    before = sys.getrecursionlimit()
    yield before
    sys.setrecursionlimit(before)


def test_what_nobody_can_see_is_found(limit: int) -> None:
    function = pb.compile(lambda x: (x @ x) * float(sys.getrecursionlimit()))
    function(LARGE), function(LARGE)
    sys.setrecursionlimit(limit + 7)
    with pytest.raises(pb.TraceError, match=r"test_audits.py:\d+: .*traced again, does something else.*`multiply`"):
        for _ in range(20_000):
            function(LARGE)
    assert float(function(LARGE)[0, 0]) == 300.0 * (limit + 7)


def test_a_long_call_is_audited_at_once() -> None:
    function = pb.compile(lambda x: x @ x @ x @ x)
    for _ in range(5):
        function(LARGE)
    assert function.audits == 1


def test_audits_take_a_hundredth_of_the_time() -> None:
    now = [100.0]
    schedule = Schedule(np.array([0, NEVER]), trace_seconds=0.01, clock=lambda: now[0])
    schedule.note(run_seconds=2e-6)
    assert schedule.calls[1] == pytest.approx(500_000, rel=0.01)
    schedule.calls[0] = schedule.calls[1]
    now[0] += 3.0  # the user did other things in between
    assert schedule.is_reached and schedule.is_due()
    schedule.audited(0.02)
    schedule.note(run_seconds=1e-3)
    assert schedule.calls[1] == pytest.approx(1_500_000, rel=0.01) and not schedule.is_reached


def test_calls_that_are_faster_than_the_first_one_was_are_audited_less_often() -> None:
    now = [100.0]
    schedule = Schedule(np.array([0, NEVER]), trace_seconds=0.01, clock=lambda: now[0])
    schedule.note(run_seconds=1e-5)
    assert schedule.calls[1] == pytest.approx(100_000, rel=0.01)
    schedule.calls[0] = schedule.calls[1]
    now[0] += 100_000 * 2e-6
    assert schedule.is_reached and not schedule.is_due()
    schedule.note(run_seconds=1e-5)
    assert schedule.calls[1] == pytest.approx(500_000, rel=0.01)
    schedule.calls[0] = schedule.calls[1]
    now[0] += 400_000 * 2e-6
    assert schedule.is_due()


def test_a_first_call_that_is_slow_by_chance_is_not_believed_for_ever() -> None:
    schedule = Schedule(np.array([0, NEVER]), trace_seconds=0.01, clock=lambda: 100.0)
    schedule.note(run_seconds=0.05)
    assert schedule.calls[1] == 1
    schedule.calls[0] = 1
    assert schedule.is_due()
    schedule.audited(0.01)
    schedule.note(run_seconds=1e-4)
    assert schedule.calls[1] == pytest.approx(10_000, rel=0.01)


def test_a_function_that_carries_state_is_not_called_for_nothing() -> None:
    class Counted:
        def __init__(self) -> None:
            self.last: Any = None

        def step(self, x: Any) -> Any:
            self.last = x @ x
            return self.last.sum()

    counted = Counted()
    step = pb.compile(counted.step)
    for _ in range(4):
        step(LARGE)
    assert step.audits == 0 and counted.last.shape == (300, 300)


def test_garbage_that_waits_to_be_collected_makes_no_other_program() -> None:
    """What a function makes is its own, whether or not a cycle of its leftovers still holds it."""
    is_left = iter([True, *[False] * 9])

    def f(x: pb.Tensor) -> pb.Tensor:
        shift = np.ones(300, np.float32)
        if next(is_left):
            leftovers: list[Any] = [shift]
            leftovers.append(leftovers)
        return x @ x @ x @ (x + shift)

    function = pb.compile(f, ignore=["is_left"])
    gc.disable()
    try:
        results = [function(LARGE).numpy() for _ in range(5)]
    finally:
        gc.enable()
    assert (function.audits, function.traces) == (1, 1)
    assert all((result == results[0]).all() for result in results)
