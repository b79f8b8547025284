"""How whole steps on a GPU are measured: their time, their peak memory, their first call and their first losses."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

_WARM_UP = 6
_LOSSES = 3  # of the first steps, by which one sees that systems compute the same


class Row(NamedTuple):
    work: str
    system: str
    milliseconds: float
    gibibytes: float
    first_seconds: float
    losses: tuple[float, ...] = ()

    def __str__(self) -> str:
        losses = "  losses " + " ".join(f"{loss:.4f}" for loss in self.losses) if self.losses else ""
        return (
            f"{self.work:6s} {self.system:30s} {self.milliseconds:9.3f} ms  peak {self.gibibytes:6.2f} GiB  "
            f"first call {self.first_seconds:6.1f} s{losses}"
        )


def measured(work: str, system: str, step: Callable[[], Any], by_clock: bool = False) -> Row:
    """A step's time, its peak memory and the time of its first call; `step` gives its loss, or nothing."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    loss = step()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    losses = [] if loss is None else [loss.item()]
    for number in range(1, _WARM_UP):
        loss = step()
        if loss is not None and number < _LOSSES:
            losses.append(loss.item())
    del loss
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    took = _by_clock(step) if by_clock else _by_events(step)
    return Row(work, system, took, torch.cuda.max_memory_allocated() / 2**30, first, tuple(losses))


def _by_events(step: Callable[[], Any], times: int = 30) -> float:
    found = []
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def _by_clock(step: Callable[[], Any], times: int = 300, rounds: int = 5) -> float:
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            step()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / times * 1e3)
    return min(found)


def measured_on_jax(work: str, step: Callable[[], Any], calls: int) -> Row:
    """The same of a step of JAX's, which gives what it must wait for: its loss, if that is one number."""
    import jax

    start = time.perf_counter()
    made = jax.block_until_ready(step())
    first = time.perf_counter() - start
    losses = []
    for _ in range(_LOSSES):
        if getattr(made, "shape", None) != ():
            break
        losses.append(float(made.item()))
        made = step()
    found = []
    for _ in range(4):
        start = time.perf_counter()
        for _ in range(calls):
            made = step()
        jax.block_until_ready(made)
        found.append((time.perf_counter() - start) / calls * 1e3)
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", math.nan) / 2**30
    return Row(work, "jax", min(found), peak, first, tuple(losses))
