"""A network of tanh layers: mean squared error, gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import peers
from ..eager_mlp import RATE, Network, network, numpy as products, torch

Step = Callable[[], Any]


def steps(sizes: tuple[int, ...], batch: int) -> dict[str, Step]:
    """A step for each system, all from the same weights; raises if their losses are not the same."""
    net = network(sizes, batch)
    makers = {"pullback": pullback, "torch": torch, "torch.compile": torch_compiled, "jax": jax, "mlx": mlx}
    made = {name: make(net) for name, make in makers.items() if peers.is_installed(name.partition(".")[0])}
    losses = {name: np.array([float(step().item()) for _ in range(5)]) for name, step in made.items()}
    peers.check_equal(losses, f"mlp {sizes}")
    return {**made, "floor": products(net)}


def pullback(net: Network, device: str = "numpy") -> Step:
    import pullback as pb

    layers: list[Any] = []
    for w, b in zip(net.weights, net.biases):
        layer = pb.nn.Linear(w.shape[1], w.shape[0])
        layer.load_state_dict({"weight": w, "bias": b})
        layers += [layer, pb.nn.Tanh()]
    model = pb.nn.Sequential(*layers[:-1]).to_device(device)
    optimizer = pb.optim.SGD(model.parameters(), RATE)
    x, y = pb.tensor(net.x, device=device), pb.tensor(net.y, device=device)

    @pb.compile
    def step(x: Any, y: Any) -> Any:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.step(pb.backward(loss))
        return loss

    return lambda: step(x, y)


def torch_compiled(net: Network) -> Step:
    from torch import compile

    return torch(net, compile)


def jax(net: Network) -> Step:
    import jax
    import jax.numpy as jnp

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        h = x
        for i, (w, b) in enumerate(parameters):
            h = h @ w.T + b
            if i < len(parameters) - 1:
                h = jnp.tanh(h)
        return ((h - y) ** 2).mean()

    def update(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients), loss

    compiled = jax.jit(update, donate_argnums=0)
    held = [[(jnp.array(w), jnp.array(b)) for w, b in zip(net.weights, net.biases)]]
    x, y = jnp.array(net.x), jnp.array(net.y)

    def step() -> Any:
        held[0], loss = compiled(held[0], x, y)
        return jax.block_until_ready(loss)

    return step


def mlx(net: Network) -> Step:
    import mlx.core as mx

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        h = x
        for i, (w, b) in enumerate(parameters):
            h = h @ w.T + b
            if i < len(parameters) - 1:
                h = mx.tanh(h)
        return ((h - y) ** 2).mean()

    value_and_grad = mx.value_and_grad(loss_of)

    def update(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = value_and_grad(parameters, x, y)
        return [(w - RATE * dw, b - RATE * db) for (w, b), (dw, db) in zip(parameters, gradients)], loss

    compiled = mx.compile(update)
    held = [[(mx.array(w), mx.array(b)) for w, b in zip(net.weights, net.biases)]]
    x, y = mx.array(net.x), mx.array(net.y)

    def step() -> Any:
        held[0], loss = compiled(held[0], x, y)
        mx.eval(loss, held[0])
        return loss

    return step
