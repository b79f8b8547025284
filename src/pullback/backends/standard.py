"""A backend over any namespace that follows the array API standard."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from .. import dtypes
from ..errors import DtypeError
from .protocol import Backend
from .standard_kernels import StandardKernels


class StandardBackend(Backend):
    """Arrays of an array API namespace as a backend; what the standard lacks is made from what it has.

    `devices` gives the library's device objects by the names they get after the colon; without it the library
    has one device, named as the backend. A library whose arrays cannot be written passes `writable=False`.
    A subclass overrides what its library does differently, and adds kernels of its own in `kernels`.

    >>> import numpy as np, pullback as pb
    >>> import array_api_strict as strict
    >>> from pullback.backends.standard import StandardBackend
    >>> devices = {"cpu": strict.Device("CPU_DEVICE"), "device1": strict.Device("device1")}
    >>> pb.backends.register(StandardBackend(strict, "strict", (type(strict.asarray(0.0)),), devices))
    >>> w = pb.tensor([1.0, 2.0], device="strict:device1", requires_grad=True)
    >>> pb.backward((w * w).sum())[w]
    tensor([2., 4.], device='strict:device1')
    """

    def __init__(
        self,
        namespace: Any,
        name: str,
        array_types: tuple[type, ...],
        devices: Mapping[str, Any] | None = None,
        writable: bool = True,
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.array_types = array_types
        self.writable = writable
        self._devices = {
            name if devices is None else f"{name}:{label}": d for label, d in (devices or {"": None}).items()
        }
        self._raw_dtypes: dict[str, Any] = {}
        self._dtypes: dict[Any, dtypes.DType] = {}
        for dtype in dtypes.ALL:
            raw = self._find_dtype(dtype)
            if raw is not None:
                self._raw_dtypes[dtype.name] = raw
                self._dtypes[raw] = dtype
        self.xp = StandardKernels(self)

    def kernels(self) -> Mapping[str, Any]:
        """Kernels that this library has itself, by operation; they come before all others."""
        return {}

    def direct(self, operation: Any, function: Any, kernel: Any) -> Any:
        """`kernel`, which prepares its arguments for the namespace's `function`, or one that knows when it need not."""
        return kernel

    # -- dtypes ------------------------------------------------------------------------------------

    def _find_dtype(self, dtype: dtypes.DType) -> Any:
        found = getattr(self.namespace, dtype.name, None)
        return np.dtype(found) if isinstance(found, type) and issubclass(found, np.generic) else found

    def dtype_of(self, raw: Any) -> dtypes.DType:
        return self._dtypes[raw.dtype]

    def raw_dtype(self, dtype: dtypes.DType) -> Any:
        try:
            return self._raw_dtypes[dtype.name]
        except KeyError:
            raise DtypeError(f"{self.name} has no dtype {dtype.name}; it has {', '.join(self._raw_dtypes)}.") from None

    def own_dtype(self, dtype: Any) -> Any:
        """The library's dtype for one of its own, of Pullback's or of NumPy's."""
        return self.raw_dtype(dtypes.get(dtype)) if isinstance(dtype, (dtypes.DType, np.dtype, type)) else dtype

    @property
    def index_dtype(self) -> Any:
        return self.raw_dtype(dtypes.int64)

    def widest_float(self) -> dtypes.DType:
        """What integers become where only floating-point numbers make sense."""
        return dtypes.float64 if "float64" in self._raw_dtypes else dtypes.float32

    # -- devices -----------------------------------------------------------------------------------

    def devices(self) -> tuple[str, ...]:
        return tuple(self._devices)

    def device_object(self, device: str) -> Any:
        """The library's own object for a device name."""
        return self._devices[self.full_device_name(device)]

    def device_of(self, raw: Any) -> str:
        found = raw.device
        for name, device in self._devices.items():
            if device is None or device == found:
                return name
        return f"{self.name}:{found}"

    # -- arrays ------------------------------------------------------------------------------------

    def asarray(self, data: Any, dtype: dtypes.DType | None, device: str, copy: bool | None) -> Any:
        wanted = None if dtype is None else self.raw_dtype(dtype)
        where = self.device_object(device)
        if not isinstance(data, self.array_types):
            return self._from_host(np.asarray(data), wanted, where)
        raw: Any = data
        if raw.dtype not in self._dtypes:
            raise DtypeError(
                f"Pullback has no dtype for {self.name}'s {raw.dtype}; convert the array first, to one of "
                f"{', '.join(self._raw_dtypes)}."
            )
        if where is not None and self._is_elsewhere(raw, where):
            _refuse_copy(copy, f"from {self.device_of(raw)!r} to {device!r}")
            raw = self._moved(raw, where)
        if wanted is not None and raw.dtype != wanted:
            _refuse_copy(copy, f"from {self.dtype_of(raw).name} to {dtype.name}")  # type: ignore[union-attr]
            raw = self.xp.astype(raw, wanted)
        return self.copy(raw) if copy and raw is data else raw

    def _from_host(self, data: Any, dtype: Any, device: Any) -> Any:
        """An array of a NumPy array's values."""
        if dtype is None:
            dtype = self.raw_dtype(dtypes.from_numpy(data.dtype))
        name = self._dtypes[dtype].name
        if data.dtype.name != name:  # in NumPy, whose conversions are the ones the others are compared with
            data = data.astype(dtypes.numpy_dtype(dtypes.BY_NAME[name]))
        return self.namespace.asarray(np.array(data), dtype=dtype, device=device)

    def _is_elsewhere(self, raw: Any, device: Any) -> bool:
        return raw.device != device

    def _moved(self, raw: Any, device: Any) -> Any:
        return raw.to_device(device)

    def constant(self, values: Any, like: Any) -> Any:
        """Host values as an array next to `like`."""
        values = np.asarray(values)
        return self.namespace.asarray(
            values, dtype=self.raw_dtype(dtypes.from_numpy(values.dtype)), device=self.where(like)
        )

    def where(self, raw: Any) -> Any:
        """The device argument that puts an array next to `raw`."""
        return raw.device

    def check_positions(self, indices: Any, size: int) -> None:
        """Raise IndexError for positions outside of an axis, if the library's own functions do not."""

    def to_numpy(self, raw: Any) -> Any:
        return np.from_dlpack(raw)

    def copy(self, raw: Any) -> Any:
        return self.namespace.asarray(raw, copy=True)


class Later:
    """The kernels of a backend, for some that are made before them."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend.xp, name)


def _refuse_copy(copy: bool | None, how: str) -> None:
    if copy is False:
        raise ValueError(f"cannot convert {how} without a copy, and copy=False.")
