"""What calls read at a place and leave there, arguments with a history, and results that are one thing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = pb.tensor([0.3, 0.4])


def both(run: Any) -> None:
    """`run(wrap)` gives the same with functions as they are and compiled."""
    assert run(lambda function: function) == run(pb.compile)


def test_a_state_that_is_written_in_place_and_replaced() -> None:
    def run(wrap: Any) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        cell = SimpleNamespace(h=pb.tensor([0.5, 0.5]))
        clone = cell.h.clone()

        def function(x: Any) -> Any:
            cell.h[...] *= 0.5
            cell.h = cell.h + x
            return cell.h * w

        f = wrap(function)
        a, b, c = f(X), f(X), f(X)
        return pb.backward((a + b + c).sum())[w].tolist(), clone.tolist(), cell.h.tolist()

    both(run)


def test_a_state_with_its_history_says_to_detach_it() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    cell = SimpleNamespace(h=pb.tensor([0.5, 0.5]))

    @pb.compile
    def step(x: Any) -> Any:
        cell.h = pb.tanh(cell.h * w + x)
        return cell.h.sum()

    with pytest.raises(pb.TraceError, match=r"test_carried.py:\d+: step assigns `cell.h`.*detach"):
        step(X)
    assert cell.h.tolist() == [0.5, 0.5]


def test_a_walk_inside_goes_on_to_what_an_argument_was_made_of() -> None:
    def run(wrap: Any) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        gradient = wrap(lambda y: pb.backward((w * y).sum())[w])(w * 2.0)
        wrap(lambda y: (y * y).sum().backward())(w * 1.0)
        return gradient.tolist(), w.grad.tolist()  # type: ignore[union-attr]

    both(run)


def test_an_argument_with_a_history_is_written() -> None:
    def function(x: Any) -> Any:
        copy = x.clone()
        copy += 1
        return (copy * copy).sum()

    def run(wrap: Any) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        loss = wrap(function)(X * w)
        return loss.item(), pb.backward(loss)[w].tolist()

    both(run)


def test_what_is_returned_or_kept_twice_is_one_thing() -> None:
    keeper = SimpleNamespace(last=None)

    @pb.compile
    def function(x: Any) -> Any:
        y = x * 2
        keeper.last = y
        return y, y, y.detach()

    for _ in range(3):
        a, b, c = function(X)
        assert a is b is keeper.last and c is not a
        c[0] = 9.0
        assert a.tolist() == (X * 2).tolist()


def test_what_the_function_makes_is_made_anew() -> None:
    function = pb.compile(lambda x: (x * 2, np.zeros(3), {1, 2}))
    for _ in range(3):
        _, zeros, numbers = function(X)
        assert zeros.tolist() == [0.0, 0.0, 0.0] and numbers == {1, 2}
        zeros += 1
        numbers.add(3)


def test_trees_of_arguments_in_runs_that_let_other_threads_run() -> None:
    large = pb.ones((400, 400))
    function = pb.compile(lambda batch, *, more: (batch["x"] @ batch["y"][0]).sum() + more[1].sum())
    for factor in (1.0, 2.0, 3.0):
        found = function({"x": large * factor, "y": [large]}, more=(0, large))
        assert found.item() == pytest.approx(400.0**3 * factor + 400.0**2, rel=1e-5)
    assert function.traces == 1 and function._latest().fast_path is not None
