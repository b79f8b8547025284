"""A very deep graph: forward, backward and its release, ten times as deep in about ten times the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "deep"
SYSTEMS = ("pullback", "torch", "autograd")
NOTES = ("growth: the deepest chain's time over that of the one a tenth as deep; 10 is linear.",)


def run(effort: Effort) -> Iterator[Measurement]:
    depths = (100, 1_000) if effort.is_quick else (10_000, 100_000)
    steps = {(system, depth): MAKERS[system](depth) for system in peers.installed(SYSTEMS) for depth in depths}
    for (system, depth), step in steps.items():
        gradient = step()
        if gradient != depth + 1:
            raise AssertionError(f"{NAME}: {system} gives gradient {gradient} at depth {depth}, {depth + 1} is right.")
    rounds = Effort(rounds=min(effort.rounds, 3), seconds=effort.seconds)
    times = best_times({f"{system} {depth}": step for (system, depth), step in steps.items()}, rounds)
    for system, depth in steps:
        yield Measurement(NAME, f"depth {depth}", system, "time", times[f"{system} {depth}"], "us")
    for system in peers.installed(SYSTEMS):
        growth = times[f"{system} {depths[1]}"] / times[f"{system} {depths[0]}"]
        yield Measurement(NAME, f"depth {depths[0]} to {depths[1]}", system, "growth", growth, "ratio")


def _sums(x: Any, depth: int) -> Any:
    y = x
    for _ in range(depth):
        y = y + x
    return y


def pullback(depth: int) -> Callable[[], float]:
    import pullback as pb

    x = pb.tensor([1.0], requires_grad=True)

    def step() -> float:
        x.grad = None
        _sums(x, depth).backward()
        return x.grad.item()

    return step


def torch(depth: int) -> Callable[[], float]:
    import torch

    x = torch.tensor([1.0], requires_grad=True)

    def step() -> float:
        x.grad = None
        _sums(x, depth).backward()
        return x.grad.item()

    return step


def autograd(depth: int) -> Callable[[], float]:
    import autograd

    gradient = autograd.grad(lambda x: _sums(x, depth))
    return lambda: float(gradient(1.0))


MAKERS = {"pullback": pullback, "torch": torch, "autograd": autograd}
