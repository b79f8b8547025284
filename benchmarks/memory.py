"""The most memory that a forward and backward pass of a 20-layer network holds at once, beyond weights and data.

Pullback on NumPy is measured with tracemalloc, which NumPy's allocator reports to; this counts the Python objects
of the graph too. PyTorch is measured with its own profiler, which reports every allocation and release of its CPU
allocator; this leaves the graph's own objects out. Both count gradients of the trained weights.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement

NAME = "memory"
SYSTEMS = ("pullback", "torch")
NOTES = ("peak bytes of forward and backward beyond weights and data; see benchmarks/memory.py for how it is taken.",)

LAYERS = 20
# workload -> which layers are trained
WORKLOADS = {
    "all frozen but the last": range(LAYERS - 1, LAYERS),
    "all frozen but the first": range(1),
    "none frozen": range(LAYERS),
}


def run(effort: Effort) -> Iterator[Measurement]:
    width, batch = (16, 32) if effort.is_quick else (256, 1024)
    generator = np.random.default_rng(0)
    weights = [(generator.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32) for _ in range(LAYERS)]
    x = generator.standard_normal((batch, width)).astype(np.float32)
    for workload, trained in WORKLOADS.items():
        gradients: dict[str, np.ndarray] = {}
        for system in peers.installed(SYSTEMS):
            step, gradient = STEPS[system](weights, x, trained)
            step()  # what is made once (native kernels, for one) is not counted
            peak = PEAKS[system](step)
            gradients[system] = gradient()
            yield Measurement(NAME, workload, system, "memory", peak, "bytes")
        peers.check_equal(gradients, f"{NAME}, {workload}")


Step = tuple[Callable[[], None], Callable[[], np.ndarray]]


def pullback(weights: list[np.ndarray], x: np.ndarray, trained: range) -> Step:
    import pullback as pb

    data = pb.tensor(x)
    parameters = [pb.tensor(w, requires_grad=i in trained) for i, w in enumerate(weights)]
    biases = [pb.zeros(w.shape[0], dtype=pb.float32) for w in weights]

    def step() -> None:
        h = data
        for w, b in zip(parameters, biases):
            h = pb.tanh(pb.linear(h, w, b))
        pb.mean(pb.square(h)).backward()

    return step, lambda: parameters[trained[0]].grad.numpy()


def torch(weights: list[np.ndarray], x: np.ndarray, trained: range) -> Step:
    import torch

    data = torch.tensor(x)
    parameters = [torch.tensor(w, requires_grad=i in trained) for i, w in enumerate(weights)]
    biases = [torch.zeros(w.shape[0]) for w in weights]

    def step() -> None:
        h = data
        for w, b in zip(parameters, biases):
            h = torch.tanh(torch.nn.functional.linear(h, w, b))
        torch.mean(torch.square(h)).backward()

    return step, lambda: parameters[trained[0]].grad.numpy()


STEPS = {"pullback": pullback, "torch": torch}


def _peak_by_tracemalloc(step: Callable[[], None]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def _peak_by_torch_profiler(step: Callable[[], None]) -> int:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    from torch.profiler import ProfilerActivity, profile

    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    events: Any = profiler.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    held = peak = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        held += change.nbytes()
        peak = max(peak, held)
    return peak


PEAKS = {"pullback": _peak_by_tracemalloc, "torch": _peak_by_torch_profiler}
