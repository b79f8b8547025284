"""What keeps changing at its place: numbers, arrays and tensors become inputs, anything else is an error."""

from __future__ import annotations

import threading
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = pb.tensor([1.0, 2.0])


def agree(function: Any, change: Any, calls: int = 12) -> Any:
    """Call `function` compiled and as it is, after each change."""
    compiled = pb.compile(function)
    for number in range(calls):
        change(number)
        ours, theirs = compiled(X), function(X)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    return compiled


class Holder:
    factor = 1.0

    def __init__(self) -> None:
        self.scale, self.steps = 2.0, 1

    def run(self, x: Any) -> Any:
        return x * self.scale / (1 + self.steps) - self.factor**2


def test_numbers_of_an_object_of_its_class_and_outside() -> None:
    holder, shift = Holder(), 0.0

    def function(x: Any) -> Any:
        return holder.run(x) + shift

    def change(number: int) -> None:
        nonlocal shift
        holder.scale, holder.steps, shift = 0.5 * number, number, -float(number)
        Holder.factor = 1.0 + number

    compiled = agree(function, change)
    assert compiled.traces == 4
    assert "factor" not in vars(holder) and type(holder.scale) is float and type(Holder.factor) is float


def test_numbers_among_the_arguments() -> None:
    compiled = pb.compile(lambda x, rate, *, count=1: x * rate - count)
    for number in range(10):
        assert compiled(X, 0.5 * number, count=number).tolist() == (X * (0.5 * number) - number).tolist()
    assert compiled.traces == 4


def test_integers_stay_integers() -> None:
    held = SimpleNamespace(n=1)
    whole = pb.tensor([1, 2])
    compiled = pb.compile(lambda: whole * held.n + held.n // 2)
    for number in range(8):
        held.n = number
        assert compiled().dtype == whole.dtype and compiled().tolist() == (whole * number + number // 2).tolist()


@pytest.mark.parametrize(
    "use",
    [
        lambda x, n: x * 2 if n > 100 else x,
        lambda x, n: sum([x] * n) + x,
        lambda x, n: x * len(range(n)),
        lambda x, n: x * float(f"{n}"),
        lambda x, n: x * {7: 1.0}.get(n, 2.0),
        lambda x, n: x * (3.0 if isinstance(n, int) else 4.0),
    ],
)
def test_a_number_whose_value_is_needed_is_never_stale(use: Any) -> None:
    held = SimpleNamespace(n=0)
    compiled = pb.compile(lambda x: use(x, held.n))
    with pytest.raises(pb.TraceError, match=r"test_keeps_changing.py:\d+: .*`held.n`, which keeps changing"):
        for number in range(1, 20):
            held.n = number
            assert compiled(X).tolist() == use(X, number).tolist()


def test_other_threads_find_the_number() -> None:
    held, stop, found = SimpleNamespace(n=1.0), threading.Event(), set()

    def look() -> None:
        while not stop.is_set():
            found.add(float(X.sum().item() * held.n) >= 0.0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        agree(lambda x: x * held.n, lambda number: setattr(held, "n", float(number)))
    finally:
        stop.set()
        thread.join()
    assert found == {True}


def test_an_array_that_operations_read() -> None:
    array = np.zeros(2, np.float32)
    compiled = agree(lambda x: x * array + pb.asarray(array), lambda number: array.fill(number))
    assert compiled.traces == 4


def test_an_array_whose_values_are_read_is_never_stale() -> None:
    array = np.zeros(2, np.float32)
    compiled = pb.compile(lambda x: x * array if array[0] < 100 else -x)
    with pytest.raises(pb.TraceError, match="`array`, which keeps changing"):
        for number in range(20):
            array[:] = 30 * number
            assert compiled(X).tolist() == (X * array if array[0] < 100 else -X).tolist()


def test_a_tensor_that_is_replaced_before_each_call() -> None:
    held = SimpleNamespace(batch=None)
    compiled = agree(lambda x: x + held.batch.sum(), lambda number: setattr(held, "batch", pb.ones(3) * number))
    assert compiled.traces == 4
    held.batch = pb.ones((2, 2))
    assert compiled(X).tolist() == [5.0, 6.0]


def test_a_list_that_keeps_growing_is_an_error() -> None:
    history: list[float] = []
    compiled = pb.compile(lambda x: x * len(history))
    with pytest.raises(pb.TraceError, match=r"`history`, which keeps changing .* within 16 calls.*ignore="):
        for _ in range(16):
            history.append(1.0)
            assert compiled(X).tolist() == (X * len(history)).tolist()


def test_programs_are_bounded() -> None:
    compiled = pb.compile(lambda x: x * 2)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # it says that there are many
        for size in range(1, 80):
            compiled(pb.ones(size))
    assert len(compiled._programs) == 64
    traces = compiled.traces
    compiled(pb.ones(79)), compiled(pb.ones(30))
    assert compiled.traces == traces
    compiled(pb.ones(1))
    assert compiled.traces == traces + 1
