"""The registry of backends: found by device name, or by the type of an array."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

from ..errors import DeviceError
from .numpy import NumpyBackend
from .protocol import Backend, Kernels

__all__ = ["Backend", "Kernels", "NUMPY", "register", "of", "for_device", "devices"]

NUMPY = NumpyBackend()
_by_name: dict[str, Backend] = {}
_by_type: dict[type, Backend] = {}
_default_device: ContextVar[str] = ContextVar("pullback_device", default="numpy")
_process_default = "numpy"


def register(backend: Backend) -> None:
    """Make `backend` known: its devices can be named, and its arrays passed in."""
    _by_name[backend.name] = backend
    for array_type in backend.array_types:
        _by_type[array_type] = backend


register(NUMPY)


def of(raw: Any) -> Backend | None:
    """The backend whose array `raw` is, or None if it is no known library's array."""
    backend = _by_type.get(type(raw))
    if backend is None:
        for array_type, candidate in _by_type.items():
            if isinstance(raw, array_type):
                return candidate
    return backend


def for_device(device: str | None) -> tuple[Backend, str]:
    """The backend of a device name such as "numpy" or "torch:cuda:0", and the full device name."""
    if device is None:
        device = default_device()
    name = str(device).partition(":")[0]
    backend = _by_name.get(name)
    if backend is None:
        raise DeviceError(f"unknown device {device!r}; known here: {', '.join(map(repr, devices()))}.")
    return backend, str(device)


def devices() -> tuple[str, ...]:
    """The names of all devices of all registered backends."""
    return tuple(device for backend in _by_name.values() for device in backend.devices())


def default_device() -> str:
    return _default_device.get() if _default_device.get() != "numpy" else _process_default


def set_default_device(device: str) -> None:
    """Make `device` the one that creation functions use when none is named."""
    global _process_default
    for_device(device)
    _process_default = str(device)


@contextmanager
def device(name: str) -> Iterator[None]:
    """Create tensors on device `name` inside the block."""
    for_device(name)
    token = _default_device.set(str(name))
    try:
        yield
    finally:
        _default_device.reset(token)


def loaded(module: str) -> Any:
    """A module if the user has imported it, else None: a backend is never imported on the user's behalf here."""
    return sys.modules.get(module)
