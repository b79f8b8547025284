"""What a backend is: arrays without gradients, and a kernel for every operation."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ..dtypes import DType
from ..errors import DeviceError


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
    keeps_as_declared = True  # whether kernels give the residuals that the rule table's rules are written for
    adds_in_place = False  # whether `x += y` writes into `x`, and `xp.place_into` into a part of it

    def devices(self) -> tuple[str, ...]:
        """The names of the devices that are there, for example ("numpy",)."""
        raise NotImplementedError

    def full_device_name(self, device: str) -> str:
        """The full name of a device given as "torch" or "torch:cuda"; DeviceError if there is no such device."""
        known = self.devices()
        if device == self.name and known:
            return known[0]
        if device in known:
            return device
        raise DeviceError(f"unknown device {device!r}; {self.name} has {', '.join(map(repr, known)) or 'none'}.")

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

    def adopt(self, raw: Any, source: Backend, device: str, copy: bool | None) -> Any:
        """A raw array on `device` of an array of another backend, `source`."""
        return self.asarray(source.to_numpy(raw), source.dtype_of(raw), device, copy)

    def to_numpy(self, raw: Any) -> Any:
        """The values as a NumPy array, which may share memory with `raw` and must not be written."""
        raise NotImplementedError

    def is_floating(self, raw: Any) -> bool:
        """Whether an array can have a gradient: real or complex floating point."""
        return self.dtype_of(raw).kind in ("float", "complex")

    def scalar_for(self, value: Any, like: Any) -> Any:
        """A Python number as an operand beside the array `like`, whose dtype it must not change."""
        return float(value) if type(value) is bool and self.is_floating(like) else value

    def is_concrete(self, raw: Any) -> bool:
        """Whether `raw` has values now; arrays inside a program that is being traced have none."""
        return True

    def values_in(self, raw: Any) -> Any:
        """The array of a library that has the values of `raw`, if that is not `raw` itself: those of many examples."""
        return raw

    def is_on_device(self, raw: Any) -> bool:
        """Whether `raw` is computed while Python goes on: looking at it waits for a device."""
        return False

    def finite(self, raws: Sequence[Any]) -> list[bool]:
        """Which of these arrays have finite elements only; a device is waited for once."""
        if not raws:
            return []
        flags = [self.xp.all(self.xp.isfinite(raw)) for raw in raws]
        return self.to_numpy(self.xp.stack(flags, 0)).tolist() if len(flags) > 1 else [bool(flags[0])]

    def finite_later(self, raws: Sequence[Any]) -> Callable[[], list[bool]]:
        """A function that says what `finite` does of what these arrays are now; until it is called nobody waits."""
        flags = self.xp.stack([self.xp.all(self.xp.isfinite(raw)) for raw in raws], 0)
        return lambda: self.to_numpy(flags).tolist()

    def is_complex(self, raw: Any) -> bool:
        """Whether the elements are complex numbers."""
        return self.dtype_of(raw).kind == "complex"

    def from_scalar(self, value: Any) -> Any:
        """Make an array of what a kernel returned: some libraries return scalars instead of 0-d arrays."""
        return value

    def custom_kernel(self, operation: Any) -> Any:
        """The kernel of an operation of the user's own, which may want to be called in another way."""
        return operation.kernel

    def rules(self, general: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Gradient rules that the library has itself, by operation and input, with the arguments of the table's.

        `general` are the table's, for what the library's cannot do.
        """
        return {}

    def is_exclusive(self, holder: Any, attribute: str) -> bool:
        """Whether `getattr(holder, attribute)` is a writable array whose memory nobody else can see."""
        return False

    def write(self, name: str, raw: Any, other: Any) -> bool:
        """Compute an operation of `raw` and another array or number into `raw`; False if it does not fit in there."""
        return False

    def copy(self, raw: Any) -> Any:
        """An array of its own memory, contiguous, with the same values."""
        raise NotImplementedError

    def is_contiguous(self, raw: Any) -> bool:
        """Whether `raw` lies in memory in the order of its indices, without gaps."""
        return True

    def buffer_of(self, raw: Any) -> tuple[int, int]:
        """The memory that `raw` keeps alive: a number that views of the same memory share, and its bytes."""
        return id(raw), self.bytes_of(raw)

    def bytes_of(self, raw: Any) -> int:
        """The bytes of an array's elements."""
        return raw.size * self.dtype_of(raw).itemsize

    def read_only(self, raw: Any) -> Any:
        """A view that cannot be written, where the library has such views."""
        return raw

    def exported(self, raw: Any) -> Any:
        """The array to hand out through DLPack."""
        return raw

    # -- memory of the host: for programs that are compiled for it ------------------------------------

    def host_array(self, raw: Any) -> Any:
        """A NumPy array over the memory of `raw`, which can be written if `raw` can.

        Values that are not in memory as NumPy has them are copied. Only for arrays that the host can reach.
        """
        raise NotImplementedError

    def on_host(self, array: Any) -> Any:
        """The other way round: a raw array over the memory of a NumPy array."""
        raise NotImplementedError

    def host_empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A raw array with memory of its own and nothing in it yet; `dtype` is one of NumPy's."""
        raise NotImplementedError

    #: The class of this backend's tensors where it is not `Tensor` itself; it has `of_raw(array)`.
    tensor_class: Any = None

    #: Whether its arrays are made of arrays of other libraries, and move to any device by `asarray`.
    lives_anywhere: bool = False

    #: The dtypes that can have a gradient, where every array has values and is of its type alone: operations on
    #: such arrays take a shorter way.
    inexact: frozenset[Any] = frozenset()

    #: Functions of lists of arrays, which are written in place (see `torch_lists`), where `is_exclusive` can tell that
    #: they may be; None where the library has none.
    lists: Any = None

    #: Whether arrays can be written in place at all (not so in JAX).
    writable = True
