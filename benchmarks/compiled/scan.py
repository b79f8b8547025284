"""A linear recurrence h[t] = a[t] * h[t-1] + b[t] over 1024 steps, batch 4, width 256: gradients of the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import peers

Step = Callable[[], Any]
BATCH, WIDTH = 4, 256


def data(length: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    shape = (BATCH, length, WIDTH)
    return generator.random(shape, np.float32), generator.standard_normal(shape, np.float32)


def steps(length: int = 1024) -> dict[str, Step]:
    makers = {"pullback": pullback, "torch": torch, "jax": jax, "jax.associative": jax_associative}
    made = {name: make(length) for name, make in makers.items() if peers.is_installed(name.partition(".")[0])}
    found = {name: np.array([np.asarray(g).ravel()[::997] for g in step()]) for name, step in made.items()}
    peers.check_equal(found, "scan", 1e-3)
    return {**made, "floor": floor(length)}


def pullback(length: int) -> Step:
    import pullback as pb

    a, b = map(pb.asarray, data(length))
    gradients = pb.compile(pb.grad(lambda a, b: pb.ssm_scan(b, a, axis=1).sum(), argnums=(0, 1)))
    return lambda: gradients(a, b)


def torch(length: int) -> Step:
    import torch

    a, b = (torch.tensor(array, requires_grad=True) for array in data(length))

    def step() -> Any:
        a.grad = b.grad = None
        h, states = torch.zeros(BATCH, WIDTH), []
        for t in range(length):
            h = a[:, t] * h + b[:, t]
            states.append(h)
        torch.stack(states, 1).sum().backward()
        return a.grad, b.grad

    return step


def jax(length: int) -> Step:
    import jax
    import jax.numpy as jnp

    def loss_of(a: Any, b: Any) -> Any:
        def body(h: Any, ab: Any) -> Any:
            h = ab[0] * h + ab[1]
            return h, h

        rows = jnp.moveaxis(a, 1, 0), jnp.moveaxis(b, 1, 0)
        return jax.lax.scan(body, jnp.zeros((BATCH, WIDTH)), rows)[1].sum()

    return _jitted(loss_of, length)


def jax_associative(length: int) -> Step:
    import jax

    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return _jitted(lambda a, b: jax.lax.associative_scan(combine, (a, b), axis=1)[1].sum(), length)


def _jitted(loss_of: Callable[..., Any], length: int) -> Step:
    import jax
    import jax.numpy as jnp

    gradients = jax.jit(jax.grad(loss_of, (0, 1)))
    a, b = map(jnp.array, data(length))
    return lambda: jax.block_until_ready(gradients(a, b))


def floor(length: int) -> Step:
    """Reading a and b, writing h; reading a and h, writing both gradients: as four copies."""
    a, b = data(length)
    out = np.empty_like(a)

    def run() -> None:
        for source in (a, b, a, b):
            np.copyto(out, source)

    return run
