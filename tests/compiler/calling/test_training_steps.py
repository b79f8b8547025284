"""Compiled training steps leave what eager ones leave: losses, parameters, gradients, optimizer state, buffers."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: pb.optim.SGD(p, 0.05),
    "SGD-momentum": lambda p: pb.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01),
    "SGD-nesterov": lambda p: pb.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "SGD-dampening": lambda p: pb.optim.SGD(p, 0.05, momentum=0.9, dampening=0.3),
    "Adam": lambda p: pb.optim.Adam(p, 0.01, weight_decay=0.1),
    "Adam-amsgrad": lambda p: pb.optim.Adam(p, 0.01, amsgrad=True),
    "AdamW": lambda p: pb.optim.AdamW(p, 0.01),
    "RMSprop": lambda p: pb.optim.RMSprop(p, 0.01, momentum=0.9, centered=True),
    "Adagrad": lambda p: pb.optim.Adagrad(p, 0.05, lr_decay=0.1),
    "NAdam": lambda p: pb.optim.NAdam(p, 0.01, weight_decay=0.1),
    "RAdam": lambda p: pb.optim.RAdam(p, 0.01, betas=(0.9, 0.8), weight_decay=0.1, decoupled_weight_decay=True),
    "Lion": lambda p: pb.optim.Lion(p, 0.01),
    "LAMB": lambda p: pb.optim.LAMB(p, 0.01),
    "Adafactor": lambda p: pb.optim.Adafactor(p, 0.05),
}


class Net(pb.nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = pb.nn.Linear(5, 8, bias=False)  # the norm takes it away again
        self.norm = pb.nn.BatchNorm1d(8)
        self.drop = pb.nn.Dropout(dropout)
        self.last = pb.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.drop(pb.gelu(self.norm(self.first(x)))))


def batches(count: int = 6, size: int = 7, device: str = "numpy") -> list[tuple[pb.Tensor, pb.Tensor]]:
    generator = np.random.default_rng(0)
    return [
        (
            pb.tensor(generator.standard_normal((size, 5)).astype(np.float32), device=device),
            pb.tensor(generator.integers(0, 3, size), device=device),
        )
        for _ in range(count)
    ]


def trained(
    make_optimizer: Callable[[Any], Any],
    compiled: bool,
    style: str = "grad",
    dropout: float = 0.0,
    device: str = "numpy",
) -> Any:
    pb.random.seed(3)
    net = Net(dropout).to_device(device)
    optimizer = make_optimizer(net.parameters())

    def with_grad(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = pb.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def with_gradients(x: Any, y: Any) -> Any:
        loss = pb.cross_entropy(net(x), y)
        grads = pb.backward(loss)
        grads.clip_global_norm(0.5)
        optimizer.step(grads)
        return loss

    def with_none(x: Any, y: Any) -> Any:
        for p in net.parameters():
            p.grad = None
        loss = pb.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step: Any = {"grad": with_grad, "gradients": with_gradients, "none": with_none}[style]
    if compiled:
        step = pb.compile(step)
    losses = [step(x, y).item() for x, y in batches(device=device)]
    state = {name: np.array(t.numpy()) for name, t in net.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        for name, value in slots.items():
            state[f"{number}.{name}"] = np.array(value.numpy() if isinstance(value, pb.Tensor) else value)
    for name, p in net.named_parameters():
        if p.grad is not None:
            state[f"grad of {name}"] = np.array(p.grad.numpy())
    state["generator"] = np.array(pb.random.get_state()["offset"])
    return losses, state, step


def check(make_optimizer: Callable[[Any], Any], **options: Any) -> Any:
    losses, state, _ = trained(make_optimizer, False, **options)
    found, found_state, step = trained(make_optimizer, True, **options)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    assert found_state.keys() == state.keys()
    for name, expected in state.items():
        assert found_state[name].dtype == expected.dtype
        scale = float(np.abs(expected).max(initial=1e-3))
        np.testing.assert_allclose(found_state[name], expected, rtol=1e-3, atol=2e-4 * scale, err_msg=name)
    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_trains_as_it_does_eagerly(name: str) -> None:
    step = check(OPTIMIZERS[name])
    assert step.traces == 1


@pytest.mark.parametrize("style", ["gradients", "none"])
def test_gradients_may_be_kept_apart_or_cleared(style: str) -> None:
    check(OPTIMIZERS["AdamW"], style=style)


def test_dropout_differs_from_call_to_call_and_is_that_of_the_eager_step() -> None:
    check(OPTIMIZERS["SGD"], dropout=0.4)


def test_a_rate_that_changes_needs_no_new_program() -> None:
    def rates(compiled: bool) -> Any:
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        optimizer = pb.optim.SGD([w], 0.1)

        def step(x: Any) -> None:
            optimizer.step(pb.backward(((w * x) ** 2).sum()))

        run = pb.compile(step) if compiled else step
        for rate in (0.1, 0.05, 0.01):
            optimizer.param_groups[0]["lr"] = rate
            run(pb.tensor([1.0, 3.0]))
        return w.detach().numpy(), run

    expected, _ = rates(False)
    found, run = rates(True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert run.traces == 1


def test_an_option_that_the_formula_looks_at_makes_a_new_program() -> None:
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    optimizer = pb.optim.SGD([w], 0.1)

    @pb.compile
    def step() -> None:
        optimizer.step(pb.backward((w**2).sum()))

    step()
    optimizer.param_groups[0]["weight_decay"] = 0.5
    step()
    np.testing.assert_allclose(w.detach().numpy(), [0.8 * (1 - 0.2 - 0.05), 1.6 * (1 - 0.25)], rtol=1e-6)
    assert step.traces == 2
    assert "weight_decay" in step.recompilations[0]


def test_half_precision_parameters_train_in_single_precision() -> None:
    def run(compiled: bool) -> Any:
        w = pb.tensor(np.linspace(-1, 1, 9), dtype=pb.float16, requires_grad=True)
        optimizer = pb.optim.AdamW([w], 0.01)

        def step(x: Any) -> Any:
            loss = ((w * x) ** 2).sum()
            optimizer.step(pb.backward(loss))
            return loss

        step = pb.compile(step) if compiled else step
        for _ in range(5):
            step(pb.tensor(np.linspace(1, 2, 9), dtype=pb.float16))
        return w.detach().numpy().astype(np.float32)

    np.testing.assert_allclose(run(True), run(False), atol=2e-3)
