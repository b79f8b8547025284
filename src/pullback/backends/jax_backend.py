"""JAX arrays as a backend. They cannot be written: every update makes a new array."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from .. import dtypes
from ..errors import DtypeError, TraceError
from . import jax_kernels, jax_random, portable
from .complex_limits import LIMITS, with_limits
from .jax_indexing import indexing_kernels
from .standard import Later, StandardBackend
from .standard_indexing import Indexing

_WIDE = {"int64": "int32", "uint64": "uint32"}


#: `jax.numpy` with the right limits of complex functions.
_NAMESPACE = SimpleNamespace(
    **{name: getattr(jnp, name) for name in dir(jnp) if not name.startswith("_")}
    | {name: with_limits(jnp, name, getattr(jnp, name), jax.lax.complex, jnp.iscomplexobj) for name in LIMITS}
)


class JaxBackend(StandardBackend):
    """JAX through `jax.numpy`. Without `jax_enable_x64` it has 32-bit numbers only, and int64 becomes int32."""

    keeps_as_declared = False

    def __init__(self) -> None:
        found = dict.fromkeys([*jax.devices(), *jax.devices("cpu")])
        super().__init__(_NAMESPACE, "jax", (jax.Array,), {_label(device): device for device in found}, writable=False)

    def kernels(self) -> Mapping[str, Any]:
        def dropout_mask(x: Any, p: float, key: Any, offset: Any) -> Any:
            if isinstance(key, int):
                return portable.bind("dropout_mask", self.xp)(x, p, key, offset)
            return jax_random.dropout_mask(x.shape, p, key, offset)  # in a program, which is given the key

        def full(shape: Any, value: Any, dtype: Any, like: Any) -> Any:
            value = value.item() if isinstance(value, np.generic) else value
            return jnp.full(shape, value, self.own_dtype(dtype), device=beside(shape, like))

        def zeros(shape: Any, dtype: Any, like: Any) -> Any:
            return jnp.zeros(shape, self.own_dtype(dtype), device=beside(shape, like))

        def beside(shape: Any, like: Any) -> Any:
            """Where an array goes that is made for another one: spread over devices as that is, if it can be."""
            if like is None:
                return None  # in a program, where what it is used with says where it is
            device = self.where(like)
            if device is None and not isinstance(like, jax.core.Tracer) and tuple(shape) == like.shape:
                return like.sharding
            return device

        return {
            **jax_kernels.kernels(Later(self), self.check_range),
            "full": full,
            "zeros": zeros,
            **indexing_kernels(self, Indexing(self, Later(self))),
            "dropout_mask": dropout_mask,
            "moved_on": jax_random.moved_on,
        }

    def rules(self, general: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        return jax_kernels.rules(general)

    # -- programs ----------------------------------------------------------------------------------

    def example(self, value: Any) -> Any:
        """What `abstract` takes for an array of a value's shape and dtype."""
        return jax.ShapeDtypeStruct(value.shape, value.dtype)

    def abstract(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """What a kernel makes of arguments with examples in them: examples again. Nothing is computed."""
        leaves: list[Any] = []

        def taken(arg: Any) -> Any:
            if isinstance(arg, jax.ShapeDtypeStruct):
                leaves.append(arg)
                return len(leaves) - 1
            return None

        places = _mapped(args, taken)

        def call(*arrays: Any) -> Any:
            return kernel(*_filled(args, places, arrays))

        try:
            return jax.eval_shape(call, *leaves)
        except _NEEDS_VALUES as error:
            raise TraceError(f"JAX needs values here, which a program has only when it runs: {error}") from None

    # -- dtypes ------------------------------------------------------------------------------------

    def _find_dtype(self, dtype: dtypes.DType) -> Any:
        return dtypes.numpy_dtype(dtype)

    def raw_dtype(self, dtype: dtypes.DType) -> Any:
        if not jax.config.jax_enable_x64:
            if dtype.name in ("float64", "complex128"):
                raise DtypeError(
                    f"JAX has no {dtype.name} as it is configured. Write `jax.config.update('jax_enable_x64', True)` "
                    "at the start, or use 32-bit numbers."
                )
            return dtypes.numpy_dtype(dtypes.BY_NAME[_WIDE.get(dtype.name, dtype.name)])
        return dtypes.numpy_dtype(dtype)

    def _from_host(self, data: Any, dtype: Any, device: Any) -> Any:
        wide = dtypes.from_numpy(data.dtype)
        kept = self.raw_dtype(wide) if wide.name in _WIDE and dtype is None else dtype
        narrow = not jax.config.jax_enable_x64 and kept is not None and np.dtype(kept).name in _WIDE.values()
        if narrow and data.size and data.dtype.kind in "iu":
            limits = np.iinfo(kept)
            if wide.name in _WIDE and not limits.min <= int(data.min()) <= int(data.max()) <= limits.max:
                raise DtypeError(
                    f"JAX has no {wide.name} as it is configured, and numbers from {data.min()} to {data.max()} do not "
                    f"fit into {np.dtype(kept).name}. Write `jax.config.update('jax_enable_x64', True)` at the start."
                )
        return super()._from_host(data, dtype, device)

    def widest_float(self) -> dtypes.DType:
        return dtypes.float64 if jax.config.jax_enable_x64 else dtypes.float32

    # -- arrays ------------------------------------------------------------------------------------

    def device_of(self, raw: Any) -> str:
        """Its name; of an array that is spread over several, the first one's."""
        return "jax" if isinstance(raw, jax.core.Tracer) else f"jax:{_label(_first(raw.devices()))}"

    def where(self, raw: Any) -> Any:
        if isinstance(raw, jax.core.Tracer) or len(raw.devices()) > 1:
            return None  # what is committed to no device goes wherever the others are
        return raw.device

    def device_object(self, device: str) -> Any:
        """None, which is wherever the others are, for "jax" alone: the device of arrays that are being traced."""
        return None if device == self.name else super().device_object(device)

    def full_device_name(self, device: str) -> str:
        if f"{device}:0" in self._devices:
            return f"{device}:0"
        return super().full_device_name(device)

    def _is_elsewhere(self, raw: Any, device: Any) -> bool:
        return not isinstance(raw, jax.core.Tracer) and _first(raw.devices()) != device

    def _moved(self, raw: Any, device: Any) -> Any:
        return jax.device_put(raw, device)

    def check_positions(self, indices: Any, size: int) -> None:
        self.check_range(indices, -size, size)

    def check_range(self, indices: Any, least: int, end: int, ignored: int | None = None) -> None:
        """Raise IndexError for positions outside of a range, for which JAX itself takes the nearest element, or NaN.

        Positions that are not known yet are left to it, and those that are not known without waiting for a device.
        """
        if not indices.size or isinstance(indices, jax.core.Tracer):
            return
        if isinstance(indices, jax.Array) and self.is_on_device(indices):
            return
        host = np.asarray(indices)
        if ignored is not None:
            host = host[host != ignored]
        for found in (int(host.min()), int(host.max())) if host.size else ():
            if not least <= found < end:
                raise IndexError(f"index {found} is out of bounds for an axis of size {end}")

    def is_on_device(self, raw: Any) -> bool:
        return not isinstance(raw, jax.core.Tracer) and next(iter(raw.devices())).platform != "cpu"

    def is_concrete(self, raw: Any) -> bool:
        return not isinstance(raw, jax.core.Tracer)

    def to_numpy(self, raw: Any) -> Any:
        return np.asarray(raw)

    def copy(self, raw: Any) -> Any:
        return jnp.array(raw, copy=True)


_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def _mapped(args: Any, function: Any) -> Any:
    """`function` of everything in nested tuples."""
    return tuple([_mapped(arg, function) if type(arg) is tuple else function(arg) for arg in args])


def _filled(args: Any, places: Any, arrays: Any) -> Any:
    """Arguments with arrays at the places that have a number."""
    return tuple(
        [
            _filled(arg, place, arrays) if type(arg) is tuple else arg if place is None else arrays[place]
            for arg, place in zip(args, places)
        ]
    )


def _first(devices: Any) -> Any:
    """The device with the smallest number: an array's devices are in no order."""
    return next(iter(devices)) if len(devices) == 1 else min(devices, key=lambda device: device.id)


def _label(device: Any) -> str:
    """ "cpu", "gpu:0", ...: the host has one device unless JAX was told to split it."""
    return device.platform if device.platform == "cpu" and device.id == 0 else f"{device.platform}:{device.id}"


BACKEND = JaxBackend()
