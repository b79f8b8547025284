"""Whole training steps as one program on JAX: losses, parameters, gradients, state and buffers are those of eager ones.

What a step replaces is donated, and nothing that anybody else holds is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DeviceError, NumericalInstabilityError

from ...backends.installed import require
from ..calling.test_training_steps import OPTIMIZERS, check

DEVICE = "jax:cpu"


@pytest.fixture(autouse=True)
def needs_jax() -> None:
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


def step_of(w: pb.Tensor, **options: Any) -> tuple[Any, Any]:
    optimizer = pb.optim.SGD([w], 0.1, **options)

    @pb.compile
    def step(x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        optimizer.step(pb.backward(loss))
        return loss

    return step, optimizer


def test_what_a_step_replaces_is_donated() -> None:
    w = tensor(np.ones(1000), requires_grad=True)
    step, _ = step_of(w, momentum=0.9)
    step(tensor(np.ones(1000)))
    before = w._raw.unsafe_buffer_pointer()
    step(tensor(np.ones(1000)))
    assert w._raw.unsafe_buffer_pointer() == before


def test_what_somebody_else_holds_is_not_gone() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    x = tensor([1.0, 1.0])
    step(x)
    array, clone, view, state = w._raw, w.detach().clone(), w.detach().numpy(), optimizer.state_dict()
    momentum = state["state"][0]["momentum_buffer"]
    expected = np.array(view), np.array(momentum.numpy())
    for _ in range(3):
        step(x)
    for kept in (array, clone.numpy(), view):
        np.testing.assert_array_equal(np.asarray(kept), expected[0])
    np.testing.assert_array_equal(momentum.numpy(), expected[1])
    assert not np.array_equal(w.detach().numpy(), expected[0])


def test_a_parameter_of_two_owners_stays_with_the_other() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    other = w.clone()
    step, _ = step_of(w)
    step(tensor([1.0, 1.0]))
    np.testing.assert_array_equal(other.detach().numpy(), [1.0, 2.0])
    np.testing.assert_allclose(w.detach().numpy(), [0.8, 1.6], rtol=1e-6)


def test_an_alarm_changes_nothing_and_names_what_eager_names() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    step(tensor([1.0, 1.0]))
    before = w.detach().numpy().copy(), optimizer.state_dict()["state"][0]["momentum_buffer"].numpy().copy()
    with pytest.raises(NumericalInstabilityError):
        step(tensor([np.nan, 1.0]))
    np.testing.assert_array_equal(w.detach().numpy(), before[0])
    np.testing.assert_array_equal(optimizer.state_dict()["state"][0]["momentum_buffer"].numpy(), before[1])
    step(tensor([1.0, 1.0]))
    assert step.traces == 1
    assert np.isfinite(w.detach().numpy()).all()


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


def test_a_state_that_is_loaded_is_the_one_that_is_used() -> None:
    w = tensor([1.0, 2.0], requires_grad=True)
    step, optimizer = step_of(w, momentum=0.9)
    x = tensor([1.0, 1.0])
    step(x)
    weights, state = w.detach().numpy().copy(), optimizer.state_dict()
    step(x)
    expected = w.detach().numpy().copy()
    optimizer.load_state_dict(state)
    with pb.no_grad():
        w[...] = tensor(weights)
    step(x)
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-6)


def test_a_model_that_moves_gets_another_program() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)

    @pb.compile
    def loss() -> Any:
        return (w * w).sum()

    assert loss().device == "numpy"
    w = tensor([1.0, 2.0], requires_grad=True)
    assert loss().device == DEVICE
    w = pb.tensor([1.0, 3.0], requires_grad=True)
    assert loss().device == "numpy"
    assert loss().item() == 10.0


def test_tensors_on_two_devices_are_refused() -> None:
    w, x = tensor([1.0, 2.0], requires_grad=True), pb.tensor([1.0, 1.0])
    with pytest.raises(DeviceError, match="one device, here 'jax:cpu', and found a tensor on 'numpy'"):
        pb.compile(lambda y: (w * y).sum() + x.sum())(tensor([1.0, 1.0]))
    with pytest.raises(DeviceError, match="got tensors on 'numpy' and on 'jax:cpu'"):
        pb.compile(lambda x, y: x + y)(x, tensor([1.0, 1.0]))
    with pytest.raises(DeviceError, match="one device, here 'numpy', and found a tensor on 'jax:cpu'"):
        pb.compile(lambda x: (w * x).sum())(x)
