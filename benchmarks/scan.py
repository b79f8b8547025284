"""Scans of state-space models: training speed beside the memory's, length and memory, selective scans, streams."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .compiled import scan
from .measure import Effort, Measurement, best_times

NAME = "scan"
SYSTEMS = ("pullback", "torch", "jax")
NOTES = (
    "scan: gradients of the sum over 1024 steps, batch 4, width 256, float32; floor: as many bytes copied (see there).",
    "length: gradients, nanoseconds for each number of a scan of 16 channels; floor: its four copies.",
    "memory: the most that there is during a backward of a scan, over what it is given and what it makes.",
    "selective: gradients of all arguments of Mamba's scan, batch 2, length 512, 128 channels, 16 states; jax by its "
    "associative scan, with as much kept for the gradient as it likes; torch step by step.",
    "stream: a step of two layers of Mamba of width 64.",
)

Step = Callable[[], Any]


def run(effort: Effort) -> Iterator[Measurement]:
    peers.two_threads()
    effort = effort if effort.is_quick else Effort(rounds=30, seconds=0.05)
    for workload, steps in (("scan", _training(effort)), ("selective", _selective(effort)), ("stream", _stream())):
        slow = {"torch": steps.pop("torch")} if "torch" in steps else {}
        times = best_times(steps, effort)
        if slow:  # a second for a call
            times |= best_times(slow, Effort(rounds=1, seconds=0.0))
        for system, microseconds in times.items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
    yield from _by_length(effort)
    yield Measurement(NAME, "scan", "pullback", "memory", _memory_of_backward(), "ratio")


# -- linear recurrences ----------------------------------------------------------------------------


def _training(effort: Effort) -> dict[str, Step]:
    steps = scan.steps(16 if effort.is_quick else 1024)
    return {**steps, "pullback eager": _eager(16 if effort.is_quick else 1024)}


def _eager(length: int) -> Step:
    import pullback as pb

    a, x = map(pb.asarray, scan.data(length))
    gradients = pb.grad(lambda a, x: pb.ssm_scan(x, a, axis=1).sum(), argnums=(0, 1))
    return lambda: gradients(a, x)


def _by_length(effort: Effort) -> Iterator[Measurement]:
    import pullback as pb

    gradients = pb.grad(lambda a, x: pb.ssm_scan(x, a, axis=0).sum(), argnums=(0, 1))
    compiled = pb.compile(gradients)
    rounds = Effort(rounds=min(effort.rounds, 5), seconds=effort.seconds)
    for length in (10, 100) if effort.is_quick else (1_000, 10_000, 100_000, 1_000_000):
        random = np.random.default_rng(0)
        a, x = (random.random((length, 16), np.float32) for _ in range(2))
        inputs, out = (pb.asarray(a), pb.asarray(x)), np.empty_like(a)
        steps = {
            "pullback": lambda inputs=inputs: compiled(*inputs),
            "pullback eager": lambda inputs=inputs: gradients(*inputs),
            "floor": lambda sources=(a, x, a, x), out=out: [np.copyto(out, source) for source in sources],
        }
        for system, microseconds in best_times(steps, rounds).items():
            yield Measurement(NAME, f"length {length}", system, "time", 1e3 * microseconds / a.size, "ns")


def _memory_of_backward() -> float:
    import pullback as pb

    a, x = (pb.asarray(array).set_requires_grad(True) for array in scan.data(256))
    cotangent = pb.ones(a.shape)
    for _ in range(2):  # the first call compiles
        out = pb.ssm_scan(x, a, axis=1)
        tracemalloc.start()
        pb.backward(out, cotangent)
        _, made = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    given = 3 * a.nbytes  # a, the states, the cotangent; gradients of a and x are made
    return (given + made) / (given + 2 * a.nbytes)


# -- Mamba's -----------------------------------------------------------------------------------------


def _selective(effort: Effort) -> dict[str, Step]:
    length, channels, states = (20, 8, 4) if effort.is_quick else (512, 128, 16)
    random = np.random.default_rng(0)
    draw = lambda *shape: random.standard_normal(shape, np.float32)
    arrays = [
        draw(2, channels, length), 0.1 * random.random((2, channels, length), np.float32),
        -np.exp(draw(channels, states)), draw(2, states, length), draw(2, states, length),
    ]  # fmt: skip
    makers = {"pullback": _selective_pullback, "torch": _selective_torch, "jax": _selective_jax}
    made = {name: makers[name](arrays) for name in peers.installed(makers)}
    found = {name: np.array([float(np.asarray(g).sum()) for g in step()]) for name, step in made.items()}
    peers.check_equal(found, "selective", 1e-3)
    return {**made, "pullback eager": _selective_pullback(arrays, compiles=False)}


def _selective_pullback(arrays: list[np.ndarray], compiles: bool = True) -> Step:
    import pullback as pb

    gradients: Any = pb.grad(lambda *xs: pb.selective_scan(*xs).sum(), argnums=tuple(range(5)))
    given = [pb.asarray(array) for array in arrays]
    called = pb.compile(gradients) if compiles else gradients
    return lambda: called(*given)


def _selective_torch(arrays: list[np.ndarray]) -> Step:
    import torch

    given = [torch.tensor(array, requires_grad=True) for array in arrays]

    def step() -> Any:
        u, delta, a, b, c = given
        h, outs = torch.zeros(u.shape[0], *a.shape), []
        for t in range(u.shape[2]):
            now = delta[:, :, t, None]
            h = torch.exp(now * a) * h + now * u[:, :, t, None] * b[:, None, :, t]
            outs.append((h * c[:, None, :, t]).sum(-1))
        return torch.autograd.grad(torch.stack(outs, -1).sum(), given)

    return step


def _selective_jax(arrays: list[np.ndarray]) -> Step:
    import jax
    import jax.numpy as jnp

    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    def loss_of(u: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
        now = jnp.moveaxis(delta, 2, 0)[..., None]
        moved = now * jnp.moveaxis(u, 2, 0)[..., None] * jnp.moveaxis(b, 2, 0)[:, :, None]
        states = jax.lax.associative_scan(combine, (jnp.exp(now * a), moved))[1]
        return (states * jnp.moveaxis(c, 2, 0)[:, :, None]).sum()

    gradients = jax.jit(jax.grad(loss_of, tuple(range(5))))
    given = [jnp.array(array) for array in arrays]
    return lambda: jax.block_until_ready(gradients(*given))


def _stream() -> dict[str, Step]:
    import pullback as pb

    model = pb.nn.StateSpaceModel([pb.nn.Mamba(64) for _ in range(2)])
    x, state = pb.random.normal((1, 64)), model.initial_state(1)

    @pb.compile
    def step(x: Any, state: Any) -> Any:
        with pb.no_grad():
            return model.step(x, state)

    def again() -> Any:
        nonlocal state
        y, state = step(x, state)
        return y

    return {"pullback": again}
