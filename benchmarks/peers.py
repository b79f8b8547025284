"""The systems to compare with: what must be installed for each, and which are missing."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np

THREADS = 2

# system -> the module that must be there
MODULES = {
    "pullback": "pullback",
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "autograd": "autograd",
    "mygrad": "mygrad",
    "mlx": "mlx",
    "transformers": "transformers",
    "peft": "peft",
}


def is_installed(system: str) -> bool:
    """Whether a system can be run; one that is no library of its own (a strategy of Pullback's) always can."""
    return system not in MODULES or find_spec(MODULES[system]) is not None


def installed(systems: Iterable[str]) -> list[str]:
    return [system for system in systems if is_installed(system)]


def missing(systems: Iterable[str]) -> list[str]:
    return [system for system in systems if not is_installed(system)]


def two_threads() -> None:
    """Let torch run two threads, as the others do where the variables of the environment say so."""
    if is_installed("torch"):
        import torch

        torch.set_num_threads(THREADS)


def check_equal(results: dict[str, np.ndarray], what: str, tolerance: float = 1e-4) -> None:
    """Raise if the systems do not compute the same thing: their times would mean nothing then."""
    names = list(results)
    for name in names[1:]:
        expected = results[names[0]]
        scale = max(1.0, float(np.max(np.abs(expected))))
        if not np.allclose(results[name], expected, rtol=tolerance, atol=tolerance * scale):
            raise AssertionError(f"{what}: {name} computes {results[name]}, {names[0]} computes {expected}.")
