"""The kernels of the host: what a program's instructions mean, and what runs where a target has no code for one.

They are NumPy's, with those that only programs have. This is the one place that says so.
"""

from __future__ import annotations

import inspect
from typing import Any

from ..backends import NUMPY
from ..backends.numpy import random


class HostKernels:
    """A namespace with every instruction's kernel under its name."""

    def __getattr__(self, name: str) -> Any:
        if name in vars(random) and not name.startswith("_"):
            return vars(random)[name]
        return inspect.unwrap(getattr(NUMPY.xp, name))  # NumPy's own, whatever else large arrays are given to


HOST = HostKernels()


def has_kernel(name: str) -> bool:
    """Whether the host has a kernel of that name, and not only one made of others."""
    return NUMPY.xp.defines(name)


def provide(kernel: Any) -> None:
    """Have a kernel that only programs have."""
    setattr(HOST, kernel.__name__, kernel)
