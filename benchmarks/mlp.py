"""A network 128-256-256-10 (tanh) with buffers allocated once: `pb.Mlp`, NumPy by hand, PyTorch eager.

NumPy by hand is straight code for this one network: every result goes into a buffer, weights and gradients are those
of `pb.Mlp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "mlp"
SYSTEMS = ("pullback", "numpy", "torch")
NOTES = (
    "forward: the outputs alone, without gradients (torch: inference_mode).",
    "gradients: forward, mean squared error and all gradients, that of the input among them.",
    "step: the same without the input's gradient, and an update by gradient descent.",
)

SIZES = (128, 256, 256, 10)
BATCHES = (1, 8, 32, 128)
RATE = 1e-3

Run = Callable[[], Any]


class Data(NamedTuple):
    """A batch, and the weights (out, in) and biases to start from; one array for each."""

    x: np.ndarray
    y: np.ndarray
    weights: list[np.ndarray]
    biases: list[np.ndarray]


class System(NamedTuple):
    """What is timed, and what it computes: the output, and all gradients as one vector, the input's last."""

    forward: Run
    gradients: Run
    step: Run
    result: Callable[[], np.ndarray]


def data(batch: int) -> Data:
    generator = np.random.default_rng(0)
    weights = [(generator.standard_normal((n, m)) / np.sqrt(m)).astype(np.float32) for m, n in pairwise(SIZES)]
    biases = [(0.1 * generator.standard_normal(n)).astype(np.float32) for n in SIZES[1:]]
    x = generator.standard_normal((batch, SIZES[0])).astype(np.float32)
    y = generator.standard_normal((batch, SIZES[-1])).astype(np.float32)
    return Data(x, y, weights, biases)


def run(effort: Effort) -> Iterator[Measurement]:
    effort = effort._replace(seconds=effort.seconds / 4)  # differences are small: shorter turns are interrupted less
    for batch in BATCHES:
        systems = {name: MAKERS[name](data(batch)) for name in peers.installed(SYSTEMS)}
        peers.check_equal({name: system.result() for name, system in systems.items()}, f"{NAME}, batch {batch}")
        for metric in ("forward", "gradients", "step"):
            functions = {name: getattr(system, metric) for name, system in systems.items()}
            for name, microseconds in best_times(functions, effort).items():
                yield Measurement(NAME, f"batch {batch}", name, metric, microseconds, "us")


def pullback(given: Data) -> System:
    import pullback as pb
    from pullback.mlp import losses

    mlp = pb.Mlp(SIZES, activation="tanh")
    for layer, (w, b) in enumerate(zip(given.weights, given.biases)):
        mlp.weights(layer)[...] = w
        mlp.biases(layer)[...] = b
    batch = len(given.x)
    x, y = (given.x[0], given.y[0]) if batch == 1 else (given.x, given.y)  # one sample is a vector
    scratch, grads = mlp.scratch(batch), mlp.gradients(batch)
    bare = mlp.gradients(batch, input_gradient=False)
    mse, descend = losses.mse, pb.optim.SGD([mlp.parameters], lr=RATE).step
    bare_gradients = [bare.parameters]

    def gradients() -> float:
        loss = mse(mlp.forward(x, scratch), y, grads)
        mlp.backward(x, scratch, grads)
        return loss

    def step() -> float:
        loss = mse(mlp.forward(x, scratch), y, bare)
        mlp.backward(x, scratch, bare)
        descend(bare_gradients)
        return loss

    def result() -> np.ndarray:
        loss = gradients()
        return _joined(loss, mlp.forward(x, scratch), grads.parameters, grads.d_input)

    return System(partial(mlp.forward, x, scratch), gradients, step, result)


def numpy(given: Data) -> System:
    """Parameters and gradients are views of one vector each, so that the update is two calls."""
    x, y = given.x, given.y
    n = len(x)
    dot, add, subtract, multiply, tanh = np.dot, np.add, np.subtract, np.multiply, np.tanh
    flat, (w0, b0, w1, b1, w2, b2) = _flat(given)
    d_flat, (d_w0, d_b0, d_w1, d_b1, d_w2, d_b2) = _flat(given)
    w0t, w1t, w2t = w0.T, w1.T, w2.T
    h0, h1, out = (np.empty((n, m), np.float32) for m in SIZES[1:])
    g0, g1, g2 = (np.empty((n, m), np.float32) for m in SIZES[1:])
    g0t, g1t, g2t = g0.T, g1.T, g2.T
    t0, t1 = np.empty_like(h0), np.empty_like(h1)
    d_x, changes, ones = np.empty_like(x), np.empty_like(flat), np.ones(n, np.float32)
    g2_flat = g2.reshape(-1)
    scale, one, rate = np.float32(2 / y.size), np.float32(1), np.float32(RATE)
    outer = np.matmul if n > 1 else np.dot  # matmul has no fast way for the product of a column and a row
    if n == 1:  # products of a matrix and a vector, sums that need no broadcasting, gradients of biases in place
        x0, y0, d_x0 = x[0], y[0], d_x[0]
        v0, v1, v_out, u0, u1 = h0[0], h1[0], out[0], t0[0], t1[0]
        g0t, g1t, g2t = (d_b[:, None] for d_b in (d_b0, d_b1, d_b2))

    def forward() -> np.ndarray:
        dot(x, w0t, h0)
        add(h0, b0, h0)
        tanh(h0, h0)
        dot(h0, w1t, h1)
        add(h1, b1, h1)
        tanh(h1, h1)
        dot(h1, w2t, out)
        add(out, b2, out)
        return out

    def backward() -> float:
        forward()
        subtract(out, y, g2)
        loss = dot(g2_flat, g2_flat) / y.size
        multiply(g2, scale, g2)
        outer(g2t, h1, d_w2)
        dot(ones, g2, d_b2)
        dot(g2, w2, g1)
        multiply(h1, h1, t1)
        subtract(one, t1, t1)
        multiply(g1, t1, g1)
        outer(g1t, h0, d_w1)
        dot(ones, g1, d_b1)
        dot(g1, w1, g0)
        multiply(h0, h0, t0)
        subtract(one, t0, t0)
        multiply(g0, t0, g0)
        outer(g0t, x, d_w0)
        dot(ones, g0, d_b0)
        return float(loss)

    def forward_single() -> np.ndarray:
        dot(w0, x0, v0)
        add(v0, b0, v0)
        tanh(v0, v0)
        dot(w1, v0, v1)
        add(v1, b1, v1)
        tanh(v1, v1)
        dot(w2, v1, v_out)
        add(v_out, b2, v_out)
        return out

    def backward_single() -> float:
        forward_single()
        subtract(v_out, y0, d_b2)
        loss = dot(d_b2, d_b2) / y.size
        multiply(d_b2, scale, d_b2)
        outer(g2t, h1, d_w2)
        dot(d_b2, w2, d_b1)
        multiply(v1, v1, u1)
        subtract(one, u1, u1)
        multiply(d_b1, u1, d_b1)
        outer(g1t, h0, d_w1)
        dot(d_b1, w1, d_b0)
        multiply(v0, v0, u0)
        subtract(one, u0, u0)
        multiply(d_b0, u0, d_b0)
        outer(g0t, x, d_w0)
        return float(loss)

    run_forward, run_backward = (forward_single, backward_single) if n == 1 else (forward, backward)
    first_gradient, first_result = (d_b0, d_x0) if n == 1 else (g0, d_x)

    def gradients() -> float:
        loss = run_backward()
        dot(first_gradient, w0, first_result)
        return loss

    def step() -> float:
        loss = run_backward()
        multiply(d_flat, rate, changes)
        subtract(flat, changes, flat)
        return loss

    return System(run_forward, gradients, step, lambda: _joined(gradients(), run_forward(), d_flat, d_x))


def _flat(given: Data) -> tuple[np.ndarray, list[np.ndarray]]:
    """All parameters in a vector, and the views of it that are the weights and biases of each layer."""
    arrays = [array for pair in zip(given.weights, given.biases) for array in pair]
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    parts = np.split(flat, np.cumsum([array.size for array in arrays])[:-1])
    return flat, [part.reshape(array.shape) for part, array in zip(parts, arrays)]


def torch(given: Data) -> System:
    import torch

    layers: list[torch.nn.Module] = []
    for w, b in zip(given.weights, given.biases):
        layer = torch.nn.Linear(w.shape[1], w.shape[0])
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w))
            layer.bias.copy_(torch.tensor(b))
        layers += [layer, torch.nn.Tanh()]
    model = torch.nn.Sequential(*layers[:-1])
    x, y = torch.tensor(given.x), torch.tensor(given.y)
    tracked = x.clone().requires_grad_()
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    mse = torch.nn.functional.mse_loss

    def forward() -> Any:
        with torch.inference_mode():
            return model(x)

    def gradients() -> Any:
        optimizer.zero_grad()
        tracked.grad = None
        loss = mse(model(tracked), y)
        loss.backward()
        return loss

    def step() -> Any:
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def result() -> np.ndarray:
        loss = gradients().item()
        parameters = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        return _joined(loss, forward().numpy(), parameters.numpy(), tracked.grad.numpy())

    return System(forward, gradients, step, result)


def _joined(loss: float, output: Any, parameters: Any, d_input: Any) -> np.ndarray:
    return np.concatenate([[loss], output.ravel(), parameters.ravel(), d_input.ravel()])


MAKERS = {"pullback": pullback, "numpy": numpy, "torch": torch}
