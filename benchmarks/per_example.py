"""Gradients of every example of a batch, and their norms: a network of two layers, cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "per-example"
SYSTEMS = ("pullback", "torch", "jax")
NOTES = (
    "per-example: the gradient of each example, and of the batch; torch: torch.func's vmap(grad), eagerly. The network "
    "of 784 has norms of gradients that would take 416 MB.",
)


def run(effort: Effort) -> Iterator[Measurement]:
    for sizes, works in (((32, 64, 10), ("gradients", "batch")), ((784, 512, 10), ("norms", "batch"))):
        problem = _problem(*((4, 3, 2) if effort.is_quick else sizes))
        made = {system: MAKERS[system](*problem) for system in peers.installed(SYSTEMS)}
        for work in works:
            functions = {
                f"{system}{how}": f for system, all_of_it in made.items() for (name, how), f in all_of_it.items()
                if name == work
            }  # fmt: skip
            peers.check_equal({system: _flat(f()) for system, f in functions.items()}, f"{NAME} {work}", 1e-3)
            for system, microseconds in best_times(functions, effort).items():
                workload = f"{work}, {'-'.join(map(str, sizes))}, batch {len(problem[1])}"
                yield Measurement(NAME, workload, system, "time", microseconds, "us")


def _problem(inputs: int, hidden: int, classes: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    weights = {
        "w1": generator.normal(size=(inputs, hidden)) / inputs**0.5, "b1": np.zeros(hidden),
        "w2": generator.normal(size=(hidden, classes)) / hidden**0.5, "b2": np.zeros(classes),
    }  # fmt: skip
    x = generator.normal(size=(256, inputs)).astype(np.float32)
    return {k: v.astype(np.float32) for k, v in weights.items()}, x, generator.integers(0, classes, 256)


def _flat(result: Any) -> np.ndarray:
    if not isinstance(result, dict):
        return np.asarray(result)
    return np.concatenate([np.asarray(result[name]).ravel() for name in sorted(result)])


def pullback(p: Any, x: np.ndarray, y: np.ndarray) -> dict[tuple[str, str], Callable[[], Any]]:
    import pullback as pb

    def loss(p: Any, x: Any, y: Any) -> Any:
        return pb.cross_entropy(pb.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], y)

    works = {"gradients": pb.per_example_grad(loss), "norms": pb.per_example_norms(loss), "batch": pb.grad(loss)}
    made: dict[tuple[str, str], Callable[[], Any]] = {}
    for work, f in works.items():
        made[work, ""] = lambda f=f: f(p, x, y)
        if find_spec("llvmlite") is not None:
            compiled = pb.compile(f)
            made[work, ".compile"] = lambda f=compiled: f(p, x, y)
    return made


def torch(p: Any, x: np.ndarray, y: np.ndarray) -> dict[tuple[str, str], Callable[[], Any]]:
    import torch
    from torch.func import grad, vmap

    peers.two_threads()
    p, x, y = {k: torch.from_numpy(v) for k, v in p.items()}, torch.from_numpy(x), torch.from_numpy(y)

    def loss(p: Any, x: Any, y: Any) -> Any:
        logits = torch.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return torch.nn.functional.cross_entropy(logits, y)

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))

    def norms() -> Any:
        return torch.sqrt(sum(g.flatten(1).square().sum(1) for g in gradients(p, x, y).values()))

    return {
        ("gradients", ""): lambda: gradients(p, x, y),
        ("norms", ""): norms,
        ("batch", ""): lambda: grad(loss)(p, x, y),
    }


def jax(p: Any, x: np.ndarray, y: np.ndarray) -> dict[tuple[str, str], Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    def loss(p: Any, x: Any, y: Any) -> Any:
        logits = jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return -jax.nn.log_softmax(logits)[y]

    def mean(p: Any) -> Any:
        return jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(p, x, y))

    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))

    def norms(p: Any) -> Any:
        found = gradients(p, x, y).values()
        return jnp.sqrt(sum(jnp.sum(jnp.square(g.reshape(len(x), -1)), 1) for g in found))

    works = {
        "gradients": jax.jit(lambda p: gradients(p, x, y)),
        "norms": jax.jit(norms),
        "batch": jax.jit(jax.grad(mean)),
    }
    on_device = jax.tree.map(jnp.asarray, p)
    return {(work, ".jit"): lambda f=f: jax.block_until_ready(f(on_device)) for work, f in works.items()}


MAKERS: dict[str, Callable[[Any, np.ndarray, np.ndarray], dict[tuple[str, str], Callable[[], Any]]]] = {
    "pullback": pullback, "torch": torch, "jax": jax,
}  # fmt: skip
