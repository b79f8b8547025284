"""What audits of compiled functions cost: their share of the time of 100,000 calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    for workload, (sizes, batch) in WORKLOADS.items():
        step = mlp.pullback(mlp.network(sizes, batch))
        for _ in range(3):
            step()
        with _timed_audits() as spent:
            begin = perf_counter()
            for _ in range(calls):
                step()
            share = sum(spent) / (perf_counter() - begin)
        yield Measurement(NAME, f"{workload}, {calls} calls", "pullback", "share", share, "ratio")


@contextmanager
def _timed_audits() -> Iterator[list[float]]:
    """The seconds of each audit inside."""
    from pullback.compiler.calling.compiled import Compiled

    spent: list[float] = []
    audit = Compiled._audit

    def timed(self: Any, *given: Any) -> None:
        begin = perf_counter()
        audit(self, *given)
        spent.append(perf_counter() - begin)

    Compiled._audit = timed  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Compiled._audit = audit  # type: ignore[method-assign]
