"""Making tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backends, dtypes
from ..errors import DeviceError, DtypeError
from ..tensor.core import Tensor, make

__all__ = ["asarray", "default_dtype", "set_default_dtype", "tensor"]

_default_dtype = dtypes.float32


def set_default_dtype(dtype: Any) -> None:
    """Choose the dtype that Python floats and lists of them become (float32 at first)."""
    global _default_dtype
    chosen = dtypes.get(dtype)
    if chosen.kind != "float":
        raise DtypeError(f"the default dtype must be a floating-point one, got {chosen.name}.")
    _default_dtype = chosen


def default_dtype() -> dtypes.DType:
    return _default_dtype


def asarray(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of `obj`; the memory of a known library's array is borrowed, and copied at the first write.

    A tensor is returned as it is, gradient included, unless another dtype or device, or a copy, is asked for.
    """
    wanted = None if dtype is None else dtypes.get(dtype)
    if isinstance(obj, Tensor):
        return _converted(obj, wanted, device, copy)
    backend = backends.of(obj)
    if backend is not None:
        raw = backend.asarray(obj, wanted, device or backend.device_of(obj), copy)
        return make(raw, None)
    data, wanted = _python_data(obj, wanted)
    backend, device = backends.for_device(device)
    return make(backend.asarray(data, wanted, device, copy), None)


def _converted(x: Tensor, dtype: dtypes.DType | None, device: str | None, copy: bool | None) -> Tensor:
    result = x
    if dtype is not None and dtype != x.dtype:
        if copy is False:
            raise ValueError(f"asarray: cannot convert {x.dtype.name} to {dtype.name} without a copy, and copy=False.")
        from ..autodiff.tables import TENSORS

        result = TENSORS.astype(result, x._backend.raw_dtype(dtype))
    if device is not None and device != x.device:
        raise DeviceError(f"cannot move from {x.device} to {device}.")
    if copy and result is x:
        result = x.clone()
    return result


def _python_data(obj: Any, dtype: dtypes.DType | None) -> tuple[Any, dtypes.DType | None]:
    """Numbers and nested lists as a NumPy array, floats in the default dtype."""
    data = np.asarray(_without_tensors(obj))
    if dtype is None:
        kind = data.dtype.kind
        if kind == "f" and not _has_array(obj):
            dtype = _default_dtype
        elif kind == "c" and not _has_array(obj):
            dtype = dtypes.complex64 if _default_dtype != dtypes.float64 else dtypes.complex128
        elif kind == "i" and data.dtype != np.int64:
            dtype = dtypes.from_numpy(data.dtype)
    return data, dtype


def _has_array(obj: Any) -> bool:
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return hasattr(obj, "dtype")


def _without_tensors(obj: Any) -> Any:
    if isinstance(obj, (list, tuple)):
        return [_without_tensors(part) for part in obj]
    return obj


def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    >>> import pullback as pb
    >>> pb.tensor([[1, 2], [3, 4]], dtype=pb.float64, requires_grad=True)
    tensor([[1., 2.],
            [3., 4.]], dtype=float64, requires_grad=True)
    """
    source = data.detach() if isinstance(data, Tensor) else data
    result = asarray(source, dtype=dtype, device=device, copy=True)
    if requires_grad:
        result.set_requires_grad(True)
    return result
