"""Averages of parameters: against PyTorch's AveragedModel, no allocation, evaluation with them, modules, state."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import BFLOAT16, optional, require

torch = optional("torch")
swa_utils = optional("torch.optim.swa_utils")

ExponentialMovingAverage = pb.optim.ExponentialMovingAverage


def variable(*shape: int, seed: int = 0, dtype: Any = pb.float32) -> pb.Tensor:
    values = np.random.default_rng(seed).normal(size=shape)
    return pb.tensor(values, dtype=dtype, requires_grad=True)


def values(average: ExponentialMovingAverage) -> list[np.ndarray]:
    return [value.to_device("numpy").numpy() for value in average.state_dict()["averages"].values()]


def moved(parameters: list[pb.Tensor], seed: int) -> None:
    with pb.no_grad():
        for i, parameter in enumerate(parameters):
            step = np.random.default_rng([seed, i]).normal(size=parameter.shape)
            parameter += pb.asarray(step, dtype=parameter.dtype, device=parameter.device)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_agrees_with_torch(decay: float) -> None:
    model = torch.nn.Linear(5, 3).double()
    theirs = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(decay))
    theirs.update_parameters(model)  # the first one there is a copy
    ours = [pb.tensor(p.detach().numpy(), requires_grad=True) for p in model.parameters()]
    average = ExponentialMovingAverage(ours, decay, warmup=False)
    for step in range(5):
        moved(ours, step)
        with torch.no_grad():
            for mine, other in zip(ours, model.parameters()):
                other.copy_(torch.from_numpy(mine.detach().numpy().copy()))
        average.update()
        theirs.update_parameters(model)
        for mine, expected in zip(values(average), theirs.module.parameters()):
            np.testing.assert_allclose(mine, expected.detach(), rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4), (40_001,)])
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_the_formula(shape: tuple[int, ...], device: str) -> None:
    require(device)
    w = pb.asarray(variable(*shape).detach(), device=device).set_requires_grad(True)
    average = ExponentialMovingAverage([w], decay=0.8)
    expected = variable(*shape).detach().numpy().astype(np.float64)
    for n in range(1, 60):
        moved([w], n)
        average.update()
        decay = min(0.8, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * w.detach().to_device("numpy").numpy()
    np.testing.assert_allclose(values(average)[0], expected, rtol=1e-4, atol=1e-5)
    assert average.updates == 59


def test_warmup_forgets_the_start_of_a_short_training() -> None:
    w = pb.tensor([0.0], requires_grad=True)
    with_warmup, without = (ExponentialMovingAverage([w], 0.999, warmup) for warmup in (True, False))
    with pb.no_grad():
        w += 1.0
    for _ in range(50):
        with_warmup.update()
        without.update()
    assert values(with_warmup)[0] > 0.99 and values(without)[0] < 0.05


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_averages_of_half_precision_are_kept_in_float32(dtype, device: str) -> None:
    require(device)
    w = pb.asarray([1.0, 2.0], dtype=dtype, device=device).set_requires_grad(True)
    average = ExponentialMovingAverage([w], decay=0.999, warmup=False)
    with pb.no_grad():
        w += 1.0
    for _ in range(10):
        average.update()
    (value,) = average.state_dict()["averages"].values()
    assert value.dtype == pb.float32
    np.testing.assert_allclose(values(average)[0], np.array([2.0, 3.0]) - 0.999**10, rtol=1e-5)
    with average.applied():
        assert w.dtype == dtype


def test_an_update_on_numpy_allocates_nothing() -> None:
    parameters = [variable(300, 301), variable(70_000, seed=1)]
    average = ExponentialMovingAverage(parameters)
    average.update()
    arrays = [value._raw.ctypes.data for value in average._averages.values()]
    tracemalloc.start()
    average.update()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for _ in range(3):
        average.update()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 4096  # views, no arrays
    assert arrays == [value._raw.ctypes.data for value in average._averages.values()]


def test_parameters_that_are_not_contiguous() -> None:
    w = pb.asarray(np.arange(6.0).reshape(2, 3).T).set_requires_grad(True)
    average = ExponentialMovingAverage([w], decay=0.5, warmup=False)
    with pb.no_grad():
        w *= 3.0
    average.update()
    np.testing.assert_array_equal(values(average)[0], 2 * np.arange(6.0).reshape(2, 3).T)


# -- with the averages in the parameters ---------------------------------------------------------


def test_applied_gives_the_averages_and_takes_them_back() -> None:
    w = variable(3)
    average = ExponentialMovingAverage([w], decay=0.5, warmup=False)
    moved([w], 1)
    average.update()
    own, address, leaf = w.detach().numpy().copy(), w._raw.ctypes.data, w._node
    with average.applied():
        np.testing.assert_array_equal(w.detach().numpy(), values(average)[0])
        grads = pb.backward((w * w).sum())
        np.testing.assert_allclose(grads[w].numpy(), 2 * values(average)[0])
    np.testing.assert_array_equal(w.detach().numpy(), own)
    assert (w._raw.ctypes.data, w._node) == (address, leaf)


def test_writing_while_applied_changes_neither_the_averages_nor_the_parameters() -> None:
    w = variable(3)
    average = ExponentialMovingAverage([w], decay=0.5, warmup=False)
    own, kept = w.detach().numpy().copy(), values(average)[0].copy()
    with average.applied(), pb.no_grad():
        w *= 0.0
    np.testing.assert_array_equal(w.detach().numpy(), own)
    np.testing.assert_array_equal(values(average)[0], kept)


def test_an_error_inside_gives_the_parameters_back() -> None:
    w = variable(3)
    average = ExponentialMovingAverage([w], decay=0.5)
    moved([w], 1)
    own = w.detach().numpy().copy()
    with pytest.raises(ZeroDivisionError), average.applied():
        raise ZeroDivisionError
    np.testing.assert_array_equal(w.detach().numpy(), own)
    average.update()


def test_clones_keep_their_values_and_are_variables_of_their_own() -> None:
    w = variable(3)
    average = ExponentialMovingAverage([w], decay=0.5, warmup=False)
    moved([w], 1)
    average.update()
    clone, own = w.clone(), w.detach().numpy().copy()
    with average.applied():
        np.testing.assert_array_equal(clone.detach().numpy(), own)
        grads = pb.backward((clone * w).sum())
        np.testing.assert_array_equal(grads[clone].numpy(), w.detach().numpy())
        np.testing.assert_array_equal(grads[w].numpy(), own)


@pytest.mark.parametrize("what", ["update", "copy_to", "applied"])
def test_what_makes_no_sense_while_applied(what: str) -> None:
    average = ExponentialMovingAverage([variable(3)])
    with average.applied(), pytest.raises(pb.PullbackError, match="outside"):
        if what == "applied":
            with average.applied():
                pass
        else:
            getattr(average, what)()


def test_copy_to() -> None:
    w, other = variable(3), variable(3, seed=5)
    average = ExponentialMovingAverage([w], decay=0.5, warmup=False)
    moved([w], 1)
    average.update()
    expected = values(average)[0].copy()
    average.copy_to([other])
    average.copy_to()
    moved([w], 2)
    average.update()
    np.testing.assert_array_equal(other.detach().numpy(), expected)
    assert not np.array_equal(values(average)[0], expected)
    with pytest.raises(pb.ShapeError, match=r"\(4,\)"):
        average.copy_to([variable(4)])
    with pytest.raises(pb.ConfigurationError, match="unexpected: 1"):
        average.copy_to([other, w])


# -- modules -------------------------------------------------------------------------------------


def test_a_modules_parameters_and_floating_point_buffers() -> None:
    model = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.BatchNorm1d(4))
    average = ExponentialMovingAverage(model, decay=0.5, warmup=False)
    start = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    model.train()
    model(variable(8, 3).detach())
    moved(list(model.parameters()), 3)
    average.update()
    now = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    assert not np.array_equal(now["1.running_mean"], start["1.running_mean"])
    with average.applied():
        for name, value in model.state_dict().items():
            expected = now[name] if value.dtype.kind == "int" else (start[name] + now[name]) / 2
            np.testing.assert_allclose(value.numpy(), expected, rtol=1e-6, atol=1e-7)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), now[name])
    other = pb.nn.Sequential(pb.nn.Linear(3, 4), pb.nn.BatchNorm1d(4))
    average.copy_to(other)
    np.testing.assert_allclose(other[0].weight.detach().numpy(), (start["0.weight"] + now["0.weight"]) / 2, rtol=1e-6)


def test_a_model_that_is_moved_takes_its_averages_along() -> None:
    require("torch:cpu")
    model = pb.nn.Linear(3, 2)
    average = ExponentialMovingAverage(model, decay=0.5, warmup=False)
    expected = model.weight.detach().numpy().copy()
    model.to_device("torch:cpu")
    average.update()
    with average.applied():
        assert model.weight.device == "torch:cpu"
        np.testing.assert_allclose(model.weight.detach().to_device("numpy").numpy(), expected, rtol=1e-6)


# -- state and errors ----------------------------------------------------------------------------


def test_state_is_restored() -> None:
    w = variable(3)
    average = ExponentialMovingAverage([("weight", w)], decay=0.9)
    moved([w], 1)
    average.update()
    state = average.state_dict()
    assert list(state["averages"]) == ["weight"]
    other = ExponentialMovingAverage([("weight", variable(3, seed=9))], decay=0.5, warmup=False)
    other.load_state_dict(state)
    for step in range(3):
        moved([w], step)
        average.update()
    assert (other.decay, other.warmup, other.updates) == (0.9, True, 1)
    np.testing.assert_array_equal(values(other)[0], state["averages"]["weight"].numpy())  # not those of later
    other.load_state_dict({**state, "averages": {"weight": np.ones(3)}})
    assert values(other)[0].dtype == np.float32


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"averages": {}}, pb.ConfigurationError),
        ({"averages": {"0": np.zeros(4)}}, pb.ShapeError),
        ({"averages": {"0": np.zeros(3), "1": np.zeros(3)}}, pb.ConfigurationError),
        ({"decay": 1.5}, pb.ConfigurationError),
        ({"updates": -1}, pb.ConfigurationError),
        ({"more": 1}, pb.ConfigurationError),
    ],
)
def test_a_bad_state_changes_nothing(change: dict[str, Any], error: type[Exception]) -> None:
    average = ExponentialMovingAverage([variable(3)], decay=0.9)
    good = {"decay": 0.1, "warmup": False, "updates": 5, "averages": {"0": np.zeros(3)}}
    with pytest.raises(error):
        average.load_state_dict({**good, **change})
    assert (average.decay, average.updates) == (0.9, 0)
    np.testing.assert_array_equal(values(average)[0], variable(3).detach().numpy())


@pytest.mark.parametrize(
    "parameters",
    [variable(3), [1.0], [pb.asarray([1, 2])], [variable(3) * 2], {"w": variable(3)}],
    ids=["one tensor", "a number", "integers", "a result", "a dict"],
)
def test_what_cannot_be_averaged_is_refused(parameters: Any) -> None:
    with pytest.raises(pb.DtypeError):
        ExponentialMovingAverage(parameters)


@pytest.mark.parametrize("decay", [1.0, -0.1, float("nan"), "0.9"])
def test_bad_decays_are_refused(decay: Any) -> None:
    with pytest.raises(pb.ConfigurationError, match="decay"):
        ExponentialMovingAverage([variable(3)], decay)
    with pytest.raises(pb.ConfigurationError, match="no parameters"):
        ExponentialMovingAverage([])
    with pytest.raises(pb.ConfigurationError, match="same name"):
        ExponentialMovingAverage([("w", variable(3)), ("w", variable(3))])
