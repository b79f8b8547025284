"""How a case is judged, on wrappers that are wrong in known ways."""

from __future__ import annotations

import random
from typing import Any, Iterator

import pytest

import pullback as pb

from . import cases  # noqa: F401  (registers them)
from .harness import CASES, Case, X, can_fail, case, changes, judge, why_not_deterministic
from .snapshot import snapshot


def counted(compiled: Any) -> Iterator[Any]:
    calls = [0]

    def run(x: Any) -> Any:
        calls[0] += 1
        return x * calls[0]

    f = compiled(run)
    for _ in range(2):
        yield f(X)
        yield calls


COUNTED = Case("counted", counted, counted, refused=True, steady=False)


def first_result(function: Any) -> Any:
    results: list[Any] = []

    def run(*args: Any) -> Any:
        results.append(results[0] if results else function(*args))
        return results[0]

    return run


def raising(error: Exception, call_first: bool = False) -> Any:
    def wrapper(function: Any) -> Any:
        def run(*args: Any) -> Any:
            if call_first:
                function(*args)
            raise error

        return run

    return wrapper


@pytest.mark.parametrize(
    ("wrapper", "outcome"),
    [
        (lambda function: function, "equal"),
        (first_result, "stale"),
        (raising(pb.TraceError("test_harness.py:20: it counts")), "refused"),
        (raising(pb.TraceError("it counts")), "refused without a line"),
        (raising(pb.TraceError("compiled.py:20: it counts")), "refused without a line"),
        (raising(pb.TraceError("test_harness.py:20: it counts"), call_first=True), "refused too late"),
        (raising(RuntimeError("no")), "error"),
    ],
)
def test_outcomes(wrapper: Any, outcome: str) -> None:
    assert judge(COUNTED, wrapper).outcome == outcome


def test_an_error_of_the_function_itself_is_no_difference() -> None:
    def failing(compiled: Any) -> Iterator[Any]:
        yield compiled(lambda x: x * {}["missing"])(X)

    assert judge(Case("failing", failing, failing, refused=False, steady=True), first_result).outcome == "equal"


def test_a_case_that_draws_from_elsewhere_is_not_deterministic() -> None:
    numbers = iter(range(100))

    def drawing(compiled: Any) -> Iterator[Any]:
        yield compiled(lambda x: x * next(numbers))(X)

    assert why_not_deterministic(Case("drawing", drawing, drawing, refused=False, steady=False)) is not None


def test_a_case_in_which_nothing_changes_cannot_fail() -> None:
    def calm(compiled: Any) -> Iterator[Any]:
        f = compiled(lambda x: x * 2)
        yield f(X)
        yield f(X)

    assert not can_fail(Case("calm", calm, calm, refused=False, steady=True))
    assert can_fail(COUNTED)


def test_running_a_case_leaves_random_states_alone() -> None:
    before = random.getstate(), repr(pb.random.get_state())
    for name in ("random_numbers_of_python", "seed_set_between_calls", "default_dtype_changed"):
        judge(CASES[name], lambda function: function)
    assert (random.getstate(), repr(pb.random.get_state())) == before and pb.default_dtype() == pb.float32


def test_cases_have_names_of_their_own() -> None:
    with pytest.raises(AssertionError, match="two cases are called"):
        changes(next(iter(CASES)), list, lambda c: lambda x: x)
    with pytest.raises(AssertionError, match="two cases are called"):
        case(name=next(iter(CASES)))(counted)


class Cell:
    __slots__ = ("h",)


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [1, [2]], lambda c: c[1].append(3)),
        (lambda: {"a": 1, "b": 2}, lambda c: c.update(a=c.pop("a"))),
        (lambda: {1, 2}, lambda c: c.add(3)),
        (lambda: iter([1, 2]), next),
        (lambda: (n for n in range(3)), next),
        (lambda: random.Random(0), lambda c: c.random()),
        (lambda: pb.tensor([1.0, 2.0]), lambda t: t.__setitem__(0, 5.0)),
        (lambda: pb.tensor([1.0], requires_grad=True), lambda t: setattr(t, "grad", pb.ones((1,)))),
        (lambda: pb.nn.Linear(2, 2), lambda m: m.eval()),
        (lambda: type("Counted", (), {"__module__": __name__}), lambda c: setattr(c, "n", 1)),
        (lambda: lambda: None, lambda f: vars(f).update(n=1)),
        (Cell, lambda c: setattr(c, "h", 1)),
    ],
)
def test_a_snapshot_shows_what_changed(make: Any, change: Any) -> None:
    thing = make()
    before = snapshot({"thing": thing}, (), "test_harness.py")
    assert snapshot({"thing": thing}, (), "test_harness.py") == before
    change(thing)
    assert snapshot({"thing": thing}, (), "test_harness.py") != before
