"""What a backend is: arrays without gradients, and a kernel for every operation."""

from __future__ import annotations

from typing import Any

from ..dtypes import DType


class Kernels:
    """A namespace with every operation's kernel under its name.

    Names that a backend does not define itself come from `portable`, written in terms of the others.
    """

    def __init__(self, *sources: dict[str, Any]) -> None:
        for source in sources:
            self.__dict__.update((k, v) for k, v in source.items() if not k.startswith("_"))

    def __getattr__(self, name: str) -> Any:
        from . import portable

        kernel = portable.bind(name, self)
        self.__dict__[name] = kernel
        return kernel


class Backend:
    """Subclass this and call `pullback.backends.register` to add a backend.

    `xp` holds the kernels: functions of raw arrays, called with an operation's inputs and then its
    static arguments, by position, in the order in which `autodiff/rules/` declares them.
    """

    name: str
    array_types: tuple[type, ...]
    xp: Any

    def devices(self) -> tuple[str, ...]:
        """The names of the devices that are there, for example ("numpy",)."""
        raise NotImplementedError

    def device_of(self, raw: Any) -> str:
        raise NotImplementedError

    def dtype_of(self, raw: Any) -> DType:
        raise NotImplementedError

    def raw_dtype(self, dtype: DType) -> Any:
        """The backend's own dtype object."""
        raise NotImplementedError

    def asarray(self, data: Any, dtype: DType | None, device: str, copy: bool | None) -> Any:
        """A raw array of a Python number, a nested list, a NumPy array or a raw array of this backend."""
        raise NotImplementedError

    def to_numpy(self, raw: Any) -> Any:
        raise NotImplementedError

    def from_scalar(self, value: Any) -> Any:
        """Make an array of what a kernel returned: some libraries return scalars instead of 0-d arrays."""
        return value

    def is_exclusive(self, holder: Any, attribute: str) -> bool:
        """Whether `getattr(holder, attribute)` is a writable array whose memory nobody else can see."""
        return False

    def copy(self, raw: Any) -> Any:
        """An array of its own memory, contiguous, with the same values."""
        raise NotImplementedError

    def is_contiguous(self, raw: Any) -> bool:
        """Whether `raw` lies in memory in the order of its indices, without gaps."""
        return True

    def read_only(self, raw: Any) -> Any:
        """A view that cannot be written, where the library has such views."""
        return raw

    #: Whether arrays can be written in place at all (not so in JAX).
    writable = True
