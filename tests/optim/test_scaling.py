"""Loss scaling against PyTorch's GradScaler, step by step; skipped steps; the guard; wrong orders of calls."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require

torch = optional("torch")

OVERFLOWS = [False, False, True, False, False, False, True, True, False, False, False, False, False, True, False]


def variable(seed: int = 0, size: int = 3, dtype: Any = np.float32) -> pb.Tensor:
    return pb.tensor(np.random.default_rng(seed).normal(size=size).astype(dtype), requires_grad=True)


def squared(w: Any, factor: float = 1.0) -> Any:
    return (w * w).sum() * factor


def overflowing(w: pb.Tensor) -> pb.Tensor:
    return (w * 1e30).sum() * 1e8  # finite, but not times 65536


@pytest.mark.parametrize("interval", [1, 2, 3, 2000])
def test_steps_agree_with_torch(interval: int) -> None:
    ours, theirs = variable(), torch.tensor(variable().detach().numpy(), requires_grad=True)
    optimizer = pb.optim.SGD([ours], lr=0.01, momentum=0.9)
    their_optimizer = torch.optim.SGD([theirs], lr=0.01, momentum=0.9)
    options = {"init_scale": 1000.0, "growth_factor": 3.0, "backoff_factor": 0.3, "growth_interval": interval}
    scaler, their_scaler = pb.optim.LossScaler(**options), torch.amp.GradScaler("cpu", **options)
    for overflow in OVERFLOWS:
        factor = float("inf") if overflow else 1.0
        optimizer.zero_grad()
        their_optimizer.zero_grad()
        scaler.scale(squared(ours, factor)).backward()
        their_scaler.scale(squared(theirs, factor)).backward()
        assert scaler.step(optimizer) is not overflow
        their_scaler.step(their_optimizer)
        scaler.update()
        their_scaler.update()
        np.testing.assert_allclose(scaler.get_scale(), their_scaler.get_scale(), rtol=1e-6)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach(), rtol=1e-5)
    mine, other = scaler.state_dict(), their_scaler.state_dict()
    assert mine.keys() == other.keys()
    assert mine == pytest.approx(other)


def test_defaults_are_those_of_torch() -> None:
    theirs = torch.amp.GradScaler("cpu")
    theirs.scale(torch.ones(()))
    assert pb.optim.LossScaler().state_dict() == theirs.state_dict()


def test_a_skipped_step_changes_nothing_but_the_scale() -> None:
    w = variable()
    optimizer, scaler = pb.optim.Adam([w], lr=0.1), pb.optim.LossScaler()
    scaler.scale(squared(w)).backward()
    assert scaler.step(optimizer)
    scaler.update()
    before, state = w.detach().numpy().copy(), copy.deepcopy(optimizer.state_dict())
    optimizer.zero_grad()
    scaler.scale(overflowing(w)).backward()  # no error: the guard looks away
    assert not scaler.step(optimizer)
    scaler.update()
    np.testing.assert_array_equal(w.detach().numpy(), before)
    after = optimizer.state_dict()
    assert after["param_groups"] == state["param_groups"]
    for name, value in state["state"][0].items():
        np.testing.assert_array_equal(np.asarray(after["state"][0][name]), np.asarray(value))
    assert scaler.get_scale() == 2.0**15


def test_gradients_are_those_of_the_loss_whatever_the_scale() -> None:
    w = variable(dtype=np.float64)
    expected = pb.backward(squared(w))[w]
    for scale in (1.0, 2.0**16, 2.0**-10):
        scaler = pb.optim.LossScaler(init_scale=scale)
        grads = pb.backward(scaler.scale(squared(w)))
        np.testing.assert_array_equal(grads[w].numpy(), scale * expected.numpy())
        scaler.unscale_(pb.optim.SGD([w]), grads)
        np.testing.assert_array_equal(grads[w].numpy(), expected.numpy())


def test_small_gradients_survive_float16() -> None:
    def gradient(scaler: pb.optim.LossScaler) -> float:
        w = pb.tensor([[1.0]], requires_grad=True)
        with pb.autocast("float16"):
            loss = (pb.asarray([[1.0]]) @ w).sum() * 1e-9
        grads = pb.backward(scaler.scale(loss))
        scaler.unscale_(pb.optim.SGD([w]), grads)
        return grads[w].item()

    assert gradient(pb.optim.LossScaler(enabled=False)) == 0
    assert gradient(pb.optim.LossScaler()) == pytest.approx(1e-9, rel=1e-2)


@pytest.mark.parametrize("kind", ["grad", "Gradients", "tensors", "arrays"])
def test_every_form_of_gradients(kind: str) -> None:
    w, expected = variable(), variable()
    pb.optim.SGD([expected], lr=0.1).step(pb.backward(squared(expected)))
    parameter: Any = w.data_mut() if kind == "arrays" else w
    optimizer, scaler = pb.optim.SGD([parameter], lr=0.1), pb.optim.LossScaler()
    loss = scaler.scale(squared(w if kind != "arrays" else variable()))
    grads: Any = None
    if kind == "grad":
        loss.backward()
    else:
        grads = pb.backward(loss)
        if kind != "Gradients":
            grads = [next(iter(grads)) if kind == "tensors" else next(iter(grads)).data_mut()]
    assert scaler.step(optimizer, grads)
    np.testing.assert_allclose(w.detach().numpy(), expected.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu"])
def test_other_devices(device: str) -> None:
    require(device)
    w = pb.asarray(variable().detach(), device=device).set_requires_grad(True)
    optimizer, scaler = pb.optim.SGD([w], lr=0.1), pb.optim.LossScaler()
    for loss, stepped in ((squared, True), (overflowing, False)):
        optimizer.zero_grad()
        scaler.scale(loss(w)).backward()
        assert scaler.step(optimizer) is stepped
        scaler.update()
    np.testing.assert_allclose(w.detach().to_device("numpy").numpy(), 0.8 * variable().detach().numpy(), rtol=1e-6)
    assert scaler.get_scale() == 2.0**15


def test_clipping_between_unscaling_and_the_step() -> None:
    w = pb.tensor([3.0, 4.0], requires_grad=True)
    optimizer, scaler = pb.optim.SGD([w], lr=1.0), pb.optim.LossScaler()
    grads = pb.backward(scaler.scale(squared(w, 0.5)))
    scaler.unscale_(optimizer, grads)
    assert grads.clip_global_norm(1.0).item() == 5
    scaler.step(optimizer, grads)
    np.testing.assert_allclose(w.detach().numpy(), [2.4, 3.2], rtol=1e-6)
    scaler.update()
    scaler.scale(squared(w, 0.5)).backward()
    scaler.unscale_(optimizer)
    pb.optim.clip_global_norm([w], 1.0)
    scaler.step(optimizer)
    np.testing.assert_allclose(w.detach().numpy(), [1.8, 2.4], rtol=1e-6)


def test_two_optimizers_one_of_which_overflows() -> None:
    fine, bad = variable(0), variable(1)
    optimizers = [pb.optim.SGD([w], lr=0.1) for w in (fine, bad)]
    scaler = pb.optim.LossScaler()
    losses = scaler.scale({"fine": squared(fine), "bad": overflowing(bad)})
    for loss in losses.values():
        loss.backward()
    assert [scaler.step(optimizer) for optimizer in optimizers] == [True, False]
    scaler.update()
    assert scaler.get_scale() == 2.0**15
    np.testing.assert_array_equal(bad.detach().numpy(), variable(1).detach().numpy())


def test_only_the_optimizers_own_gradients_are_unscaled() -> None:
    mine, other = variable(0), variable(1)
    scaler = pb.optim.LossScaler(init_scale=8.0)
    grads = pb.backward(scaler.scale(squared(mine) + squared(other)))
    scaler.unscale_(pb.optim.SGD([mine]), grads)
    np.testing.assert_allclose(grads[mine].numpy(), 2 * mine.detach().numpy())
    np.testing.assert_allclose(grads[other].numpy(), 16 * other.detach().numpy())


def test_frozen_parameters_do_not_count() -> None:
    w, frozen = variable(0), variable(1)
    frozen.grad = pb.full((3,), float("inf"))
    frozen.set_requires_grad(False)
    optimizer, scaler = pb.optim.SGD([w, frozen], lr=0.1), pb.optim.LossScaler()
    scaler.scale(squared(w)).backward()
    assert scaler.step(optimizer)


# -- the guard -----------------------------------------------------------------------------------


def test_the_guard_looks_at_a_scaled_loss_only_if_asked_to() -> None:
    w, scaler = variable(), pb.optim.LossScaler()
    assert not np.isfinite(pb.backward(scaler.scale(overflowing(w)))[w].numpy()).any()
    scaler.scale(squared(w, float("nan"))).backward()
    with pb.guard("raise"), pytest.raises(pb.NumericalInstabilityError):
        scaler.scale(overflowing(w)).backward()
    with pytest.raises(pb.NumericalInstabilityError):
        squared(w, float("nan")).backward()
    with pytest.raises(pb.NumericalInstabilityError):
        pb.optim.LossScaler(enabled=False).scale(squared(w, float("nan"))).backward()


def test_a_scaled_loss_can_be_differentiated_twice() -> None:
    w, scaler = variable(dtype=np.float64), pb.optim.LossScaler(init_scale=4.0)
    first = pb.backward(scaler.scale((w**3).sum()), create_graph=True)[w]
    second = pb.backward(first.sum())[w]
    np.testing.assert_allclose(second.numpy(), 4 * 6 * w.detach().numpy())


# -- state, settings, wrong calls ----------------------------------------------------------------


def test_a_disabled_scaler_passes_everything_through() -> None:
    w = variable()
    optimizer, scaler = pb.optim.SGD([w], lr=0.1), pb.optim.LossScaler(enabled=False)
    loss = squared(w)
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0
    loss.backward()
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(w.detach().numpy(), 0.8 * variable().detach().numpy(), rtol=1e-6)
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_state_is_restored() -> None:
    w, scaler = variable(), pb.optim.LossScaler(growth_interval=3)
    optimizer = pb.optim.SGD([w], lr=0.1)
    for _ in range(4):
        scaler.scale(squared(w)).backward()
        scaler.step(optimizer)
        scaler.update()
    other = pb.optim.LossScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert (other.get_scale(), other.growth_interval) == (2.0**17, 3)


def test_torchs_state_can_be_loaded() -> None:
    theirs = torch.amp.GradScaler("cpu", init_scale=128.0)
    theirs.scale(torch.ones(()))
    scaler = pb.optim.LossScaler()
    scaler.load_state_dict(theirs.state_dict())
    assert scaler.get_scale() == 128


@pytest.mark.parametrize(
    "change", [{"scale": 0.0}, {"scale": float("nan")}, {"growth_factor": 1.0}, {"_growth_tracker": "2"}, {"more": 1}]
)
def test_a_bad_state_is_refused_whole(change: dict[str, Any]) -> None:
    scaler = pb.optim.LossScaler()
    before = scaler.state_dict()
    with pytest.raises(pb.ConfigurationError):
        scaler.load_state_dict({**before, "growth_interval": 7, **change})
    assert scaler.state_dict() == before
    with pytest.raises(pb.ConfigurationError, match="nothing"):
        scaler.load_state_dict({})


@pytest.mark.parametrize(
    "options",
    [
        {"init_scale": 0.0},
        {"init_scale": float("inf")},
        {"growth_factor": 1.0},
        {"backoff_factor": 1.0},
        {"backoff_factor": 0.0},
        {"growth_interval": 0},
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(pb.ConfigurationError, match=r"must be .* got"):
        pb.optim.LossScaler(**options)


def test_the_scale_stays_finite_in_float32() -> None:
    w, scaler = variable(), pb.optim.LossScaler(init_scale=2.0**127, growth_interval=1)
    scaler.scale(squared(w, 1e-30)).backward()
    scaler.step(pb.optim.SGD([w], lr=0.0))
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_wrong_orders_of_calls() -> None:
    w = variable()
    optimizer, scaler = pb.optim.SGD([w], lr=0.1), pb.optim.LossScaler()
    with pytest.raises(pb.GradientError, match="nothing was stepped"):
        scaler.update()
    with pytest.raises(pb.GradientError, match="no parameter has a gradient"):
        scaler.step(optimizer)
    scaler.scale(squared(w)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(pb.GradientError, match="unscaled already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(pb.GradientError, match="stepped already"):
        scaler.unscale_(optimizer)
    with pytest.raises(pb.GradientError, match="stepped already"):
        scaler.step(optimizer)
    scaler.update()
    scaler.step(optimizer)


def test_what_cannot_be_scaled_is_refused() -> None:
    w, scaler = variable(), pb.optim.LossScaler()
    with pytest.raises(pb.DtypeError, match="expected a tensor"):
        scaler.scale(1.0)
    with pytest.raises(pb.DtypeError, match="cannot be given"):
        scaler.step(pb.optim.SGD([w]), lambda: None)
    half = variable(dtype=np.float16)
    half.grad = pb.ones((3,), dtype=pb.float16)
    w.grad = pb.ones((3,))
    with pytest.raises(pb.DtypeError, match="autocast"):
        scaler.step(pb.optim.SGD([w, half]))
    assert w.grad.tolist() == [1, 1, 1]  # nothing was unscaled
    with pytest.raises(pb.DtypeError, match="pass a list"):
        scaler.unscale_(pb.optim.SGD([np.ones(3)]))
    with pytest.raises(pb.DtypeError, match="tensors or NumPy arrays"):
        scaler.unscale_(pb.optim.SGD([w]), [[1.0, 2.0, 3.0]])
