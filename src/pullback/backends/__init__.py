"""The registry of backends: found by device name, or by the type of an array.

A device names a backend and, after a colon, one of its devices: "numpy", "torch:cuda:0", "jax:cpu".
PyTorch, JAX and CuPy need no registration: each is imported when one of its devices is asked for,
or adopted when one of its arrays is passed in. A third party registers a backend of its own:

    from pullback.backends.standard import StandardBackend
    pullback.backends.register(StandardBackend(namespace, "mine", (namespace.Array,)))
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Iterator

from ..errors import DeviceError
from .numpy import NumpyBackend
from .protocol import Backend, Kernels

__all__ = [
    "NUMPY",
    "Backend",
    "Kernels",
    "default_device",
    "device",
    "devices",
    "for_device",
    "of",
    "register",
    "set_default_device",
    "transfer",
]


def __dir__() -> list[str]:
    return __all__


NUMPY = NumpyBackend()
_by_name: dict[str, Backend] = {}
_by_type: dict[type, Backend | None] = {}  # by exact type; None for types that are no arrays
buffers: set[type] = set()  # of arrays that more can be added to in place
_block_default: ContextVar[str | None] = ContextVar("pullback_device", default=None)
_process_default = "numpy"

#: Backends that are made at first use: the package to import, and the packages its arrays' types come from.
_READY_MADE = {"torch": ("torch",), "jax": ("jax", "jaxlib"), "cupy": ("cupy",)}
_READY_MADE_BY_PACKAGE = {package: name for name, packages in _READY_MADE.items() for package in packages}


def register(backend: Backend) -> None:
    """Make `backend` known: its devices can be named, and its arrays passed in."""
    _by_name[backend.name] = backend
    _by_type.clear()
    for known in _by_name.values():
        _by_type.update(dict.fromkeys(known.array_types, known))
        if known.adds_in_place:
            buffers.add(known.array_types[0])


register(NUMPY)


def of(raw: Any) -> Any:
    """The backend whose array `raw` is, or None if it is no known library's array."""
    try:
        return _by_type[type(raw)]
    except KeyError:
        return _found(raw)


def of_type(array_type: type) -> Backend | None:
    """The backend of arrays of a type that `of` was asked about before."""
    return _by_type.get(array_type)


def _found(raw: Any) -> Backend | None:
    """The backend of an object whose type is met for the first time; subclasses belong to their base's backend."""
    array_type = type(raw)
    name = _READY_MADE_BY_PACKAGE.get(array_type.__module__.partition(".")[0])
    if name is not None and name not in _by_name:
        _load(name, name)
    backend = next((b for b in _by_name.values() if isinstance(raw, b.array_types)), None)
    _by_type[array_type] = backend
    return backend


def _load(name: str, device: str) -> Backend:
    """Import and register a ready-made backend."""
    try:
        module = import_module(f".{name}_backend", __name__)
    except ImportError as error:
        raise DeviceError(
            f"device {device!r} needs the package {name}, which cannot be imported here ({error}). "
            f"Install it with `pip install {name}`, or use one of {_listed()}."
        ) from error
    register(module.BACKEND)
    return module.BACKEND


def for_device(device: str | None) -> tuple[Backend, str]:
    """The backend of a device name such as "numpy" or "torch:cuda", and the full device name."""
    wanted = default_device() if device is None else str(device)
    name = wanted.partition(":")[0]
    backend = _by_name.get(name)
    if backend is None:
        check_library(wanted)
        backend = _load(name, wanted)
    return backend, backend.full_device_name(wanted)


#: What to write for PyTorch's names of devices.
_PYTORCHS = {
    "cpu": " Write 'numpy', or 'torch:cpu' for PyTorch's tensors.",
    "cuda": " Write 'torch:cuda'.",
}


def check_library(device: str) -> None:
    """Refuse a device name that begins with no library's; neither the library nor the device need be here."""
    name = device.partition(":")[0]
    if name not in _by_name and name not in _READY_MADE:
        raise DeviceError(
            f"unknown device {device!r}; known here: {_listed()}. A device is named after its library: 'numpy', "
            f"'torch:cuda', 'jax:cpu', 'cupy:0'.{_PYTORCHS.get(name, '')}"
        )


def devices() -> tuple[str, ...]:
    """The names of all devices of all registered backends."""
    return tuple(device for backend in _by_name.values() for device in backend.devices())


def _listed() -> str:
    return ", ".join(map(repr, devices()))


def default_device() -> str:
    """The device that creation functions use when none is named."""
    return _block_default.get() or _process_default


def set_default_device(device: str) -> None:
    """Make `device` the one that creation functions use when none is named, in every thread.

    Parameters
    ----------
    device : str
        Such as "numpy" or "torch:cuda"; see `pb.device`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.set_default_device("numpy")
    >>> pb.tensor([1.0]).device
    'numpy'
    """
    global _process_default
    _process_default = for_device(device)[1]


@contextmanager
def device(name: str) -> Iterator[None]:
    """Create tensors on device `name` inside a `with` block.

    Parameters
    ----------
    name : str
        Such as "numpy", "torch:cpu", "torch:cuda", "torch:cuda:1", "jax:cpu" or "cupy".

    Returns
    -------
    context manager
        For `with pb.device(...):`.

    Examples
    --------
    >>> import pullback as pb
    >>> with pb.device("numpy"):
    ...     pb.tensor([1.0]).device
    'numpy'
    """
    token = _block_default.set(for_device(name)[1])
    try:
        yield
    finally:
        _block_default.reset(token)


def transfer(raw: Any, device: str, copy: bool | None = None) -> Any:
    """`raw` as an array on `device`, sharing memory where the two libraries can and `copy` is not true."""
    source: Any = of(raw)
    if source.lives_anywhere:
        return source.asarray(raw, None, device, copy)
    target, device = for_device(device)
    if source is target or source.device_of(raw) == device:  # the latter: a symbol of that device
        return source.asarray(raw, None, device, copy)
    if copy is False and source.device_of(raw) != device:
        raise ValueError(f"cannot move from {source.device_of(raw)!r} to {device!r} without a copy, and copy=False.")
    return target.adopt(raw, source, device, copy)
