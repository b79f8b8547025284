"""Saving and loading: a resumed optimizer goes on bit for bit, in Pullback and from PyTorch."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import optional, require
from .problems import parameters, values
from .test_backends import OPTIMIZERS
from .test_optimizer import SHAPES, make, snapshot

torch = optional("torch")


def steps(optimizer, seeds):
    for seed in seeds:
        optimizer.step(values(SHAPES, seed=seed))


def state_of(name="Adam", count=2, **options):
    tensors = parameters(values(SHAPES))
    optimizer = make(name, tensors, **options)
    steps(optimizer, range(1, 1 + count))
    return optimizer, tensors


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("way", ["directly", "through files"])
def test_goes_on_bit_for_bit(name, way, tmp_path):
    optimizer, tensors = state_of(name)
    state = optimizer.state_dict()
    copies = parameters(snapshot(tensors))
    steps(optimizer, (3, 4))
    if way == "through files":
        arrays = {
            f"{i}.{key}": v for i, s in state["state"].items() for key, v in s.items() if isinstance(v, pb.Tensor)
        }
        pb.save(arrays, tmp_path / "state.safetensors")
        numbers = {i: {k: v for k, v in s.items() if f"{i}.{k}" not in arrays} for i, s in state["state"].items()}
        state = json.loads(json.dumps({"state": numbers, "param_groups": state["param_groups"]}))
        for key, value in pb.load(tmp_path / "state.safetensors").items():
            number, _, buffer = key.partition(".")
            state["state"][number][buffer] = value
    resumed = getattr(pb.optim, name)(copies)
    resumed.load_state_dict(state)
    steps(resumed, (3, 4))
    for a, b in zip(snapshot(copies), snapshot(tensors)):
        np.testing.assert_array_equal(a, b)
    assert resumed.param_groups[0]["lr"] == OPTIMIZERS[name]["lr"]


@pytest.mark.usefixtures("pytorchs_numbers_in_float64")
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if hasattr(torch.optim, name) and name != "Muon"])
@pytest.mark.parametrize("steps_before", [0, 3])
def test_goes_on_from_pytorchs_state(name, steps_before):
    theirs = [torch.tensor(value, requires_grad=True) for value in values(SHAPES)]
    reference = getattr(torch.optim, name)(theirs, **OPTIMIZERS[name])

    def torch_step(seed):
        for w, g in zip(theirs, values(SHAPES, seed=seed)):
            w.grad = torch.tensor(g)
        reference.step()

    for seed in range(steps_before):
        torch_step(seed)
    ours = parameters([np.array(w.detach().numpy()) for w in theirs])
    optimizer = getattr(pb.optim, name)(ours)
    optimizer.load_state_dict(reference.state_dict())
    for seed in range(steps_before, steps_before + 3):
        torch_step(seed)
        steps(optimizer, [seed])
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)
    our_state, their_state = optimizer.state_dict(), reference.state_dict()
    assert our_state["state"][0].keys() == their_state["state"][0].keys()
    assert our_state["param_groups"][0].keys() <= their_state["param_groups"][0].keys()


@pytest.mark.usefixtures("pytorchs_numbers_in_float64")
@pytest.mark.parametrize("name", ["Adam", "NAdam", "RAdam"])
def test_pytorch_loads_our_state(name):
    optimizer, tensors = state_of(name)
    state = optimizer.state_dict()
    for entry in state["state"].values():
        entry.update({k: torch.tensor(v.numpy()) for k, v in entry.items() if isinstance(v, pb.Tensor)})
    theirs = [torch.tensor(value, requires_grad=True) for value in snapshot(tensors)]
    reference = getattr(torch.optim, name)(theirs)
    reference.load_state_dict(state)
    steps(optimizer, [7])
    for w, g in zip(theirs, values(SHAPES, seed=7)):
        w.grad = torch.tensor(g)
    reference.step()
    for a, b in zip(tensors, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


def test_a_saved_state_does_not_change_and_is_copied_only_while_it_is_held():
    optimizer, _ = state_of()
    state = optimizer.state_dict()["state"][0]["exp_avg"]
    kept = np.array(state.numpy())
    before = optimizer._slots[0][0].buffers[0]._raw.ctypes.data
    steps(optimizer, [5])
    np.testing.assert_array_equal(state.numpy(), kept)
    address = optimizer._slots[0][0].buffers[0]._raw.ctypes.data
    assert address != before
    optimizer.state_dict()
    steps(optimizer, [6])
    assert optimizer._slots[0][0].buffers[0]._raw.ctypes.data == address


def test_a_loaded_state_is_not_changed_by_steps():
    optimizer, tensors = state_of()
    state = optimizer.state_dict()
    arrays = {
        i: {k: np.array(v.numpy()) if k != "step" else v for k, v in s.items()} for i, s in state["state"].items()
    }
    kept = arrays[0]["exp_avg"].copy()
    resumed = pb.optim.Adam(tensors)
    resumed.load_state_dict({**state, "state": arrays})
    steps(resumed, [5])
    np.testing.assert_array_equal(arrays[0]["exp_avg"], kept)


def test_state_is_moved_to_the_parameters_device():
    require("torch:cpu")
    optimizer, tensors = state_of()
    moved = parameters(snapshot(tensors), "torch:cpu")
    resumed = pb.optim.Adam(moved)
    resumed.load_state_dict(optimizer.state_dict())
    assert resumed.state_dict()["state"][0]["exp_avg"].device == "torch:cpu"
    steps(optimizer, [5])
    resumed.step([pb.tensor(g, device="torch:cpu") for g in values(SHAPES, seed=5)])
    for a, b in zip(moved, tensors):
        np.testing.assert_allclose(a.detach().to_device("numpy").numpy(), b.detach().numpy(), rtol=1e-12)


def broken(state, change):
    copy = {"state": {i: dict(s) for i, s in state["state"].items()}, "param_groups": [dict(state["param_groups"][0])]}
    change(copy)
    return copy


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s.pop("state"), pb.ConfigurationError, '"state"'),
        (lambda s: s["param_groups"][0].update(params=[0]), pb.ConfigurationError, r"\[1\] parameters.*\[2\]"),
        (lambda s: s["param_groups"].append(s["param_groups"][0]), pb.ConfigurationError, r"\[2, 2\]"),
        (lambda s: s["param_groups"][0].pop("betas"), pb.ConfigurationError, "no betas"),
        (lambda s: s["param_groups"][0].update(lr=-1.0), pb.ConfigurationError, "lr is -1"),
        (lambda s: s["param_groups"][0].update(betas=(None, 0.9)), pb.ConfigurationError, "betas must be a number"),
        (lambda s: s["state"][1].update(step=-1), pb.ConfigurationError, "parameter 1 is after -1 steps"),
        (lambda s: s["state"][1].pop("exp_avg"), pb.ConfigurationError, "parameter 1"),
        (lambda s: s["state"][1].update(exp_avg=np.ones((3, 4))), pb.ShapeError, r"exp_avg of parameter 1.*\(3, 4\)"),
        (lambda s: s["state"][1].update(exp_avg=np.ones((3, 3), np.float32)), pb.DtypeError, "float32, not float64"),
        (lambda s: s["state"][1].update(exp_avg="none"), pb.DtypeError, "str"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, error, message):
    optimizer, _ = state_of("Adam", lr=0.02)
    other, _ = state_of("Adam", 4, lr=0.5)
    before = optimizer.state_dict()
    with pytest.raises(error, match=message):
        optimizer.load_state_dict(broken(other.state_dict(), change))
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for i in (0, 1):
        assert after["state"][i]["step"] == before["state"][i]["step"]
        assert (after["state"][i]["exp_avg"] == before["state"][i]["exp_avg"]).all()


def test_the_state_of_another_kind_of_optimizer_is_refused():
    optimizer, tensors = state_of("SGD")
    with pytest.raises(pb.ConfigurationError, match="another kind"):
        pb.optim.Adam(tensors).load_state_dict(optimizer.state_dict())


def test_half_precision_state_of_pytorchs_is_widened():
    w = pb.tensor(np.ones(3, np.float16), requires_grad=True)
    theirs = torch.ones(3, dtype=torch.float16, requires_grad=True)
    reference = torch.optim.SGD([theirs], momentum=0.9)
    theirs.grad = torch.ones(3, dtype=torch.float16)
    reference.step()
    optimizer = pb.optim.SGD([w])
    optimizer.load_state_dict(reference.state_dict())
    assert optimizer.state_dict()["state"][0]["momentum_buffer"].dtype == pb.float32
