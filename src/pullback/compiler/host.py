"""The kernels of the host: what a program's instructions mean, and what runs where a target has no code for one.

They are NumPy's, with those that only programs have. This is the one place that says so.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import dtypes
from ..backends import NUMPY, for_device
from ..backends.numpy import random
from ..backends.numpy.native import plain_kernel
from ..targets import target_for
from ..targets.protocol import Abilities

_NONE = Abilities()  # of targets that are given whole functions


def is_on_host(device: str) -> bool:
    """Whether programs on a device work in the memory of the host."""
    return device == "numpy" or target_of(device) == "llvm"


def abilities_of(device: str) -> Abilities:
    """What the target of programs on a device can do."""
    abilities: Abilities = getattr(target_for(device), "abilities", _NONE)
    return abilities


def target_of(device: str) -> str | None:
    """The name of the target that programs on a device are made for."""
    target = target_for(device)
    return None if target is None else target.name


class HostKernels:
    """A namespace with every instruction's kernel under its name."""

    def __getattr__(self, name: str) -> Any:
        if name in vars(random) and not name.startswith("_"):
            return vars(random)[name]
        return plain_kernel(getattr(NUMPY.xp, name))


HOST = HostKernels()


def memory_of(device: str) -> Any:
    """The backend whose arrays programs of the host's kernels work on, on a device."""
    return NUMPY if device == "numpy" else for_device(device)[0]


def host_dtype(dtype: Any) -> Any:
    """NumPy's dtype for one of PyTorch's; all others stay as they are."""
    torch = sys.modules.get("torch")
    is_torchs = torch is not None and isinstance(dtype, torch.dtype)
    return dtypes.numpy_dtype(dtypes.get(dtype)) if is_torchs else dtype


def has_kernel(name: str) -> bool:
    """Whether the host has a kernel of that name, and not only one made of others."""
    return NUMPY.xp.defines(name)


def provide(kernel: Any) -> None:
    """Have a kernel that only programs have."""
    setattr(HOST, kernel.__name__, kernel)
