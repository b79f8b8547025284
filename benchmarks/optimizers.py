"""One step of an optimizer, gradients given: a few small tensors, where calls cost most, and a few wide ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "optimizers"
SYSTEMS = ("pullback", "torch")
NOTES = ("torch foreach: all tensors together, PyTorch's default on GPUs; torch: one after the other.",)

SMALL = ((16, 32), (32,), (32, 32), (32,), (32, 4), (4,))
WIDE = ((1024, 1024), (1024,), (1024, 1024))
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 1e-3, "momentum": 0.9},
    "Adam": {"lr": 1e-3},
    "AdamW": {"lr": 1e-3},
    "RMSprop": {"lr": 1e-3},
}


def run(effort: Effort) -> Iterator[Measurement]:
    for size, shapes in (("6 small tensors", SMALL), ("2 million parameters", WIDE)):
        generator = np.random.default_rng(0)
        initial, gradients = ([generator.standard_normal(s).astype(np.float32) for s in shapes] for _ in range(2))
        for name, options in OPTIMIZERS.items():
            made = {"pullback": pullback(name, options, initial, gradients)}
            if peers.is_installed("torch"):
                made["torch"] = torch(name, options, initial, gradients, foreach=False)
                made["torch foreach"] = torch(name, options, initial, gradients, foreach=True)
            results = {system: _after_a_few(step, read) for system, (step, read) in made.items()}
            peers.check_equal(results, f"{NAME}, {name}")
            for system, microseconds in best_times({s: step for s, (step, _) in made.items()}, effort).items():
                yield Measurement(NAME, f"{name}, {size}", system, "time", microseconds, "us")


def _after_a_few(step: Callable[[], Any], read: Callable[[], np.ndarray]) -> np.ndarray:
    for _ in range(3):
        step()
    return read()


def pullback(name: str, options: dict[str, Any], initial: list[np.ndarray], gradients: list[np.ndarray]) -> Any:
    import pullback as pb

    parameters = [pb.tensor(value, requires_grad=True) for value in initial]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = pb.tensor(gradient)
    optimizer = getattr(pb.optim, name)(parameters, **options)
    return optimizer.step, lambda: np.array(parameters[0].detach().numpy())


def torch(
    name: str, options: dict[str, Any], initial: list[np.ndarray], gradients: list[np.ndarray], foreach: bool
) -> Any:
    import torch

    parameters = [torch.tensor(value, requires_grad=True) for value in initial]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = torch.tensor(gradient)
    optimizer = getattr(torch.optim, name)(parameters, foreach=foreach, **options)
    return optimizer.step, lambda: parameters[0].detach().numpy().copy()
