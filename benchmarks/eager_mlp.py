"""One training step (tanh layers, mean squared error, gradient descent) of four networks, run eagerly.

Each system's step is written the way its users write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "eager-mlp"
SYSTEMS = ("pullback", "torch", "autograd", "numpy")
NOTES = (
    "numpy: the matrix products alone, without gradients of anything else: the floor.",
    "guard cost: the time with the numerics guard (the default) over the time without it.",
)

RATE = 1e-3


class Network(NamedTuple):
    """A network's sizes with its first weights and its data; weights are (out, in)."""

    sizes: tuple[int, ...]
    batch: int
    weights: list[np.ndarray]
    biases: list[np.ndarray]
    x: np.ndarray
    y: np.ndarray


WORKLOADS = {
    "tiny 2-16-16-1, batch 1": ((2, 16, 16, 1), 1),
    "small 2-64-64-1, batch 32": ((2, 64, 64, 1), 32),
    "mnist 784-512-512-10, batch 128": ((784, 512, 512, 10), 128),
    "deep 8 x 256, batch 64": ((256,) * 9, 64),
}


def network(sizes: tuple[int, ...], batch: int) -> Network:
    generator = np.random.default_rng(0)
    pairs = list(pairwise(sizes))
    weights = [(generator.standard_normal((n, m)) / np.sqrt(m)).astype(np.float32) for m, n in pairs]
    biases = [np.zeros(n, np.float32) for n in sizes[1:]]
    x = generator.standard_normal((batch, sizes[0])).astype(np.float32)
    y = generator.standard_normal((batch, sizes[-1])).astype(np.float32)
    return Network(sizes, batch, weights, biases, x, y)


def run(effort: Effort) -> Iterator[Measurement]:
    for workload, (sizes, batch) in WORKLOADS.items():
        net = network(sizes, batch)
        steps = {system: MAKERS[system](net) for system in peers.installed(SYSTEMS)}
        losses = {system: _losses(step) for system, step in steps.items() if system != "numpy"}
        peers.check_equal(losses, f"{NAME}, {workload}")
        for system, microseconds in best_times(steps, effort).items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
        yield Measurement(NAME, workload, "pullback", "guard cost", _guard_cost(steps["pullback"], effort), "ratio")


def _guard_cost(step: Callable[[], Any], effort: Effort) -> float:
    """The time of a step with the guard over that without: a few percent, so the two take turns by themselves."""
    modes = {mode: _guarded(step, mode) for mode in ("raise", "off")}
    times = best_times(modes, effort._replace(rounds=2 * effort.rounds))
    return times["raise"] / times["off"]


def _guarded(step: Callable[[], Any], mode: str) -> Callable[[], Any]:
    import pullback as pb

    def guarded() -> Any:
        with pb.guard(mode):
            return step()

    return guarded


def _losses(step: Callable[[], Any]) -> np.ndarray:
    """The losses of the first steps: equal only if values, gradients and updates are."""
    return np.array([float(step().item()) for _ in range(5)])


def pullback(net: Network) -> Callable[[], Any]:
    import pullback as pb

    x, y = pb.tensor(net.x), pb.tensor(net.y)
    weights = [pb.tensor(w, requires_grad=True) for w in net.weights]
    biases = [pb.tensor(b, requires_grad=True) for b in net.biases]
    parameters = [*weights, *biases]
    hidden = list(zip(weights[:-1], biases[:-1]))

    def step() -> Any:
        h = x
        for w, b in hidden:
            h = pb.tanh(pb.linear(h, w, b))
        loss = pb.mean(pb.square(pb.linear(h, weights[-1], biases[-1]) - y))
        loss.backward()
        with pb.no_grad():
            for p in parameters:
                p -= RATE * p.grad
                p.grad = None
        return loss

    return step


def torch_model(net: Network) -> Any:
    """The network as a torch module, with its first weights."""
    import torch

    layers: list[torch.nn.Module] = []
    for w, b in zip(net.weights, net.biases):
        layer = torch.nn.Linear(w.shape[1], w.shape[0])
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w))
            layer.bias.copy_(torch.tensor(b))
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def torch(net: Network, prepared: Callable[[Any], Any] = lambda loss_of: loss_of) -> Callable[[], Any]:
    """A step with torch; `prepared` may compile the function of the loss."""
    import torch

    model = torch_model(net)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    x, y = torch.tensor(net.x), torch.tensor(net.y)
    loss_of = prepared(lambda x, y: ((model(x) - y) ** 2).mean())

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def autograd(net: Network) -> Callable[[], Any]:
    import autograd
    import autograd.numpy as anp

    def loss_of(parameters: list[tuple[Any, Any]]) -> Any:
        h = net.x
        for w, b in parameters[:-1]:
            h = anp.tanh(anp.dot(h, w.T) + b)
        w, b = parameters[-1]
        return anp.mean((anp.dot(h, w.T) + b - net.y) ** 2)

    value_and_grad = autograd.value_and_grad(loss_of)
    parameters = [(w.copy(), b.copy()) for w, b in zip(net.weights, net.biases)]

    def step() -> Any:
        loss, gradients = value_and_grad(parameters)
        for (w, b), (dw, db) in zip(parameters, gradients):
            w -= RATE * dw
            b -= RATE * db
        return loss

    return step


def numpy(net: Network) -> Callable[[], Any]:
    weights = [w.T.copy() for w in net.weights]

    def products() -> None:
        inputs = [net.x]
        for w in weights:
            inputs.append(inputs[-1] @ w)
        g = inputs.pop()
        for w, h in zip(reversed(weights), reversed(inputs)):
            h.T @ g
            if h is not net.x:
                g = g @ w.T

    return products


MAKERS = {"pullback": pullback, "torch": torch, "autograd": autograd, "numpy": numpy}
