"""Quantized arrays: a few bits per element, expanded when they are used.

A scheme (in `quantization/`) says how values become parts, which are arrays of any backend, and back; `QuantizedArray`
holds the parts.
"""

from __future__ import annotations

import math
from typing import Any

from .. import backends
from ..dtypes import DType
from ..errors import DtypeError, ShapeError
from .protocol import Backend
from .quantization import SCHEMES, Scheme


class QuantizedArray:
    """An array stored by a scheme: its parts, and the shape of the values they stand for. Never written."""

    __slots__ = ("scheme", "parts", "axis", "shape")

    def __init__(self, scheme: Scheme, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> None:
        self.scheme = scheme
        self.parts = parts
        self.axis = axis  # negative, or None
        self.shape = shape

    @property
    def dtype(self) -> DType:
        return self.scheme.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> str:
        return self._backend.device_of(self.parts[0])

    @property
    def nbytes(self) -> int:
        """The bytes of all parts, scales included."""
        return sum(math.prod(p.shape) * backends.of(p).dtype_of(p).itemsize for p in self.parts)

    @property
    def _backend(self) -> Any:
        return backends.of(self.parts[0])

    def dequantize(self) -> Any:
        """The values as a raw floating-point array of the parts' backend."""
        return self.scheme.decode(self._backend.xp, self.parts, self.axis, self.shape)

    def to_device(self, device: str) -> QuantizedArray:
        moved = tuple(backends.transfer(part, device) for part in self.parts)
        return QuantizedArray(self.scheme, moved, self.axis, self.shape)

    def __repr__(self) -> str:
        return f"QuantizedArray({self.scheme.name}, shape={self.shape}, axis={self.axis}, device={self.device!r})"

    def __reduce__(self) -> Any:
        parts = tuple(backends.of(part).to_numpy(part) for part in self.parts)
        return unpickled, (self.scheme.name, parts, self.axis, self.shape, self.device)


def unpickled(scheme: str, parts: tuple[Any, ...], axis: int | None, shape: Any, device: str) -> QuantizedArray:
    moved = tuple(backends.transfer(part, device) for part in parts)
    return QuantizedArray(SCHEMES[scheme], moved, axis, shape)


def quantize(raw: Any, scheme: str, axis: int | None) -> QuantizedArray:
    """A raw floating-point array in a storage format; `axis` is the one whose indices have scales of their own."""
    if scheme not in SCHEMES:
        raise DtypeError(f"quantize: unknown scheme {scheme!r}; known: {', '.join(map(repr, SCHEMES))}.")
    backend: Any = backends.of(raw)
    dtype = backend.dtype_of(raw)
    if dtype.kind != "float":
        raise DtypeError(f"quantize: expected a floating-point array, got {dtype.name}.")
    shape = tuple(raw.shape)
    if axis is not None:
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(f"quantize: axis {axis} is out of range for shape {shape}. Use axis=None for one scale.")
        axis = (axis if axis < 0 else axis - len(shape)) if SCHEMES[scheme].has_axis else None
    if math.prod(shape) == 0:
        raise ShapeError(f"quantize: an array of shape {shape} has no values to take a scale from.")
    if not bool(backend.xp.all(backend.xp.isfinite(raw))):
        raise ValueError("quantize: the values hold NaN or infinity, which have no quantized form.")
    chosen = SCHEMES[scheme]
    raw = backend.xp.widened(raw)  # scales of half precision would add errors of their own
    parts = tuple(backend.from_scalar(part) for part in chosen.encode(backend.xp, raw, axis))
    return QuantizedArray(chosen, parts, axis, shape)


class _NoKernels:
    """Operations take dequantized values; asking for a kernel on quantized ones is an error that says so."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise DtypeError(f"{name}: the input is quantized. Write `t.dequantize()` to compute with its values.")


class QuantizedBackend(Backend):
    """What the registry needs to know of quantized arrays: they live on their parts' device and have no kernels."""

    name = "quantized"
    array_types = (QuantizedArray,)
    xp = _NoKernels()
    writable = False
    lives_anywhere = True

    def devices(self) -> tuple[str, ...]:
        return ()

    def device_of(self, raw: QuantizedArray) -> str:
        return raw.device

    def dtype_of(self, raw: QuantizedArray) -> DType:
        return raw.dtype

    def raw_dtype(self, dtype: DType) -> Any:
        return dtype

    def asarray(self, data: Any, dtype: DType | None, device: str, copy: bool | None) -> Any:
        if dtype is not None and dtype != data.dtype:
            raise DtypeError(f"a quantized tensor cannot become {dtype.name}: write `t.dequantize().astype(...)`.")
        return data if device == data.device else data.to_device(device)

    def to_numpy(self, raw: QuantizedArray) -> Any:
        return backends.NUMPY.read_only(raw._backend.to_numpy(raw.dequantize()))

    def exported(self, raw: QuantizedArray) -> Any:
        raise DtypeError("DLPack has no quantized arrays: write `t.dequantize()` first.")

    def copy(self, raw: QuantizedArray) -> Any:
        parts = tuple(raw._backend.copy(part) for part in raw.parts)
        return QuantizedArray(raw.scheme, parts, raw.axis, raw.shape)


QUANTIZED = QuantizedBackend()
