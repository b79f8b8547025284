"""Whole training steps on JAX's CPU: compiled by `pb.compile` beside `jax.jit` of the same written by hand for JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .compiled import gpt, mlp
from .eager_mlp import network
from .measure import Effort, Measurement, best_times

NAME = "xla"
SYSTEMS = ("pullback", "jax")
NOTES = ("the same steps as of `compiled`; Pullback's give the loss and look at it, as its guard does.",)
DEVICE = "jax:cpu"


def _mlp(sizes: tuple[int, ...], batch: int) -> dict[str, Callable[[], Any]]:
    net = network(sizes, batch)
    return {"pullback": mlp.pullback(net, DEVICE), "jax": mlp.jax(net)}


WORKLOADS: dict[str, Callable[[], dict[str, Callable[[], Any]]]] = {
    "mlp-tiny": lambda: _mlp((2, 16, 16, 1), 1),
    "mlp-mnist": lambda: _mlp((784, 512, 512, 10), 128),
    "gpt": lambda: {"pullback": gpt.pullback(DEVICE), "jax": gpt.jax()},
}


def run(effort: Effort) -> Iterator[Measurement]:
    if not peers.is_installed("jax"):
        return
    chosen = os.environ.get("WORKLOADS", "").split() or (["mlp-tiny"] if effort.is_quick else WORKLOADS)
    for workload in chosen:
        steps = WORKLOADS[workload]()
        losses = {system: np.array([float(step().item()) for _ in range(4)]) for system, step in steps.items()}
        peers.check_equal(losses, workload, 1e-3)
        turns = effort if effort.is_quick or workload != "gpt" else Effort(rounds=12, seconds=0.1)
        for system, microseconds in best_times(steps, turns).items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
