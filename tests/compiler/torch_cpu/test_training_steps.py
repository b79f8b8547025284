"""Whole training steps on PyTorch's processor: what they leave is what eager ones leave, there and on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NumericalInstabilityError

from ...backends.installed import require
from ..calling.test_training_steps import OPTIMIZERS, check, trained

DEVICE = "torch:cpu"


@pytest.fixture(autouse=True)
def needs_torch() -> None:
    require(DEVICE)


def tensor(values: Any, **options: Any) -> pb.Tensor:
    return pb.tensor(np.asarray(values, np.float32), device=DEVICE, **options)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_trains_as_it_does_eagerly(name: str) -> None:
    assert check(OPTIMIZERS[name], device=DEVICE).traces == 1


@pytest.mark.parametrize("style", ["gradients", "none"])
def test_gradients_may_be_kept_apart_or_cleared(style: str) -> None:
    check(OPTIMIZERS["AdamW"], style=style, device=DEVICE)


def test_dropout_differs_from_call_to_call_and_is_that_of_the_eager_step() -> None:
    check(OPTIMIZERS["SGD"], dropout=0.4, device=DEVICE)


@pytest.mark.parametrize("name", ["SGD-momentum", "AdamW", "Lion"])
def test_a_run_is_the_same_bits_as_on_numpy(name: str) -> None:
    losses, *state = trained(OPTIMIZERS[name], True, dropout=0.2, device=DEVICE)[:2]
    expected, *state_there = trained(OPTIMIZERS[name], True, dropout=0.2, device="numpy")[:2]
    assert losses == expected
    for ours, theirs in zip(state, state_there):
        for key, value in ours.items():
            np.testing.assert_array_equal(value, theirs[key], err_msg=key)


def step_of(w: pb.Tensor, **options: Any) -> tuple[Any, Any]:
    optimizer = pb.optim.SGD([w], 0.1, **options)

    @pb.compile
    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        optimizer.step(pb.backward(loss))
        return loss

    return step, optimizer


def test_an_alarm_changes_nothing_and_names_what_eager_names() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    step(tensor([1.0, 1.0]))
    before = w.tolist(), optimizer.state_dict()["state"][0]["momentum_buffer"].tolist()
    for _ in range(2):
        with pytest.raises(NumericalInstabilityError):
            step(tensor([np.nan, 1.0]))
        assert (w.tolist(), optimizer.state_dict()["state"][0]["momentum_buffer"].tolist()) == before
    step(tensor([1.0, 1.0]))
    assert step.traces == 1 and np.isfinite(w.tolist()).all()


def test_an_alarm_of_a_step_that_was_given_an_array_of_numpys_is_the_same() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.SGD([w], 0.1)

    @pb.compile
    def step(x: Any) -> Any:
        loss = (pb.asarray(x) * w).square().sum()
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):  # also the short way
        step(np.array([1.0, 1.0], np.float32))
        with pytest.raises(NumericalInstabilityError):
            step(np.array([np.nan, 1.0], np.float32))
    with pb.compiled(verify=True):
        step(np.array([1.0, 1.0], np.float32))
    assert step.traces == 1


def test_a_rate_that_changes_needs_no_new_program() -> None:
    w = tensor([1.0], requires_grad=True)
    step, optimizer = step_of(w)
    for rate, expected in ((0.1, 0.8), (0.05, 0.72), (0.25, 0.36)):
        optimizer.param_groups[0]["lr"] = rate
        step(tensor([1.0]))
        assert w.item() == pytest.approx(expected, rel=1e-5)
    assert step.traces == 1


def test_eager_and_compiled_steps_take_turns() -> None:
    w, other = (tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    step, optimizer = step_of(w, momentum=0.9)
    eager = pb.optim.SGD([other], 0.1, momentum=0.9)
    x = tensor([1.0, 0.5])
    for i in range(6):
        if i % 2:
            optimizer.step(pb.backward(((w * x) ** 2).sum()))
        else:
            step(x)
        eager.step(pb.backward(((other * x) ** 2).sum()))
    np.testing.assert_allclose(w.tolist(), other.tolist(), rtol=1e-5)
    assert step.traces == 1


def test_a_state_that_is_loaded_is_the_one_that_is_used() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    x = tensor([1.0, 1.0])
    step(x)
    weights, state = w.detach().numpy().copy(), optimizer.state_dict()
    step(x)
    expected = w.tolist()
    optimizer.load_state_dict(state)
    with pb.no_grad():
        w[...] = tensor(weights)
    step(x)
    np.testing.assert_allclose(w.tolist(), expected, rtol=1e-6)


def test_a_model_that_moves_gets_another_program() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)

    @pb.compile
    def loss() -> Any:
        return (w * w).sum()

    assert loss().device == "numpy"
    w = tensor([1.0, 2.0], requires_grad=True)
    assert loss().device == DEVICE
    w = pb.tensor([1.0, 3.0], requires_grad=True)
    assert loss().device == "numpy" and loss().item() == 10.0


def test_hooks_and_autocast() -> None:
    pytest.importorskip("ml_dtypes")
    w = tensor(np.ones((3, 3)), requires_grad=True)
    w.register_hook(lambda g: g * 2)

    def function(x: Any) -> Any:
        with pb.autocast("bfloat16"):
            loss = (x @ w).sum()
        return pb.backward(loss)[w]

    x = tensor(np.arange(9.0).reshape(3, 3))
    compiled = pb.compile(function)
    for _ in range(2):
        assert compiled(x).tolist() == function(x).tolist()
