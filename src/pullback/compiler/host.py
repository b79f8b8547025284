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

#: Devices whose arrays lie in the memory of the host, and whose programs are made of the host's kernels.
DEVICES = ("numpy", "torch:cpu")


class HostKernels:
    """A namespace with every instruction's kernel under its name."""

    def __getattr__(self, name: str) -> Any:
        if name in vars(random) and not name.startswith("_"):
            return vars(random)[name]
        return plain_kernel(getattr(NUMPY.xp, name))


HOST = HostKernels()


def memory_of(device: str) -> Any:
    """The backend whose arrays programs on a device of the host's work on, in their own memory."""
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
