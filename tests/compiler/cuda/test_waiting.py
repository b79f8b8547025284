"""Nobody waits for a run's flag: a failure is heard of later, and finds nothing changed."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import targets
from pullback.autodiff import pending
from pullback.compiler.calling import later
from pullback.compiler.cuda.halting import Flag

from . import interpreted  # noqa: F401  (the kernels run there)

DEVICE = "torch:cpu"


@pytest.fixture(autouse=True)
def on_the_target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(targets._MODULES, DEVICE, "cuda.target")
    monkeypatch.setattr(Flag, "is_known", lambda self: False)  # as if the device were always far behind
    with np.errstate(all="ignore"):  # NumPy's, which the interpreter computes with
        yield
    pending.checks.waiting.clear()


class Step:
    """A compiled training step, with what it changes."""

    def __init__(self, dropout: float = 0.0) -> None:
        rng = np.random.default_rng(0)
        self.weight = pb.tensor(rng.normal(size=(4, 3)), device=DEVICE, requires_grad=True)
        self.optimizer = pb.optim.SGD([self.weight], lr=0.01)
        self.generator = pb.random.Generator(3)

        def step(x: Any) -> Any:
            h = x @ self.weight
            if dropout:
                h = pb.dropout(h, dropout, generator=self.generator)
            loss = pb.sum(pb.abs(h)) + pb.sum(pb.sqrt(x[:, 0]))
            self.optimizer.step(pb.backward(loss))
            return loss

        self.function = step
        self._compiled = pb.compile(step)

    def compiled(self, x: Any) -> Any:
        gc.collect()  # the interpreter leaves cycles behind, with tensors in them that nobody else may see
        return self._compiled(x)

    @property
    def waiting(self) -> int:
        return len(self.program.later._waiting)

    @property
    def program(self) -> Any:
        return self._compiled._programs[0]

    def state(self) -> list[Any]:
        return [self.weight._raw.clone(), [slot.step for slot in self.program.slots], self.generator.state]


def _batch(bad: bool = False) -> Any:
    x = np.abs(np.random.default_rng(1).normal(size=(5, 4))) + 0.5
    if bad:
        x[2, 0] = -1e9  # a root of a negative number
    return pb.asarray(x, device=DEVICE)


def _begun(**options: Any) -> Step:
    step = Step(**options)
    for _ in range(3):
        step.compiled(_batch())
    pending.look()
    return step


def test_runs_are_not_waited_for() -> None:
    step = _begun()
    losses = [step.compiled(_batch()) for _ in range(3)]
    assert step.waiting == 3
    assert losses[2].item() < losses[0].item()
    assert step.waiting == 0


def test_not_too_many_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "MOST_WAITING", 2)
    step = _begun()
    for _ in range(4):
        step.compiled(_batch())
    assert step.waiting == 2


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_failure_is_named_when_something_is_read_and_has_changed_nothing(dropout: float) -> None:
    step = _begun(dropout=dropout)
    before = step.state()
    step.compiled(_batch(bad=True))
    after = [step.compiled(_batch()) for _ in range(2)]
    with pytest.raises(pb.NumericalInstabilityError, match=r"test_waiting\.py:\d+"):
        after[-1].item()
    weight, steps, generator = step.state()
    assert (weight == before[0]).all() and steps == before[1]
    drawn = (
        16 if dropout else 0
    )  # by the step that failed, as eager code has drawn when it fails; not by those after it
    assert generator["offset"] == before[2]["offset"] + drawn
    assert step.waiting == 0
    assert np.isfinite(step.compiled(_batch()).item())
    assert [slot.step for slot in step.program.slots] == [count + 1 for count in before[1]]


def test_a_failure_is_heard_of_before_an_optimizer_writes() -> None:
    step = _begun()
    before = step.state()
    step.compiled(_batch(bad=True))
    other = pb.tensor([1.0], device=DEVICE, requires_grad=True)
    with pytest.raises(pb.NumericalInstabilityError):
        pb.optim.SGD([other], lr=1.0).step(pb.backward(pb.sum(other * other)))
    assert (step.weight._raw == before[0]).all()


def test_the_next_call_tells_if_the_device_has_got_that_far(monkeypatch: pytest.MonkeyPatch) -> None:
    step = _begun()
    before = step.state()
    step.compiled(_batch(bad=True))
    monkeypatch.setattr(Flag, "is_known", lambda self: True)
    with pytest.raises(pb.NumericalInstabilityError):
        step.compiled(_batch())
    assert (step.weight._raw == before[0]).all()


def test_what_a_call_was_given_is_what_it_is_made_again_with() -> None:
    """The batch is written to before the failure is heard of."""
    step = _begun()
    x = _batch(bad=True)
    step.compiled(x)
    x[2, 0] = 1.0
    with pytest.raises(pb.NumericalInstabilityError):
        pending.look()


def test_a_false_alarm_is_made_good() -> None:
    """A sum of squares that overflows by itself is no reason to stop: the steps are made again, in their order."""
    eager, step = _begun(), _begun()
    huge = pb.asarray(np.full((5, 4), 1e200), device=DEVICE)
    expected = [eager.function(x).item() for x in (_batch(), huge, _batch())]
    found = [step.compiled(x) for x in (_batch(), huge, _batch())]
    assert step.waiting == 3
    np.testing.assert_allclose([loss.item() for loss in found], expected, rtol=1e-12)
    np.testing.assert_allclose(step.weight.detach().numpy(), eager.weight.detach().numpy(), rtol=1e-12)
    assert [slot.step for slot in step.program.slots] == [6]


def test_a_step_that_leaves_gradients_is_waited_for() -> None:
    weight = pb.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)

    @pb.compile
    def step(x: Any) -> Any:
        loss = pb.sum(pb.sqrt(weight * x))
        loss.backward()
        return loss

    x = pb.asarray(np.array([1.0, 2.0], np.float32), device=DEVICE)
    for _ in range(4):
        weight.zero_grad()
        step(x)
    before = weight.grad.numpy().copy()
    with pytest.raises(pb.NumericalInstabilityError):
        step(-x)
    np.testing.assert_array_equal(weight.grad.numpy(), before)


def test_a_run_is_made_again_under_the_modes_that_it_was_called_in() -> None:
    step = _begun()
    before = step.state()
    step.compiled(_batch(bad=True))
    with pb.no_grad(), pytest.raises(pb.NumericalInstabilityError):
        pending.look()
    step.compiled(_batch(bad=True))
    with pytest.raises(pb.NumericalInstabilityError), pb.guard("off"):
        pending.look()
    assert (step.weight._raw == before[0]).all()


def test_a_run_is_made_again_with_what_was_in_its_containers_and_at_its_rate() -> None:
    eager, step = _begun(), _begun()
    inside = pb.compile(lambda batch: step.function(batch["x"]))
    for _ in range(3):
        gc.collect()
        inside({"x": _batch()})
        eager.function(_batch())
    pending.look()
    huge = pb.asarray(np.full((5, 4), 1e200), device=DEVICE)
    batch = {"x": huge}
    gc.collect()
    inside(batch)
    batch["x"] = _batch()
    step.optimizer.param_groups[0]["lr"] = 0.0
    pending.look()
    assert step.optimizer.param_groups[0]["lr"] == 0.0
    eager.function(huge)
    np.testing.assert_allclose(step.weight.detach().numpy(), eager.weight.detach().numpy(), rtol=1e-12)


def test_another_program_on_the_same_parameters_hears_of_it_first() -> None:
    step = _begun()
    other = pb.asarray(np.ones((2, 4)), device=DEVICE)
    for _ in range(3):
        step.compiled(other)
    for _ in range(2):
        step.compiled(_batch())
    pending.look()
    before = step.state()
    step.compiled(_batch(bad=True))
    with pytest.raises(pb.NumericalInstabilityError):
        step.compiled(other)
    assert (step.weight._raw == before[0]).all()


def test_gradients_of_half_precision_are_no_alarm() -> None:
    weight = pb.tensor(np.ones(12), dtype=pb.float16, device=DEVICE, requires_grad=True)
    optimizer = pb.optim.SGD([weight], lr=0.001)

    @pb.compile
    def step(x: Any) -> Any:
        loss = pb.sum(weight * x)
        optimizer.step(pb.backward(loss))
        return loss

    x = pb.asarray(np.full(12, 200.0, np.float16), device=DEVICE)
    for _ in range(4):
        gc.collect()
        step(x)
    assert all(run.flag for run in step._programs[0].later._waiting)
    assert step.traces == 1 and step._programs[0].later._waiting
