"""Targets: what makes native functions of kernels' descriptions for a device, and runs them.

`protocol.py` says what a target has; `kernels.py` and `custom_kernels.py` are the descriptions, which know nothing of
any target. A target is a package beside them, imported when it is used.
"""

from __future__ import annotations

from importlib import import_module

from .protocol import Target

#: The module that makes the programs of a library's devices, or of one of them, with an object `TARGET`.
_MODULES = {
    "numpy": "llvm.target", "torch:cpu": "llvm.target", "torch:cuda": "cuda.target", "jax": "xla.target",
}  # fmt: skip


def target_for(device: str | None) -> Target | None:
    """The target that programs on a device are compiled for, or None if there is none."""
    if device is None:
        return None
    library, _, place = device.partition(":")
    module = _MODULES.get(f"{library}:{place.partition(':')[0]}") or _MODULES.get(library)
    return None if module is None else import_module(f"{__name__}.{module}").TARGET
