"""Who holds an array is read off its count of references: a sole holder is recognised however the interpreter got to
the question, a second one always shows, and where counts say nothing every array counts as shared."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.backends.numpy import ownership
from pullback.compiler.guards.native import object_layout

exactly = pytest.mark.skipif(not ownership.counts_are_exact(), reason="counts of references say nothing here")
is_exclusive = pb.backends.NUMPY.is_exclusive

#: More than it takes until an instruction is replaced by a faster one.
OFTEN = 200


class Slots:
    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


class Attributes:
    def __init__(self, array: Any) -> None:
        self.array = array


class Inherited(Slots):
    """Has a dictionary beside the slot."""


def tensor_holding(array: Any) -> Any:
    tensor = pb.tensor([0.0])
    tensor._raw = array
    return tensor


#: The attribute that holds the array, and what makes a holder.
HOLDERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "slot": ("array", Slots),
    "attribute": ("array", Attributes),
    "slot of a base class": ("array", Inherited),
    "namespace": ("array", lambda array: SimpleNamespace(array=array)),
    "tensor": ("_raw", tensor_holding),
}
each_holder = pytest.mark.parametrize(("attribute", "make"), HOLDERS.values(), ids=list(HOLDERS))


# -- where the question is asked from. Each gives every answer it got. -----------------------------


def from_a_loop(holder: Any, attribute: str) -> set[bool]:
    answers = set()
    for _ in range(OFTEN):
        answers.add(is_exclusive(holder, attribute))
    return answers


def from_a_comprehension(holder: Any, attribute: str) -> set[bool]:
    return {is_exclusive(each, attribute) for each in [holder] * OFTEN}


def from_a_closure(holder: Any, attribute: str) -> set[bool]:
    def ask() -> bool:
        return is_exclusive(holder, attribute)

    return {ask() for _ in range(OFTEN)}


def from_a_generator(holder: Any, attribute: str) -> set[bool]:
    def ask() -> Iterator[bool]:
        for _ in range(OFTEN):
            yield is_exclusive(holder, attribute)

    return set(ask())


def from_a_method(holder: Any, attribute: str) -> set[bool]:
    class Asking:
        def __init__(self) -> None:
            self.holder = holder

        def ask(self) -> bool:
            return is_exclusive(self.holder, attribute)

    asking = Asking()
    return {asking.ask() for _ in range(OFTEN)}


def with_unpacked_arguments(holder: Any, attribute: str) -> set[bool]:
    arguments = [holder, attribute]
    return {is_exclusive(*arguments) for _ in range(OFTEN)}


def from_native_code(holder: Any, attribute: str) -> set[bool]:
    return set(map(is_exclusive, [holder] * OFTEN, [attribute] * OFTEN))


def from_a_deep_call(holder: Any, attribute: str) -> set[bool]:
    def deeper(passed: Any, depth: int) -> bool:
        return is_exclusive(passed, attribute) if depth == 0 else deeper(passed, depth - 1)

    return {deeper(holder, 20) for _ in range(OFTEN)}


def under_a_trace_function(holder: Any, attribute: str) -> set[bool]:
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: None)
    try:
        return from_a_loop(holder, attribute)
    finally:
        sys.settrace(before)


def from_another_thread(holder: Any, attribute: str) -> set[bool]:
    answers: set[bool] = set()
    thread = threading.Thread(target=lambda: answers.update(from_a_loop(holder, attribute)))
    thread.start()
    thread.join()
    return answers


ASKING = [
    from_a_loop, from_a_comprehension, from_a_closure, from_a_generator, from_a_method, with_unpacked_arguments,
    from_native_code, from_a_deep_call, under_a_trace_function, from_another_thread,
]  # fmt: skip
each_way = pytest.mark.parametrize("ask", ASKING, ids=lambda function: function.__name__)


@exactly
@each_way
@each_holder
def test_a_sole_holder(ask, attribute, make):
    holder = make(np.zeros(3))  # not within an assertion, which keeps what it is made of
    assert ask(holder, attribute) == {True}


@exactly
@each_way
@each_holder
def test_a_sole_holder_of_a_view_whose_base_nobody_else_holds(ask, attribute, make):
    holder = make(np.zeros(6)[1:4])
    assert ask(holder, attribute) == {True}


@each_way
def test_a_local_variable_shows(ask):
    array = np.zeros(3)
    holder = Slots(array)
    assert ask(holder, "array") == {False}
    assert array is holder.array


@each_way
def test_an_argument_shows(ask):
    def holds_it_too(holder: Any, argument: Any) -> set[bool]:
        return ask(holder, "array") if argument is not None else set()

    holder = Slots(np.zeros(3))
    assert holds_it_too(holder, holder.array) == {False}
    array = holder.array
    assert holds_it_too(holder, array) == {False}


@each_way
def test_an_element_shows(ask):
    holder = Slots(np.zeros(3))
    elements = [holder.array]
    assert ask(holder, "array") == {False}
    assert elements.pop() is holder.array


@each_way
def test_a_variable_of_a_closure_shows(ask):
    holder = Slots(np.zeros(3))

    def closed_over(array: Any) -> Callable[[], Any]:
        return lambda: array

    read = closed_over(holder.array)
    assert ask(holder, "array") == {False}
    assert read() is holder.array


@each_way
def test_a_variable_of_a_waiting_generator_shows(ask):
    holder = Slots(np.zeros(3))

    def waiting(array: Any) -> Iterator[Any]:
        yield
        yield array

    generator = waiting(holder.array)
    assert ask(holder, "array") == {False}  # not begun yet: its argument waits in it
    next(generator)
    assert ask(holder, "array") == {False}
    assert next(generator) is holder.array


@each_way
def test_an_operand_that_waits_for_the_other_one_shows(ask):
    holder = Slots(np.zeros(3))
    array, answers = (holder.array, ask(holder, "array"))
    assert array is holder.array
    assert answers == {False}


@each_way
def test_a_view_shows(ask):
    holder = Slots(np.zeros(3))
    view = holder.array[1:]
    assert not ask(holder, "array") - {False}
    holder.array = view.base[:2]  # two views of one base
    assert ask(holder, "array") == {False}


@each_way
def test_memory_that_is_not_its_own_is_nobodys_to_write(ask):
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    foreign = np.frombuffer(bytearray(24))
    for array in (read_only, foreign, foreign[1:]):
        holder = Slots(array)
        del array
        assert ask(holder, "array") == {False}


# -- where counts say nothing ----------------------------------------------------------------------


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Python without the global lock."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.setattr(ownership, "SOLE", ownership._count_of_sole_holder(Slots(np.zeros(1)), "array"))
    monkeypatch.setattr(ownership, "_SOLE_BASE", ownership._count_of_sole_holder(np.zeros(2)[:1], "base"))
    monkeypatch.setattr(object_layout, "is_possible", object_layout.is_possible.__wrapped__)


@pytest.mark.usefixtures("uncounted")
def test_without_the_lock_every_array_is_shared():
    assert not object_layout.is_possible()
    for holder in (Slots(np.zeros(3)), Slots(np.zeros(6)[1:4])):
        assert from_a_loop(holder, "array") == {False}


@pytest.mark.usefixtures("uncounted")
def test_without_the_lock_writes_make_copies_and_nothing_else_changes():
    x = pb.tensor([1.0, 2.0, 3.0])
    other, raw = x.clone(), x._raw
    x += 1.0
    x[0] = 7.0
    assert (x.tolist(), other.tolist(), raw.tolist()) == ([7.0, 3.0, 4.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert x._raw is not raw


def trained(compiled: bool) -> list[Any]:
    """Parameters after each of some steps of training."""
    pb.random.seed(0)
    model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.Tanh(), pb.nn.Linear(4, 2))
    optimizer = pb.optim.Adam(model.parameters(), lr=0.1)
    x = pb.asarray(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = pb.compile(step) if compiled else step
    steps = []
    for _ in range(4):
        loss = run(x)
        steps.append([loss.item(), *[parameter.detach().numpy() for parameter in model.parameters()]])
    return steps


def test_a_compiled_step_without_the_lock(request: pytest.FixtureRequest):
    expected = trained(compiled=False)
    request.getfixturevalue("uncounted")
    for found in (trained(compiled=False), trained(compiled=True)):
        for ours, theirs in zip(found, expected):
            for one, other in zip(ours, theirs):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "counts",
    [
        [2] * 64 + [2] * 64,  # a second holder is not seen
        [2] * 10 + [1] * 54 + [2] * 64,  # the faster instruction borrows
        [1] * 10 + [2] * 54 + [3] * 64,
        [2] * 64 + [3] * 10 + [2] * 54,
    ],
    ids=["unseen", "fewer later", "more later", "unseen later"],
)
def test_counts_that_contradict_each_other_are_not_believed(counts, monkeypatch):
    remaining = iter(counts)
    monkeypatch.setattr(ownership, "_count_references", lambda holder, attribute: next(remaining))
    assert ownership._count_of_sole_holder(Slots(np.zeros(1)), "array") == -1
    assert next(remaining, None) is None
