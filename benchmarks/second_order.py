"""Second derivatives of a function of arrays: the whole Hessian of Rosenbrock's function, and a product with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import peers
from .measure import Effort, Measurement, best_times

NAME = "second-order"
SYSTEMS = ("pullback", "torch", "autograd")
NOTES = ("torch: torch.autograd.functional's hessian and vhp.",)

Made = dict[str, Callable[[], Any]]


def run(effort: Effort) -> Iterator[Measurement]:
    for size in (10,) if effort.is_quick else (10, 100):
        made = {system: MAKERS[system](*_point(size)) for system in peers.installed(SYSTEMS)}
        for what in ("hessian", "product"):
            functions = {system: functions[what] for system, functions in made.items()}
            peers.check_equal({system: np.asarray(f()) for system, f in functions.items()}, f"{NAME} {what}", 1e-8)
            for system, microseconds in best_times(functions, effort).items():
                yield Measurement(NAME, f"{what} of {size}", system, "time", microseconds, "us")


def _point(size: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=size), generator.normal(size=size)


def _rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def pullback(x: np.ndarray, v: np.ndarray) -> Made:
    import pullback as pb

    return {"hessian": lambda: pb.hessian(_rosenbrock)(x), "product": lambda: pb.hvp(_rosenbrock, (x,), (v,))[0]}


def torch(x: np.ndarray, v: np.ndarray) -> Made:
    import torch
    from torch.autograd import functional

    point, direction = torch.from_numpy(x), torch.from_numpy(v)
    return {
        "hessian": lambda: functional.hessian(_rosenbrock, point),
        "product": lambda: functional.vhp(_rosenbrock, point, direction)[1],
    }


def autograd(x: np.ndarray, v: np.ndarray) -> Made:
    import autograd
    import autograd.numpy as anp

    def rosenbrock(x: Any) -> Any:
        return anp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return {
        "hessian": lambda: autograd.hessian(rosenbrock)(x),
        "product": lambda: autograd.hessian_vector_product(rosenbrock)(x, v),
    }


MAKERS: dict[str, Callable[[np.ndarray, np.ndarray], Made]] = {
    "pullback": pullback, "torch": torch, "autograd": autograd,
}  # fmt: skip
