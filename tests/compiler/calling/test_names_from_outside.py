"""What a function reads under a name from outside and finds changed at the next call makes another program."""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

scale: Any = 2.0
weight: Any = pb.tensor([1.0, 2.0])
x = pb.tensor([3.0, 4.0])


def scaled(y: Any) -> Any:
    return y * scale


class Rescaling(pb.nn.Module):
    """A module with a number, and one that is in a list."""

    def __init__(self) -> None:
        self.factor = 2.0
        self.inner = pb.nn.Sequential(pb.nn.Linear(2, 2))

    def forward(self, y: Any) -> Any:
        return self.inner(y) * self.factor


class Plain:
    def __init__(self) -> None:
        self.weight = pb.tensor([1.0, 1.0])

    def __call__(self, y: Any) -> Any:
        return self.helped(y)

    def helped(self, y: Any) -> Any:
        return y * self.weight


def agree(function: Callable[..., Any], *changes: Callable[[], Any]) -> Any:
    """Compiled and eager give the same before and after each change; no call without a change makes a program."""
    compiled = pb.compile(function)
    for traces, change in enumerate([lambda: None, *changes], 1):
        change()
        for _ in range(3):
            assert np.allclose(compiled(x).detach().numpy(), function(x).detach().numpy(), atol=1e-6)
        assert compiled.traces == traces
    return compiled


def test_a_global_number(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = agree(lambda y: y * scale, lambda: monkeypatch.setitem(globals(), "scale", 3.0))
    assert compiled.recompilations == ["`scale` was 2.0 and is 3.0; pass a number that changes as a tensor"]


def test_a_global_number_that_is_equal_and_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "scale", 0.0)
    function = pb.compile(lambda y: pb.copysign(y, scale))
    assert function(x).tolist() == [3.0, 4.0]
    monkeypatch.setitem(globals(), "scale", -0.0)
    assert function(x).tolist() == [-3.0, -4.0]


def test_a_global_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = agree(lambda y: y * weight, lambda: monkeypatch.setitem(globals(), "weight", pb.tensor([7.0, 7.0])))
    advice = "pass it as an argument, or write to it"
    assert compiled.recompilations == [f"`weight` is another Tensor; {advice}"]


def test_through_a_function_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    agree(lambda y: scaled(y) + 1, lambda: monkeypatch.setitem(globals(), "scale", -1.0))


def test_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    agree(lambda y: scaled(y), lambda: monkeypatch.setitem(globals(), "scaled", lambda y: y + 1))


def test_a_closure() -> None:
    factor = 2.0

    def change() -> None:
        nonlocal factor
        factor = 5.0

    agree(lambda y: y * factor, change)


def test_a_function_inside() -> None:
    factor = 2.0

    def change() -> None:
        nonlocal factor
        factor = 5.0

    agree(lambda y: (lambda z: z * factor)(y), change)


def test_attributes_and_keys() -> None:
    options = SimpleNamespace(scale=2.0, inner=SimpleNamespace(shift=1.0))
    table = {"gain": 2.0, "unused": 0}
    compiled = agree(
        lambda y: y * options.scale + options.inner.shift * table["gain"],
        lambda: setattr(options, "scale", 3.0),
        lambda: setattr(options.inner, "shift", 4.0),
        lambda: table.update(gain=0.5),
    )
    named = [reason.partition(" was ")[0] for reason in compiled.recompilations]
    assert named == ["`options.scale`", "`options.inner.shift`", "`table['gain']`"]
    table["unused"] = 1
    options.unused = 1
    compiled(x)
    assert compiled.traces == 4


def test_a_tensor_of_a_plain_object() -> None:
    net = Plain()
    agree(net, lambda: setattr(net, "weight", pb.tensor([5.0, 5.0])))
    agree(net.helped, lambda: setattr(net, "weight", pb.tensor([6.0, 5.0])))
    agree(partial(Plain.helped, net), lambda: setattr(net, "weight", pb.tensor([7.0, 5.0])))


def test_a_modules_number_layer_and_tensor() -> None:
    net = Rescaling()
    changes = [
        lambda: setattr(net, "factor", 3.0),
        lambda: setattr(net, "inner", pb.nn.Linear(2, 2)),
        lambda: setattr(net.inner, "weight", pb.nn.Parameter(pb.ones((2, 2)))),
    ]
    compiled = agree(lambda y: net(y), *changes)
    assert [reason.split()[0] for reason in compiled.recompilations] == [
        "`net.factor`", "`net.inner`", "`net.inner.weight`",
    ]  # fmt: skip


@pb.no_grad()
def test_a_module_in_calls_that_need_no_gradient() -> None:  # these take a shorter way
    net = Rescaling()
    agree(lambda y: net(y), lambda: setattr(net, "factor", 3.0), lambda: setattr(net, "inner", pb.nn.Linear(2, 2)))


def test_assignments_to_other_modules_do_not_matter() -> None:
    net, other = pb.nn.Linear(2, 2), pb.nn.Linear(2, 2)
    agree_once = pb.compile(lambda y: net(y))
    agree_once(x)
    other.weight = pb.nn.Parameter(pb.ones((2, 2)))
    agree_once(x)
    agree_once(x)
    assert agree_once.traces == 1


def test_options_of_an_optimizer() -> None:
    optimizer = pb.optim.SGD([pb.tensor([1.0], requires_grad=True)], lr=0.5)
    agree(lambda y: y * optimizer.param_groups[0]["lr"], lambda: optimizer.param_groups[0].update(lr=0.25))


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)])
def test_generators_of_others(generator: Any) -> None:
    held = SimpleNamespace(generator=generator)
    for function in (lambda y: y * generator.uniform(0, 1), lambda y: y * held.generator.uniform(0, 1)):
        with pytest.raises(pb.TraceError, match=r"draws random numbers from `(held\.)?generator` while it is traced"):
            pb.compile(function)(x)


def test_things_that_are_only_passed_on() -> None:
    table, things = {"a": 1.0}, [2.0]
    assert pb.compile(lambda: table)() == table and pb.compile(lambda: things)() == things


def test_a_counter_is_refused_and_stays() -> None:
    calls = [0]

    @pb.compile
    def counted(y: Any) -> Any:
        calls[0] += 1
        return y * calls[0]

    with pytest.raises(pb.TraceError, match=r"test_names_from_outside.py:\d+: counted .*`calls\[0\]` was 0 and is 1"):
        counted(x)
    assert calls == [0]


def test_local_names_and_attributes_of_the_same_name_do_not_matter() -> None:
    compiled = pb.compile(lambda weight: weight.sum() * 2)  # `weight` and `sum` are no globals here
    compiled(x)
    globals()["sum"] = 3
    try:
        compiled(x)
    finally:
        del globals()["sum"]
    assert compiled.traces == 1
