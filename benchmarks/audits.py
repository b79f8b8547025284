"""What audits of compiled functions cost: their share of the time of 100,000 calls."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from .compiled import mlp
from .measure import Effort, Measurement

NAME = "audits"
SYSTEMS = ("pullback",)
NOTES = ("audits are not done by the peers; at most 0.01 is meant to be spent on them.",)
WORKLOADS: dict[str, tuple[tuple[int, ...], int]] = {"mlp-tiny": ((2, 16, 16, 1), 1), "mlp-small": ((2, 64, 64, 1), 32)}


def run(effort: Effort) -> Iterator[Measurement]:
    calls = 100 if effort.is_quick else 100_000
    spent = _timed_audits()
    for workload, (sizes, batch) in WORKLOADS.items():
        step = mlp.pullback(mlp.network(sizes, batch))
        for _ in range(3):
            step()
        spent[0] = 0.0
        begin = perf_counter()
        for _ in range(calls):
            step()
        share = spent[0] / (perf_counter() - begin)
        yield Measurement(NAME, f"{workload}, {calls} calls", "pullback", "share", share, "ratio")


def _timed_audits() -> list[float]:
    """The seconds spent in audits from now on."""
    from pullback.compiler.calling.compiled import Compiled

    spent, audit = [0.0], Compiled._audit

    def timed(self: Any, *given: Any) -> None:
        begin = perf_counter()
        audit(self, *given)
        spent[0] += perf_counter() - begin

    Compiled._audit = timed  # type: ignore[method-assign]
    return spent
