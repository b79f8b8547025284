"""Twelve transformer blocks, forward and backward, under each checkpointing strategy: memory and time.

`memory` is what the graph holds between forward and backward (tracemalloc: arrays and Python objects), `peak` the most
that a whole step holds. A budget is half of what plain recording holds; `counted` is the most that the strategy itself
has counted, while recording and while walking. Gradients are compared bit for bit before anything is measured.

Compiled (`12 blocks compiled`), the budget is half of what the plain program keeps for its walk (`saved`); `arena` is
all memory that a program has of its own.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from .measure import Effort, Measurement, best_times

NAME = "checkpointing"
SYSTEMS = ("plain", "balanced", "budget", "region")
BASELINE = "plain"
NOTES = (
    "ratios are to plain. region: pb.checkpoint around every block. peak: of forward and backward together, "
    "which includes gradients and the 32 MiB that the numerics guard looks back on.",
)

BLOCKS, HEADS = 12, 4
ROUNDS = 8  # a step takes long enough to see the machine's good and bad moments


def run(effort: Effort) -> Iterator[Measurement]:
    import pullback as pb

    width, length, batch = (16, 8, 2) if effort.is_quick else (256, 128, 4)
    pb.random.seed(0)
    blocks = [
        pb.nn.TransformerEncoderLayer(
            width, HEADS, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        for _ in range(BLOCKS)
    ]
    x = pb.random.normal((batch, length, width))
    parameters = [p for block in blocks for p in block.parameters()]

    def forward(calls: list[Callable[..., Any]]) -> Any:
        h = x
        for call in calls:
            h = call(h)
        return pb.mean(pb.square(h))

    regions = [pb.checkpoint(block) for block in blocks]
    plain_bytes = _held(lambda: forward(blocks))
    strategies = {
        "plain": pb.NoCheckpointing(),
        "balanced": pb.BalancedCheckpointing(),
        "budget": pb.BudgetCheckpointing(plain_bytes // 2),
        "region": pb.NoCheckpointing(),
    }

    def recorded(system: str) -> Any:
        with pb.checkpointing(strategies[system]):
            return forward(regions if system == "region" else blocks)

    def step(system: str) -> None:
        recorded(system).backward()
        for p in parameters:
            p.grad = None

    expected = None
    for system in SYSTEMS:
        grads = pb.backward(recorded(system))
        found = [grads[p].numpy().tobytes() for p in parameters]
        if expected is not None and found != expected:
            raise AssertionError(f"{NAME}: the gradients of {system} are not those of plain.")
        expected = found
    for system in SYSTEMS:
        yield Measurement(NAME, "12 blocks", system, "memory", _held(lambda system=system: recorded(system)), "bytes")
    for system in SYSTEMS:
        yield Measurement(NAME, "12 blocks", system, "peak", _peak(lambda system=system: step(system)), "bytes")
    yield Measurement(NAME, "12 blocks", "budget", "allowed", strategies["budget"].bytes, "bytes")
    yield Measurement(NAME, "12 blocks", "budget", "counted", strategies["budget"].peak, "bytes")
    steps = {system: lambda system=system: step(system) for system in SYSTEMS}
    times = best_times(steps, effort._replace(rounds=min(effort.rounds, ROUNDS)))
    for system, time in times.items():
        yield Measurement(NAME, "12 blocks", system, "time", time, "us")
    yield from _compiled(effort, forward, {"region": regions}, blocks, parameters)


def _compiled(
    effort: Effort, forward: Callable[..., Any], wrapped: dict[str, Any], blocks: list[Any], parameters: list[Any]
) -> Iterator[Measurement]:
    """Times and memory of the same steps, compiled."""
    import pullback as pb

    case = "12 blocks compiled"

    def gradients_of(calls: list[Any]) -> Any:
        def step() -> list[Any]:
            gradients = pb.backward(forward(calls))
            return [gradients[p] for p in parameters]

        return pb.compile(step)

    programs = {system: gradients_of(wrapped.get(system, blocks)) for system in SYSTEMS}
    expected = [gradient.numpy() for gradient in programs["plain"]()]
    strategies = {
        "balanced": pb.BalancedCheckpointing(),
        "budget": pb.BudgetCheckpointing(programs["plain"].memory["saved"] // 2),
    }
    recorded = {system: pb.checkpointing(strategies.get(system, pb.NoCheckpointing())) for system in SYSTEMS}

    def run(system: str) -> list[Any]:
        with recorded[system]:
            found: list[Any] = programs[system]()
        return found

    for system in SYSTEMS:
        for gradient, other in zip(run(system), expected):
            if abs(gradient.numpy() - other).max() > 1e-5 * max(abs(other).max(), 1e-3):
                raise AssertionError(f"{NAME}: the compiled gradients of {system} are not those of plain.")
        for what in ("saved", "arena"):
            yield Measurement(NAME, case, system, what, programs[system].memory[what], "bytes")
    yield Measurement(NAME, case, "budget", "allowed", strategies["budget"].bytes, "bytes")
    steps = {system: lambda system=system: run(system) for system in SYSTEMS}
    for system, time in best_times(steps, effort._replace(rounds=min(effort.rounds, ROUNDS))).items():
        yield Measurement(NAME, case, system, "time", time, "us")


def _held(make: Callable[[], Any]) -> int:
    """The bytes that what `make` returns keeps alive."""
    make()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = make()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    del result
    return held


def _peak(step: Callable[[], None]) -> int:
    step()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
