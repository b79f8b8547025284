"""One formula: every optimizer gives NumPy's parameters on every other backend."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from ..backends import strict
from ..backends.installed import optional, require
from .problems import MATRICES, matrices_loss, network_loss, trained, values

jnp = optional("jax.numpy")

OPTIMIZERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.02, "weight_decay": 0.05, "amsgrad": True},
    "AdamW": {"lr": 0.02, "weight_decay": 0.3, "maximize": True},
    "RMSprop": {"lr": 1e-3, "momentum": 0.8, "centered": True, "eps": 1e-3},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.02, "maximize": True},
    "NAdam": {"lr": 0.02, "weight_decay": 0.05, "maximize": True},
    "RAdam": {"lr": 0.02, "weight_decay": 0.3, "decoupled_weight_decay": True},
    "Lion": {"lr": 0.01, "weight_decay": 0.1},
    "LAMB": {"lr": 0.01, "weight_decay": 0.1},
    "Adafactor": {"lr": 0.1, "weight_decay": 0.1},
    "Muon": {"lr": 0.005},
}


@pytest.mark.parametrize("device", ["torch:cpu", "jax:cpu", strict.DEVICE])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_as_on_numpy(name, device):
    require(device)
    problem = (values(MATRICES), matrices_loss) if name == "Muon" else (values(), network_loss)
    results = []
    for place in ("numpy", device):
        initial, loss = problem
        parameters, optimizer = trained(
            lambda p: getattr(pb.optim, name)(p, **OPTIMIZERS[name]), 3, initial, loss, place
        )
        results.append(parameters)
        for state in optimizer.state_dict()["state"].values():
            assert {value.device for value in state.values() if isinstance(value, pb.Tensor)} == {place}
    for ours, expected, start in zip(results[1], results[0], problem[0]):
        np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-12)
        assert np.all(ours != start)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "device"),
    [(name, device) for name in OPTIMIZERS if name != "Muon" for device in ("numpy", "torch:cpu")]
    + [("Adam", "jax:cpu")],
)
def test_half_precision_is_updated_in_float32_and_rounded_once(name, dtype, device):
    require(device, dtype)
    rng = np.random.default_rng(0)
    start, gradients = rng.standard_normal((5, 7)), rng.standard_normal((3, 5, 7))
    half = pb.tensor(start, device=device, requires_grad=False).astype(dtype).set_requires_grad(True)
    gradients = [pb.tensor(g, device=device).astype(dtype) for g in gradients]
    exact = half.detach().astype(pb.float32).set_requires_grad(True)
    optimizers = [getattr(pb.optim, name)([w], **OPTIMIZERS[name]) for w in (half, exact)]
    for g in gradients:
        optimizers[0].step([g])
        with pb.no_grad():  # the wide one starts every step from the rounded values
            optimizers[1].step([g.astype(pb.float32)])
            exact[...] = exact.astype(dtype).astype(pb.float32)
        assert half.dtype.name == dtype
        assert (half.astype(pb.float32) == exact).all()
    state = optimizers[0].state_dict()["state"][0]
    assert {value.dtype for value in state.values() if isinstance(value, pb.Tensor)} == {pb.float32}


def test_state_follows_its_parameter_to_another_device():
    w = pb.tensor(np.ones((2, 3)), requires_grad=True)
    reference = pb.tensor(np.ones((2, 3)), requires_grad=True)
    optimizer, unmoved = pb.optim.Adam([w]), pb.optim.Adam([reference])
    for o in (optimizer, unmoved):
        o.step([np.full((2, 3), 0.5)])
    w._raw = jnp.asarray(w._raw)
    optimizer.step([jnp.full((2, 3), 0.25)])
    unmoved.step([np.full((2, 3), 0.25)])
    assert w.device == "jax:cpu"
    np.testing.assert_allclose(w.detach().to_device("numpy").numpy(), reference.detach().numpy(), rtol=1e-12)


def test_state_follows_its_parameter_through_all_devices():
    places = ("numpy", "torch:cpu", "jax:cpu", "torch:cpu", strict.DEVICE, "jax:cpu", strict.DEVICE, "numpy")
    for place in places:
        require(place)
    models = [pb.nn.Linear(2, 1), pb.nn.Linear(2, 1)]
    models[1].load_state_dict(models[0].state_dict())
    for model, route in zip(models, (places, ["numpy"] * len(places))):
        optimizer = pb.optim.AdamW(model.parameters(), lr=0.1)
        for place in route:
            model.to_device(place)
            optimizer.zero_grad()
            pb.mse_loss(model(pb.ones((4, 2), device=place)), pb.ones((4, 1), device=place)).backward()
            optimizer.step()
    for moved, unmoved in zip(models[0].parameters(), models[1].parameters()):
        np.testing.assert_allclose(moved.detach().numpy(), unmoved.detach().numpy(), rtol=1e-5)
