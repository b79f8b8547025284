"""A recurrent network of 1,000 steps, batch 32, 64 inputs, 128 units: a training step with plain gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import peers

Step = Callable[[], Any]
BATCH, WIDTH, UNITS, RATE = 32, 64, 128, 0.05


def data(length: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Weights, inputs and targets."""
    generator = np.random.default_rng(0)

    def numbers(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape, np.float32)

    weights = [0.1 * numbers(WIDTH, UNITS), 0.05 * numbers(UNITS, UNITS), 0.1 * numbers(UNITS)]
    return weights, numbers(length, BATCH, WIDTH), 0.1 * numbers(BATCH, UNITS)


def steps(length: int = 1000) -> dict[str, Step]:
    """A step for each system, all from the same weights; raises if their losses are not the same."""
    makers = {"pullback": pullback, "jax": jax}
    made = {name: make(length) for name, make in makers.items() if peers.is_installed(name)}
    losses = {name: np.array([float(np.asarray(step())) for _ in range(3)]) for name, step in made.items()}
    peers.check_equal(losses, "recurrence", 1e-3)
    return {**made, "floor": floor(length)}


def pullback(length: int) -> Step:
    import pullback as pb

    arrays, xs, y = data(length)
    weights = [pb.tensor(array, requires_grad=True) for array in arrays]
    xs, y = pb.asarray(xs), pb.asarray(y)
    optimizer = pb.optim.SGD(weights, RATE)

    @pb.compile
    def step(xs: Any, y: Any) -> Any:
        w, u, b = weights
        last, _ = pb.scan(lambda h, x: (pb.tanh(x @ w + h @ u + b), None), pb.zeros((BATCH, UNITS)), xs)
        loss = ((last - y) ** 2).mean()
        optimizer.step(pb.backward(loss))
        return loss.detach()

    return lambda: step(xs, y)


def jax(length: int) -> Step:
    import jax
    import jax.numpy as jnp

    arrays, xs, y = data(length)

    def loss_of(weights: Any, xs: Any, y: Any) -> Any:
        w, u, b = weights
        start = jnp.zeros((BATCH, UNITS))
        last, _ = jax.lax.scan(lambda h, x: (jnp.tanh(x @ w + h @ u + b), None), start, xs)
        return ((last - y) ** 2).mean()

    def update(weights: Any, xs: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, xs, y)
        return [w - RATE * g for w, g in zip(weights, gradients)], loss

    compiled = jax.jit(update, donate_argnums=0)
    held, given = [[jnp.array(array) for array in arrays]], (jnp.array(xs), jnp.array(y))

    def step() -> Any:
        held[0], loss = compiled(held[0], *given)
        return jax.block_until_ready(loss)

    return step


def floor(length: int) -> Step:
    """The products alone: those with the state step by step, forward and backward, the others all at once."""
    (w, u, _), xs, y = data(length)
    flat, many = xs.reshape(-1, WIDTH), np.zeros((length * BATCH, UNITS), np.float32)
    h, grown, sums = y.copy(), np.empty_like(u), np.empty_like(w)

    def run() -> None:
        np.matmul(flat, w, out=many)
        for _ in range(length):
            np.matmul(y, u, out=h)
            np.matmul(y, u.T, out=h)
        np.matmul(flat.T, many, out=sums)
        np.matmul(many.T, many, out=grown)

    return run
