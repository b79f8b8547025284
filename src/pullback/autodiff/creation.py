"""Tensors of given data, and the default dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

from .. import backends, dtypes, modes
from ..errors import DeviceError, DtypeError, ShapeError
from . import base, borrowing
from .base import PYTHON_SCALARS, created, make, refuse_tracked
from .tables import TENSORS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "asarray", "default_dtype", "e", "from_dlpack", "inf", "nan", "newaxis", "pi", "result_type", "set_default_dtype",
    "tensor",
]  # fmt: skip

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_default_dtype = dtypes.float32
_ndarray = np.ndarray
_HERE = (None, "numpy")  # devices on which a NumPy array is already


def set_default_dtype(dtype: Any) -> None:
    """Choose the dtype that Python floats and lists of them become (float32 at first).

    Parameters
    ----------
    dtype : dtype
        `pb.float64`, `pb.float32` or a shorter float.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.set_default_dtype(pb.float32)
    """
    global _default_dtype
    chosen = dtypes.get(dtype)
    if chosen.kind != "float":
        raise DtypeError(f"the default dtype must be a floating-point one, got {chosen.name}.")
    _default_dtype = chosen


def default_dtype() -> dtypes.DType:
    """The dtype that Python floats and lists of them become.

    >>> import pullback as pb
    >>> pb.default_dtype()
    pullback.float32
    """
    return _default_dtype


def asarray(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of `obj`; the memory of a known library's array is borrowed, and copied at the first write.

    A tensor is returned as it is, gradient included, unless another dtype or device, or a copy, is asked for.
    Tensors in nested lists keep their gradients.

    Parameters
    ----------
    obj : array, number or nested list
        What to take. Arrays of NumPy, PyTorch, JAX and CuPy are known, and tensors.
    dtype : dtype, optional
        By default that of `obj`; Python floats become `pb.default_dtype()`.
    device : str, optional
        By default where `obj` is; numbers and lists go to the current device (see `pb.device`).
    copy : bool, optional
        True copies at once. False raises where a copy could not be avoided. None copies when it must.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor(2.0, requires_grad=True)
    >>> pb.asarray([w, w * w])
    tensor([2., 4.], requires_grad=True)
    >>> pb.asarray([1.0, 2.0], dtype=pb.float64)
    tensor([1., 2.], dtype=float64)
    """
    if dtype is None and device is None and copy is None and isinstance(obj, base.Tensor):
        return obj
    if type(obj) is _ndarray and dtype is None and device in _HERE and not copy and not modes.is_special():
        if obj.dtype in dtypes.BY_NUMPY and obj.dtype.isnative:
            return make(obj, None)
    wanted = None if dtype is None else dtypes.get(dtype)
    if isinstance(obj, base.Tensor):
        return _converted(obj, wanted, device, copy)
    backend = backends.of(obj)
    if backend is backends.NUMPY and (trace := modes.tracing()) is not None and isinstance(obj, np.ndarray):
        real = getattr(obj, "_real", obj)  # of an array that is hidden while it is traced
        obj = trace.lift_given(backend.plain(real))  # by reference: a program copies when it runs
        backend = backends.of(obj)
    if backend is not None:
        if (trace := modes.tracing()) is not None:
            trace.recorder.refuse_array(obj)
        return _of_raw(obj, backend, wanted, device, copy)
    if hasattr(obj, "__dlpack__"):
        return asarray(_of_dlpack(obj, copy), dtype=dtype, device=device)
    if isinstance(obj, (list, tuple)) and _holds(obj, base.Tensor):
        return _stacked(obj, wanted, device)
    if copy is False and isinstance(obj, (list, tuple, bool, int, float, complex)):
        raise ValueError(
            f"asarray: a Python {type(obj).__name__} cannot become a tensor without a copy, and copy=False."
        )
    data, wanted = _python_data(obj, wanted)
    if modes.tracing() is not None and isinstance(obj, (list, tuple)) and _holds(obj, np.ndarray):
        return _stacked(obj, wanted or dtypes.from_numpy(data.dtype), device)  # arrays from outside, by reference
    backend, device = backends.for_device(device)
    return created(backend.asarray(data, wanted, device, copy))


def given(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """As `asarray`, for the arguments of operations: graphs see a NumPy array as it is now (see `borrowing`)."""
    if type(obj) is base.Tensor and dtype is None and device is None and copy is None:
        return obj  # what `asarray` does, too, without another call
    if type(obj) is _ndarray and modes.is_recording() and modes.tracing() is None:
        obj = borrowing.kept(obj)
    return asarray(obj, dtype=dtype, device=device, copy=copy)


def _converted(x: Tensor, dtype: dtypes.DType | None, device: str | None, copy: bool | None) -> Tensor:
    result = x
    if dtype is not None and dtype != x.dtype:
        if copy is False:
            raise ValueError(f"asarray: cannot convert {x.dtype.name} to {dtype.name} without a copy, and copy=False.")
        result = TENSORS.astype(result, x._backend.raw_dtype(dtype))
    if device is not None and (device := backends.for_device(device)[1]) != x.device:
        result = result._moved(device, copy)
    if copy and result is x:
        result = x.clone()
    return result


def _of_raw(raw: Any, backend: Any, dtype: dtypes.DType | None, device: str | None, copy: bool | None) -> Tensor:
    """A tensor of an array of `backend`, on its own device unless another one is named."""
    own = backend.device_of(raw)
    result = backend.asarray(raw, dtype, own, copy)
    if device is not None and (device := backends.for_device(device)[1]) != own:
        result = backends.transfer(result, device, copy if result is raw else None)
    return created(result) if backend.tensor_class is None else backend.tensor_class.of_raw(result)


def _of_dlpack(obj: Any, copy: bool | None = None) -> Any:
    """A raw array that shares memory with a DLPack object of a library that is not known."""
    kind = int(obj.__dlpack_device__()[0])
    if kind != 1:  # 1 is the CPU in DLPack's numbering
        raise DeviceError(
            f"from_dlpack: {type(obj).__name__} lies on DLPack device type {kind}; only CPU memory (1) of libraries "
            "that Pullback does not know can be taken. Convert it to a PyTorch, JAX or CuPy array first."
        )
    return np.from_dlpack(obj, copy=copy)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of any object with `__dlpack__`, sharing its memory; the first write to the tensor copies.

    With `copy=True` it is copied at once; with `copy=False` a copy that could not be avoided is an error.

    >>> import numpy as np, pullback as pb
    >>> pb.from_dlpack(np.asarray([1.0, 2.0]))
    tensor([1., 2.], dtype=float64)
    """
    if isinstance(x, base.Tensor) or backends.of(x) is not None:
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack__"):
        raise DtypeError(f"from_dlpack: expected an object with `__dlpack__`, got {type(x).__name__}.")
    return asarray(_of_dlpack(x, copy), device=device)


def _parts(obj: Any) -> Iterator[Any]:
    """What nested lists hold, in order."""
    if isinstance(obj, (list, tuple)):
        for part in obj:
            yield from _parts(part)
    else:
        yield obj


def _holds(obj: Any, kind: type) -> bool:
    return any(isinstance(part, kind) for part in _parts(obj))


def array_of_list(values: Any, device: str) -> Tensor:
    """A tensor of the list that an operator was given, in the dtype that NumPy would give it."""
    if _holds(values, base.Tensor):
        return asarray(values, device=device)
    data = np.asarray(values)
    return asarray(data if modes.tracing() is None else values, dtype=data.dtype, device=device)


def _stacked(obj: Any, dtype: dtypes.DType | None, device: str | None) -> Tensor:
    """A tensor of nested lists that hold tensors, by stacking: the gradients find their way back."""
    if dtype is None:
        dtype = result_type(*_parts(obj))
    if device is None:
        device = next((part.device for part in _parts(obj) if isinstance(part, base.Tensor)), None)

    def build(part: Any) -> Tensor:
        if not (isinstance(part, (list, tuple)) and (part is obj or _holds(part, base.Tensor))):
            return asarray(part, dtype=dtype, device=device)
        rows = [build(row) for row in part]
        if len({row.shape for row in rows}) > 1:
            raise ShapeError(
                f"asarray: the parts of a list have different shapes: {', '.join(str(r.shape) for r in rows)}."
            )
        return TENSORS.stack(rows, -1 - rows[0].ndim)

    return build(obj)


def _python_data(obj: Any, dtype: dtypes.DType | None) -> tuple[Any, dtypes.DType | None]:
    """Numbers and nested lists as a NumPy array, floats in the default dtype."""
    data = np.asarray(obj)
    if dtype is None:
        kind = data.dtype.kind
        if kind == "f" and not _has_array(obj):
            dtype = _default_dtype
        elif kind == "c" and not _has_array(obj):
            dtype = default_complex_dtype()
        elif kind == "i" and data.dtype != np.int64:
            dtype = dtypes.from_numpy(data.dtype)
    return data, dtype


def default_complex_dtype() -> dtypes.DType:
    return dtypes.complex128 if _default_dtype == dtypes.float64 else dtypes.complex64


def dtype_of_number(value: Any) -> dtypes.DType:
    """The dtype that a Python number becomes."""
    if isinstance(value, (np.generic, np.ndarray)):
        return dtypes.from_numpy(value.dtype)
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.int64
    if isinstance(value, float):
        return _default_dtype
    if isinstance(value, complex):
        return default_complex_dtype()
    raise DtypeError(f"expected a number, got {type(value).__name__}: {value!r:.60}")


def dtype_of(value: Any) -> dtypes.DType:
    """The dtype of a tensor or an array, or the dtype that is meant by `value`."""
    if isinstance(value, base.Tensor):
        return value.dtype
    backend = backends.of(value)
    return dtypes.get(value) if backend is None else backend.dtype_of(value)


def result_type(*arrays_and_dtypes: Any) -> dtypes.DType:
    """The dtype of a result computed from these `arrays_and_dtypes` and Python numbers, which adapt to the others.

    >>> import pullback as pb
    >>> pb.result_type(pb.float32, pb.int8, 2.5)
    pullback.float32
    """
    if not arrays_and_dtypes:
        raise DtypeError("result_type: expected at least one tensor, dtype or number.")
    numbers = [x for x in arrays_and_dtypes if type(x) in PYTHON_SCALARS]
    others = [dtypes.numpy_dtype(dtype_of(x)) for x in arrays_and_dtypes if type(x) not in PYTHON_SCALARS]
    if not others:
        others = [dtypes.numpy_dtype(dtype_of_number(x)) for x in numbers]
        return dtypes.from_numpy(np.result_type(*others))
    result = np.result_type(*others)
    if dtypes.from_numpy(result).kind == "float":  # bfloat16, too, which NumPy does not take for a float
        numbers = [x for x in numbers if type(x) is complex]
    return dtypes.from_numpy(np.result_type(result, *[type(x)(0) for x in numbers]))


def _has_array(obj: Any) -> bool:
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return hasattr(obj, "dtype")


def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    Of a tensor that requires a gradient it makes a new variable with `requires_grad=True` alone; use `pb.asarray` or
    `clone` to go on with the gradient, `detach` to go on without.

    Parameters
    ----------
    data : array, number or nested list
        The values. They are copied.
    dtype : dtype, optional
        Such as `pb.float64`. By default that of `data`; Python floats become `pb.default_dtype()`.
    device : str, optional
        Such as "torch:cuda". By default where `data` is; numbers and lists go to the current device (see
        `pb.device`).
    requires_grad : bool
        Whether it is a variable: `backward` then computes its gradient. Only floats and complex numbers can.

    Returns
    -------
    Tensor
        A tensor with memory of its own.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensor([[1, 2], [3, 4]], dtype=pb.float64, requires_grad=True)
    tensor([[1., 2.],
            [3., 4.]], dtype=float64, requires_grad=True)
    """
    source = data
    if isinstance(data, base.Tensor):
        if not requires_grad:
            refuse_tracked(data, "tensor", "write `t.clone()` or `pb.asarray(t)`")
        source = data.detach()
    result = asarray(source, dtype=dtype, device=device, copy=True)
    if requires_grad:
        result.set_requires_grad(True)
    return result
