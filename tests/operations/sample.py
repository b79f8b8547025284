"""What a family of operations gives to the suite: functions with inputs to differentiate them at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np


@dataclass(frozen=True)
class Sample:
    """One case. `function` takes tensors and returns a tensor or a tuple of tensors.

    It must be smooth at `arguments` (float64 or complex128 arrays; every one is differentiated).
    Static arguments, integer inputs and masks are closed over by `function`. For decompositions, return a function
    of the result that does not depend on signs or phases.
    """

    operation: str  # the name in the rule table
    case: str  # what is special here, for example "axis=1" or "broadcast"
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    torch: Callable[..., Any] | None = None  # the same on torch tensors, where PyTorch has it
    jax: Callable[..., Any] | None = None  # the same on jax arrays
    orders: int = 2  # to which order it is differentiated
    tolerance: dict[int, float] = field(default_factory=lambda: {1: 1e-6, 2: 1e-5})

    @property
    def name(self) -> str:
        return f"{self.operation}-{self.case}"


def rng(name: str) -> np.random.Generator:
    """A generator seeded by a name, so that samples do not depend on each other's order."""
    return np.random.default_rng(list(name.encode()))
