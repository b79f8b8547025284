"""Training steps on PyTorch's processor: compiled beside those on NumPy's device, eager beside PyTorch's autograd."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .compiled import gpt, mlp
from .eager_mlp import network
from .measure import Effort, Measurement, best_times

NAME = "torch-cpu"
SYSTEMS = ("numpy", "torch:cpu", "torch")
NOTES = (
    "numpy, torch:cpu: Pullback on these devices; torch: PyTorch itself.",
    "the same steps as of `compiled`; those named eager run operation by operation.",
)
DEVICE = BASELINE = "torch:cpu"
THREADS = 2
Steps = dict[str, Callable[[], Any]]


def _mlp(sizes: tuple[int, ...], batch: int) -> Steps:
    net = network(sizes, batch)
    return {device: mlp.pullback(net, device) for device in ("numpy", DEVICE)}


WORKLOADS: dict[str, Callable[[], Steps]] = {
    "mlp-tiny": lambda: _mlp((2, 16, 16, 1), 1),
    "mlp-mnist": lambda: _mlp((784, 512, 512, 10), 128),
    "gpt": lambda: {device: gpt.pullback(device) for device in ("numpy", DEVICE)},
    "gpt-eager": lambda: {DEVICE: gpt.pullback(DEVICE, compiled=False), "torch": gpt.torch()},
}


def run(effort: Effort) -> Iterator[Measurement]:
    if not peers.is_installed("torch"):
        return
    import torch

    torch.set_num_threads(THREADS)
    for workload in os.environ.get("WORKLOADS", "").split() or (["mlp-tiny"] if effort.is_quick else WORKLOADS):
        steps = WORKLOADS[workload]()
        losses = {system: np.array([float(step().item()) for _ in range(4)]) for system, step in steps.items()}
        peers.check_equal(losses, workload, 1e-3)
        turns = effort if effort.is_quick or not workload.startswith("gpt") else Effort(rounds=12, seconds=0.1)
        for system, microseconds in best_times(steps, turns).items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
