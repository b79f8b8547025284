"""`pullback devices`: which array libraries are here, and what they can run on."""

from __future__ import annotations

import os
from argparse import Namespace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from typing import NamedTuple

from .. import backends
from .tables import aligned

_LIBRARIES = ("numpy", "torch", "jax", "cupy")


class Device(NamedTuple):
    """A line of the table: a device, or a library without one."""

    backend: str
    version: str
    device: str
    memory: str
    remark: str


def run(options: Namespace) -> int:
    """Print the table; a library that is missing or broken is a line in it."""
    rows = [line for name in _LIBRARIES for line in _of_library(name)]
    print(aligned([("backend", "version", "device", "memory", "remark"), *rows]))
    print(f"default device: {backends.default_device()}")
    return 0


def _of_library(name: str) -> list[Device]:
    if find_spec(name) is None:
        return [Device(name, "-", "-", "-", f"not installed (pip install {_package_to_install(name)})")]
    try:
        backend = backends.for_device(name)[0]
        names = backend.devices()
    except Exception as error:  # whatever a broken installation raises while it is imported
        cause = error.__cause__ or error
        first_line = (str(cause).strip().splitlines() or [""])[0]
        return [Device(name, _version(name), "-", "-", f"broken: {type(cause).__name__}: {first_line}")]
    return [Device(name, _version(name), device, _memory(name, device), "") for device in names]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # CuPy's packages are named after a version of CUDA
        named = [d for d in distributions() if (d.metadata["Name"] or "").startswith(f"{name}-")]
        return named[0].version if named else str(getattr(import_module(name), "__version__", "?"))


def _package_to_install(name: str) -> str:
    return "cupy-cuda12x" if name == "cupy" else name


def _memory(name: str, device: str) -> str:
    """How much memory a device has, and how much of it is free where that is known; "-" where it is not easy to ask."""
    try:
        if device in ("numpy", "torch:cpu", "jax:cpu"):
            return _gibibytes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        if name == "torch":
            import torch

            free, total = torch.cuda.mem_get_info(int(device.rpartition(":")[2]))
            return f"{_gibibytes(total)}, {_gibibytes(free)} free"
        if name == "cupy":
            import cupy

            with cupy.cuda.Device(int(device.rpartition(":")[2])):
                free, total = cupy.cuda.runtime.memGetInfo()
            return f"{_gibibytes(total)}, {_gibibytes(free)} free"
    except Exception:  # a driver that will not say: the device is listed all the same
        return "-"
    return "-"


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
