"""Training steps of networks run eagerly, on the NumPy device, beside torch eager, two threads each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from . import peers
from .compiled import gpt
from .measure import Effort, Measurement, best_times
from .networks import cnn, depthwise, encoder, lstm, training, wide

NAME = "eager-networks"
SYSTEMS = ("pullback", "torch")
NOTES = ("forward, backward and an update by gradient descent (gpt: by AdamW); the models of `compiled`.",)

GPT = {"pullback": lambda: gpt.pullback(compiled=False), "torch": gpt.torch}
WORKLOADS: dict[str, Callable[[], dict[str, training.Step]]] = {
    "cnn": lambda: training.eager(cnn),
    "lstm": lambda: training.eager(lstm),
    "depthwise": lambda: training.eager(depthwise),
    "encoder": lambda: training.eager(encoder),
    "wide": lambda: training.eager(wide),
    "gpt": lambda: training.checked("gpt", GPT),
}


def run(effort: Effort) -> Iterator[Measurement]:
    peers.two_threads()
    turns = effort if effort.is_quick else Effort(rounds=12, seconds=0.1)
    for workload in os.environ.get("WORKLOADS", "").split() or WORKLOADS:
        for system, microseconds in best_times(WORKLOADS[workload](), turns).items():
            yield Measurement(NAME, workload, system, "time", microseconds, "us")
