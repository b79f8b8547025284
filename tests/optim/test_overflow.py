"""The optimizer's own overflow is found before it is kept: parameters and state stay as they were."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import guard

from ..backends.installed import needs_llvmlite, require

HUGE = {"float32": 1e30, "float64": 1e200, "bfloat16": 1e30}
MAKERS: dict[str, Callable[[Any], Any]] = {
    "Adam": lambda p: pb.optim.Adam(p, lr=0.1),
    "Adam with amsgrad": lambda p: pb.optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: pb.optim.AdamW(p, lr=0.1),
    "RMSprop": lambda p: pb.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True),
    "Adagrad": lambda p: pb.optim.Adagrad(p, lr=0.1),
    "NAdam": lambda p: pb.optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: pb.optim.RAdam(p, lr=0.1),
    "LAMB": lambda p: pb.optim.LAMB(p, lr=0.1),
    "Adafactor": lambda p: pb.optim.Adafactor(p, lr=0.1),
}
#: Those without squares overflow later, by their rate.
FAST: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: pb.optim.SGD(p, lr=1e250),
    "SGD with momentum": lambda p: pb.optim.SGD(p, lr=1e250, momentum=0.9),
}


def parameters(dtype: Any, device: str = "numpy") -> list[Any]:
    values = np.random.default_rng(0).normal(size=(3, 4))
    shapes = ((3, 4), (4,), (2, 6))
    return [
        pb.tensor(values.reshape(-1)[: int(np.prod(shape))].reshape(shape), dtype, device, requires_grad=True)
        for shape in shapes
    ]


def gradients(weights: list[Any], huge: float | None) -> list[Any]:
    made = [pb.ones_like(w.detach()) * 0.5 for w in weights]
    if huge is not None:
        made[1][2] = huge
    return made


def everything(optimizer: Any, weights: list[Any]) -> list[Any]:
    """All that a step may change, bit for bit."""
    slots = [slot for group in optimizer._slots for slot in group]
    arrays = [w.detach() for w in weights] + [buffer for slot in slots for buffer in slot.buffers]
    bits = [np.asarray(a.to_device("numpy")).tobytes() for a in arrays]
    return [*bits, [slot.step for slot in slots]]


@pytest.mark.parametrize("dtype", HUGE)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("before", [0, 3], ids=["the first step", "a later step"])
def test_a_huge_gradient_changes_nothing_and_is_named(name: str, dtype: str, before: int) -> None:
    require("numpy", dtype)
    weights = parameters(dtype)
    optimizer = MAKERS[name]([("first", weights[0]), ("second", weights[1]), ("third", weights[2])])
    for _ in range(before):
        optimizer.step(gradients(weights, None))
    optimizer.step(gradients(weights, None))  # so that there are buffers to compare
    state = everything(optimizer, weights)
    with pytest.raises(pb.NumericalInstabilityError, match=rf"step {before + 2} .*parameter 'second'.*1e\+"):
        optimizer.step(gradients(weights, HUGE[dtype]))
    assert everything(optimizer, weights) == state
    optimizer.step(gradients(weights, None))
    assert all(np.isfinite(np.asarray(w.detach(), np.float64)).all() for w in weights)


@pytest.mark.parametrize("name", FAST)
def test_a_rate_that_overflows(name: str) -> None:
    weights = parameters("float64")
    optimizer = FAST[name](weights)
    state = [w.detach().copy() for w in weights]
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 1 .*parameter 1"):
        optimizer.step(gradients(weights, 1e200))
    assert all(np.array_equal(np.asarray(w.detach()), np.asarray(s)) for w, s in zip(weights, state))


@pytest.mark.parametrize("name", MAKERS)
def test_large_parameters_are_looked_at_too(name: str) -> None:
    w = pb.tensor(np.ones((400, 400), np.float32), requires_grad=True)
    optimizer = MAKERS[name]([w])
    gradient = np.full((400, 400), 0.1, np.float32)
    optimizer.step([gradient])
    state = everything(optimizer, [w])
    gradient[399, 399] = 1e30
    with pytest.raises(pb.NumericalInstabilityError):
        optimizer.step([gradient])
    assert everything(optimizer, [w]) == state


@pytest.mark.parametrize("name", MAKERS)
def test_large_gradients_that_do_no_harm_are_taken(name: str) -> None:
    """The same bits with a close look as without one."""
    results = []
    for mode in ("raise", "off"):
        weights = parameters("float64")
        optimizer = MAKERS[name](weights)
        with pb.guard(mode):
            for _ in range(3):
                optimizer.step(gradients(weights, 1e152))
        results.append(everything(optimizer, weights))
    assert results[0] == results[1]


@pytest.mark.parametrize("compile", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Lion", "Muon"])
def test_those_without_squares_take_huge_gradients(name: str, dtype: str, compile: bool) -> None:
    """Only their direction counts, so the step is that of the same gradient scaled down."""
    after = []
    for scale in (1.0, HUGE[dtype]):
        w = parameters(dtype)[0]
        optimizer = getattr(pb.optim, name)([w], lr=0.1)
        gradient = pb.tensor(np.random.default_rng(1).normal(size=(3, 4)), dtype) * scale
        step = pb.compile(optimizer.step) if compile else optimizer.step
        for _ in range(2):
            step([gradient])
        after.append(np.asarray(w.detach()))
    np.testing.assert_allclose(after[0], after[1], rtol=1e-5)
    assert abs(after[0] - np.asarray(parameters(dtype)[0].detach())).max() > 0.01


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=needs_llvmlite)], ids=["eager", "compiled"])
def test_a_trainer_stops_with_everything_of_the_last_good_step(compile: bool, tmp_path: Any) -> None:
    x = np.ones((12, 3), np.float32)
    x[8] = 1e15  # in the third batch; its loss and gradient are finite, the gradient's square is not
    model = pb.nn.Linear(3, 1, bias=False)
    optimizer = pb.optim.Adam(model.named_parameters(), lr=0.01)
    seen: list[Any] = []

    class Note(pb.train.Callback):
        def on_step(self, trainer: Any, record: Any) -> None:
            seen.append(everything(optimizer, list(model.parameters())))

    def loss(out: Any, y: Any) -> Any:
        return pb.mean(out * 1e10 * y)

    trainer = pb.train.Trainer(model, loss, optimizer, callbacks=[Note()], compile=compile)
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 3 .*`exp_avg_sq`.*weight"):
        trainer.fit(pb.data.Batches((x, np.ones((12, 1), np.float32)), 4), epochs=1)
    assert len(seen) == 2
    assert everything(optimizer, list(model.parameters())) == seen[-1]


def test_the_guard_says_what_to_do() -> None:
    for mode, moves in (("off", True), ("warn", True), ("raise", False), ("trace", False)):
        weights = parameters("float32")
        optimizer = pb.optim.Adam(weights)
        with pb.guard(mode):
            if mode == "warn":
                with pytest.warns(RuntimeWarning, match=r"step 1 .*exp_avg_sq.*parameter 1"):
                    optimizer.step(gradients(weights, 1e30))
            elif mode == "off":
                optimizer.step(gradients(weights, 1e30))
            else:
                with pytest.raises(pb.NumericalInstabilityError):
                    optimizer.step(gradients(weights, 1e30))
        assert (optimizer._slots[0][0].step == 1) is moves


@pytest.mark.parametrize("name", MAKERS)
def test_in_a_compiled_step(name: str) -> None:
    weights = parameters("float32")
    optimizer = MAKERS[name](weights)

    @pb.compile
    def step(scale: Any) -> Any:
        loss = sum((w * w).sum() for w in weights) + (weights[1] * scale).sum()
        optimizer.step(pb.backward(loss))
        return loss

    for _ in range(3):
        step(pb.tensor(1.0))
    state = everything(optimizer, weights)
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 4 .*parameter 1"):
        step(pb.tensor(1e30))
    assert everything(optimizer, weights) == state
    step(pb.tensor(1.0))
    assert step.traces == 1


def test_gradients_that_are_arguments_of_a_compiled_step() -> None:
    weights = parameters("float32")
    optimizer = pb.optim.Adam(weights)
    step = pb.compile(lambda *grads: optimizer.step(list(grads)))
    for _ in range(3):
        step(*gradients(weights, None))
    state = everything(optimizer, weights)
    with pytest.raises(pb.NumericalInstabilityError, match="step 4"):
        step(*gradients(weights, 1e30))
    assert everything(optimizer, weights) == state


@pytest.mark.parametrize("name", MAKERS)
def test_on_torch(name: str) -> None:
    require("torch")
    weights = parameters("float32", "torch:cpu")
    optimizer = MAKERS[name](weights)
    optimizer.step(gradients(weights, None))
    state = everything(optimizer, weights)
    with pytest.raises(pb.NumericalInstabilityError, match="step 2"):
        optimizer.step(gradients(weights, 1e30))
    assert everything(optimizer, weights) == state


@pytest.mark.filterwarnings("ignore:overflow")
def test_lbfgs_goes_back() -> None:
    w = pb.tensor(np.full(3, 1e20, np.float32), requires_grad=True)
    optimizer = pb.optim.LBFGS([w], lr=1e30)

    def loss() -> Any:
        optimizer.zero_grad()
        value = (w * 1e15).sum()
        value.backward()
        return value

    with pytest.raises(pb.NumericalInstabilityError):
        optimizer.step(loss)
    assert np.asarray(w.detach()).tolist() == [np.float32(1e20)] * 3


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=needs_llvmlite)], ids=["eager", "compiled"])
def test_mlp_fit_leaves_its_parameters(compile: bool) -> None:
    x = np.array([[1e12, 1.0], [1.0, 2.0]], np.float32)
    y = np.array([[1e12], [1.0]], np.float32)
    mlp = pb.Mlp([2, 1], seed=0)
    before = np.array(mlp.parameters)
    with pytest.raises(pb.NumericalInstabilityError, match="step 1"):
        mlp.fit(x, y, epochs=2, batch_size=2, optimizer="adam", lr=0.1, compile=compile)
    assert np.array_equal(before, mlp.parameters)


@pytest.mark.parametrize("how", ["grad", "Gradients", "assigned", "a list"])
@pytest.mark.parametrize("size", [5, 3000])
def test_wherever_the_gradient_comes_from(how: str, size: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(guard.Large, "was_seen", False)  # as in a process that has met no large gradient yet
    weights = [pb.tensor(np.ones(size, np.float32), requires_grad=True) for _ in range(2)]
    optimizer = pb.optim.Adam(weights)
    optimizer.step([pb.ones(size), pb.ones(size)])
    state = everything(optimizer, weights)
    huge = pb.tensor(np.where(np.arange(size) == size - 1, 1e30, 1.0).astype(np.float32))
    loss = weights[0].sum() + (weights[1] * huge).sum()
    with pytest.raises(pb.NumericalInstabilityError, match=r"step 2 .*parameter 1"):
        if how == "grad":
            loss.backward()
            optimizer.step()
        elif how == "Gradients":
            optimizer.step(pb.backward(loss))
        elif how == "assigned":
            weights[0].grad, weights[1].grad = pb.ones(size), huge
            optimizer.step()
        else:
            optimizer.step([None, huge])
    assert everything(optimizer, weights) == state


def test_what_nobody_could_foresee_is_no_secret() -> None:
    w = pb.tensor(np.ones(3, np.float32), requires_grad=True)
    optimizer = pb.optim.SGD([w], lr=1e38)
    w.grad = pb.ones(3)
    w.grad *= 1e10
    with pytest.raises(pb.NumericalInstabilityError, match="The step was kept"):
        optimizer.step()
