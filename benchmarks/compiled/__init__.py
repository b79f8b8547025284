"""Whole training steps compiled: Pullback beside torch, torch.compile, jax.jit and mlx, two threads each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .. import peers
from ..measure import Effort, Measurement, best_times
from ..networks import cnn, depthwise, encoder, lstm, training, wide
from . import gpt, memory, mlp, recurrence, scan

NAME = "compiled"
SYSTEMS = ("pullback", "torch", "torch.compile", "jax", "mlx", "floor")
NOTES = (
    "floor: the bare matrix products (NumPy), or for the scan the memory traffic (copies).",
    "compile: the first call. cached: the same in a new process, with what the first one left on the disk (Pullback).",
    "memory: the most that a process has in memory in steady state, less what it had before the model was made.",
)
WORKLOADS = {
    "mlp-tiny": lambda: mlp.steps((2, 16, 16, 1), 1),
    "mlp-small": lambda: mlp.steps((2, 64, 64, 1), 32),
    "mlp-mnist": lambda: mlp.steps((784, 512, 512, 10), 128),
    "mlp-deep": lambda: mlp.steps((256,) * 9, 64),
    "gpt": gpt.steps,
    "scan": scan.steps,
    "recurrence": recurrence.steps,
    "cnn": lambda: training.compiled(cnn),
    "lstm": lambda: training.compiled(lstm),
    "depthwise": lambda: training.compiled(depthwise),
    "encoder": lambda: training.compiled(encoder),
    "wide": lambda: {**training.compiled(wide), "floor": wide.floor()},
}
#: The other networks of tanh layers are `mlp-tiny` in other sizes.
QUICK_WORKLOADS = {name: make for name, make in WORKLOADS.items() if not name.startswith("mlp") or name == "mlp-tiny"}
QUICK_WORKLOADS["scan"] = lambda: scan.steps(16)
QUICK_WORKLOADS["recurrence"] = lambda: recurrence.steps(40)


def run(effort: Effort) -> Iterator[Measurement]:
    peers.two_threads()
    workloads = QUICK_WORKLOADS if effort.is_quick else WORKLOADS
    chosen = os.environ.get("WORKLOADS", "").split() or workloads
    for workload in chosen:
        made = {system: step for system, step in workloads[workload]().items() if peers.is_installed(_library(system))}
        for system, microseconds in best_times(made, _effort(workload, effort)).items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
    if "gpt" in chosen:
        yield from gpt.compile_times(NAME, effort)
        yield from memory.measured(NAME, effort)


def _effort(workload: str, effort: Effort) -> Effort:
    return effort if workload.startswith("mlp") or effort.is_quick else Effort(rounds=12, seconds=0.1)


def _library(system: str) -> str:
    return system.partition(".")[0]
