"""A chain of 100 small operations, forward and backward: what each system adds to an operation on 4 floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "chain"
SYSTEMS = ("pullback", "torch", "autograd", "mygrad", "jax", "mlx")
NOTES = ("jax: grad under jit; mlx: grad, not compiled; the others run eagerly.",)

STEPS = 50
Run = Callable[[], Any]
Gradients = Callable[[], tuple[np.ndarray, np.ndarray]]


def run(effort: Effort) -> Iterator[Measurement]:
    generator = np.random.default_rng(0)
    a = generator.uniform(0.5, 1.0, 4).astype(np.float32)
    b = generator.uniform(0.5, 1.0, 4).astype(np.float32)
    systems = {name: MAKERS[name](a, b) for name in peers.installed(SYSTEMS)}
    peers.check_equal({name: np.stack(gradients()) for name, (_, gradients) in systems.items()}, NAME)
    for name, microseconds in best_times({name: step for name, (step, _) in systems.items()}, effort).items():
        yield Measurement(NAME, "100 operations", name, "time", microseconds, "us")


def _chain(x0: Any, y: Any) -> Any:
    x = x0
    for _ in range(STEPS):
        x = x * y + x0
    return x


def pullback(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import pullback as pb

    x = pb.tensor(a, requires_grad=True)
    y = pb.tensor(b, requires_grad=True)
    return _with_backward(x, y)


def torch(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import torch

    x = torch.tensor(a, requires_grad=True)
    y = torch.tensor(b, requires_grad=True)
    return _with_backward(x, y)


def _with_backward(x: Any, y: Any) -> tuple[Run, Gradients]:
    """For systems whose tensors have `backward()` and `.grad`, which sums up over the calls as in plain user code."""

    def step() -> None:
        _chain(x, y).sum().backward()

    def gradients() -> tuple[np.ndarray, np.ndarray]:
        x.grad = y.grad = None
        step()
        return x.grad.numpy(), y.grad.numpy()

    return step, gradients


def autograd(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import autograd
    import autograd.numpy as anp

    function = autograd.grad(lambda x, y: anp.sum(_chain(x, y)), (0, 1))
    return lambda: function(a, b), lambda: function(a, b)


def mygrad(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import mygrad

    def gradients() -> tuple[np.ndarray, np.ndarray]:
        x, y = mygrad.tensor(a), mygrad.tensor(b)
        _chain(x, y).sum().backward()
        return x.grad, y.grad

    return gradients, gradients


def jax(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import jax

    function = jax.jit(jax.grad(lambda x, y: _chain(x, y).sum(), (0, 1)))
    x, y = jax.numpy.array(a), jax.numpy.array(b)
    return (
        lambda: jax.block_until_ready(function(x, y)),
        lambda: tuple(np.asarray(gradient) for gradient in function(x, y)),
    )


def mlx(a: np.ndarray, b: np.ndarray) -> tuple[Run, Gradients]:
    import mlx.core as mx

    function = mx.grad(lambda x, y: mx.sum(_chain(x, y)), (0, 1))
    x, y = mx.array(a), mx.array(b)
    return lambda: mx.eval(function(x, y)), lambda: tuple(np.array(gradient) for gradient in function(x, y))


MAKERS = {
    "pullback": pullback,
    "torch": torch,
    "autograd": autograd,
    "mygrad": mygrad,
    "jax": jax,
    "mlx": mlx,
}
