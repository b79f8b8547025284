"""Making tensors."""

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from .. import backends, dtypes
from ..autodiff.tables import TENSORS
from ..errors import DeviceError, DtypeError, ShapeError
from ..tensor.core import Tensor, make

__all__ = [
    "arange", "asarray", "default_dtype", "e", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "inf",
    "linspace", "meshgrid", "nan", "newaxis", "ones", "ones_like", "pi", "set_default_dtype", "tensor", "tril", "triu",
    "zeros", "zeros_like",
]  # fmt: skip

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

_default_dtype = dtypes.float32


def set_default_dtype(dtype: Any) -> None:
    """Choose the dtype that Python floats and lists of them become (float32 at first).

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

    >>> import pullback as pb
    >>> w = pb.tensor(2.0, requires_grad=True)
    >>> pb.asarray([w, w * w])
    tensor([2., 4.], requires_grad=True)
    """
    if dtype is None and device is None and copy is None and isinstance(obj, Tensor):
        return obj
    wanted = None if dtype is None else dtypes.get(dtype)
    if isinstance(obj, Tensor):
        return _converted(obj, wanted, device, copy)
    backend = backends.of(obj)
    if backend is not None:
        return _of_raw(obj, backend, wanted, device, copy)
    if hasattr(obj, "__dlpack__"):
        return asarray(_of_dlpack(obj, copy), dtype=dtype, device=device)
    if isinstance(obj, (list, tuple)) and _holds_tensors(obj):
        return _stacked(obj, wanted, device)
    if copy is False and isinstance(obj, (list, tuple, bool, int, float, complex)):
        raise ValueError(
            f"asarray: a Python {type(obj).__name__} cannot become a tensor without a copy, and copy=False."
        )
    data, wanted = _python_data(obj, wanted)
    backend, device = backends.for_device(device)
    return make(backend.asarray(data, wanted, device, copy), None)


def _converted(x: Tensor, dtype: dtypes.DType | None, device: str | None, copy: bool | None) -> Tensor:
    result = x
    if dtype is not None and dtype != x.dtype:
        if copy is False:
            raise ValueError(f"asarray: cannot convert {x.dtype.name} to {dtype.name} without a copy, and copy=False.")
        result = TENSORS.astype(result, x._backend.raw_dtype(dtype))
    if device is not None and (device := backends.for_device(device)[1]) != x.device:
        from ..tensor.conversion import moved

        result = moved(result, device, copy)
    if copy and result is x:
        result = x.clone()
    return result


def _of_raw(raw: Any, backend: Any, dtype: dtypes.DType | None, device: str | None, copy: bool | None) -> Tensor:
    """A tensor of an array of `backend`, on its own device unless another one is named."""
    own = backend.device_of(raw)
    result = backend.asarray(raw, dtype, own, copy)
    if device is not None and (device := backends.for_device(device)[1]) != own:
        result = backends.transfer(result, device, copy if result is raw else None)
    return make(result, None) if backend.tensor_class is None else backend.tensor_class.of_raw(result)


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

    >>> import numpy as np, pullback as pb
    >>> pb.from_dlpack(np.asarray([1.0, 2.0]))
    tensor([1., 2.], dtype=float64)
    """
    if isinstance(x, Tensor) or backends.of(x) is not None:
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


def _holds_tensors(obj: Any) -> bool:
    return any(isinstance(part, Tensor) for part in _parts(obj))


def array_of_list(values: Any, device: str) -> Tensor:
    """A tensor of the list that an operator was given, in the dtype that NumPy would give it."""
    return asarray(values if _holds_tensors(values) else np.asarray(values), device=device)


def _stacked(obj: Any, dtype: dtypes.DType | None, device: str | None) -> Tensor:
    """A tensor of nested lists that hold tensors, by stacking: the gradients find their way back."""
    if dtype is None:
        from .data_types import result_type

        dtype = result_type(*_parts(obj))
    if device is None:
        device = next(part.device for part in _parts(obj) if isinstance(part, Tensor))

    def build(part: Any) -> Tensor:
        if not (isinstance(part, (list, tuple)) and _holds_tensors(part)):
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


def _has_array(obj: Any) -> bool:
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    return hasattr(obj, "dtype")


def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`.

    Of a tensor that requires a gradient it makes a new variable with `requires_grad=True` alone; use `pb.asarray` or
    `clone` to go on with the gradient, `detach` to go on without.

    >>> import pullback as pb
    >>> pb.tensor([[1, 2], [3, 4]], dtype=pb.float64, requires_grad=True)
    tensor([[1., 2.],
            [3., 4.]], dtype=float64, requires_grad=True)
    """
    source = data
    if isinstance(data, Tensor):
        if not requires_grad:
            from ..tensor.conversion import refuse_tracked

            refuse_tracked(data, "tensor", "write `t.clone()` or `pb.asarray(t)`")
        source = data.detach()
    result = asarray(source, dtype=dtype, device=device, copy=True)
    if requires_grad:
        result.set_requires_grad(True)
    return result


# -- arrays of constants -------------------------------------------------------------------------


def _like_for(device: str | None) -> tuple[Any, Any]:
    """The backend of a device, and an array there that creation kernels can follow."""
    backend, device = backends.for_device(device)
    return backend, backend.asarray(0, dtypes.int64, device, None) if backend is not backends.NUMPY else None


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        return (int(shape.__index__()),) if hasattr(shape, "__index__") else tuple(n.__index__() for n in shape)
    except (TypeError, AttributeError):
        raise ShapeError(f"a shape is an integer or a tuple of integers, got {shape!r}.") from None


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


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of `shape` that is `fill_value` everywhere; a 0-d tensor as `fill_value` keeps its gradient.

    >>> import pullback as pb
    >>> pb.full((2, 2), 7.0)
    tensor([[7., 7.],
            [7., 7.]])
    """
    shape = _shape(shape)
    if isinstance(fill_value, Tensor):
        return TENSORS.broadcast_to(asarray(fill_value, dtype=dtype, device=device), shape)
    wanted = dtype_of_number(fill_value) if dtype is None else dtypes.get(dtype)
    backend, like = _like_for(device)
    try:
        return make(backend.xp.full(shape, fill_value, backend.raw_dtype(wanted), like), None)
    except ValueError as error:
        raise ShapeError(f"full: {error}, given shape {shape}.") from error


def zeros(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of zeros.

    >>> import pullback as pb
    >>> pb.zeros(3)
    tensor([0., 0., 0.])
    """
    wanted = _default_dtype if dtype is None else dtypes.get(dtype)
    backend, like = _like_for(device)
    try:
        return make(backend.xp.zeros(_shape(shape), backend.raw_dtype(wanted), like), None)
    except ValueError as error:
        raise ShapeError(f"zeros: {error}, given shape {shape}.") from error


def ones(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor of ones.

    >>> import pullback as pb
    >>> pb.ones((1, 2))
    tensor([[1., 1.]])
    """
    return full(shape, 1, dtype=_default_dtype if dtype is None else dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor whose values do not matter; they are zeros, which systems hand out for nothing.

    >>> import pullback as pb
    >>> pb.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor with the shape, dtype and device of `x` that is `fill_value` everywhere.

    >>> import pullback as pb
    >>> pb.full_like(pb.asarray([1, 2]), 7)
    tensor([7, 7])
    """
    x = asarray(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros with the shape, dtype and device of `x`.

    >>> import pullback as pb
    >>> pb.zeros_like(pb.asarray([1, 2]))
    tensor([0, 0])
    """
    x = asarray(x)
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones with the shape, dtype and device of `x`.

    >>> import pullback as pb
    >>> pb.ones_like(pb.asarray([1, 2]))
    tensor([1, 1])
    """
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor with the shape, dtype and device of `x`, whose values do not matter.

    >>> import pullback as pb
    >>> pb.empty_like(pb.asarray([1, 2])).dtype
    pullback.int64
    """
    return zeros_like(x, dtype=dtype, device=device)


# -- ranges and grids ----------------------------------------------------------------------------


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Evenly spaced values from `start` up to but not including `stop`.

    >>> import pullback as pb
    >>> pb.arange(3), pb.arange(1.0, 2.0, 0.5)
    (tensor([0, 1, 2]), tensor([1. , 1.5]))
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        wanted = (
            _default_dtype if any(isinstance(n, (float, np.floating)) for n in (start, stop, step)) else dtypes.int64
        )
    else:
        wanted = dtypes.get(dtype)
    if step == 0:
        raise ShapeError("arange: the step must not be zero.")
    if (stop - start) / step <= 0:
        return zeros(0, dtype=wanted, device=device)
    backend, like = _like_for(device)
    return make(backend.xp.arange(start, stop, step, backend.raw_dtype(wanted), like), None)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, which is left out if not `endpoint`.

    `start` and `stop` may be 0-d tensors, and keep their gradients.

    >>> import pullback as pb
    >>> pb.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if num < 0:
        raise ShapeError(f"linspace: the number of values must not be negative, got {num}.")
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        from .data_types import result_type

        wanted = dtypes.get(dtype) if dtype is not None else result_type(start, stop, _default_dtype)
        start, stop = asarray(start, dtype=wanted, device=device), asarray(stop, dtype=wanted, device=device)
        weights = linspace(0.0, 1.0, num, dtype=wanted, device=start.device, endpoint=endpoint)
        return start * (1 - weights) + stop * weights
    if dtype is None:
        wanted = default_complex_dtype() if isinstance(start, complex) or isinstance(stop, complex) else _default_dtype
    else:
        wanted = dtypes.get(dtype)
    backend, device = backends.for_device(device)
    values = np.linspace(start, stop, num, dtype=dtypes.numpy_dtype(wanted), endpoint=endpoint)
    return make(backend.asarray(values, wanted, device, None), None)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Tensor:
    """A matrix with ones on the diagonal number `k` (positive: above the main one) and zeros elsewhere.

    >>> import pullback as pb
    >>> pb.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    wanted = _default_dtype if dtype is None else dtypes.get(dtype)
    backend, device = backends.for_device(device)
    matrix = np.eye(n_rows, n_cols, k, dtype=dtypes.numpy_dtype(wanted))
    return make(backend.asarray(matrix, wanted, device, None), None)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor per axis; with "xy" the first two axes are exchanged, as for pictures.

    >>> import pullback as pb
    >>> pb.meshgrid(pb.asarray([1, 2]), pb.asarray([3, 4]))[0]
    tensor([[1, 2],
            [1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}.')
    axes = [asarray(x) for x in arrays]
    for x in axes:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: expected tensors with at most one axis, got shape {x.shape}.")
    ndim = len(axes)
    places = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        places[:2] = 1, 0
    shape = [0] * ndim
    for x, place in zip(axes, places):
        shape[place] = x.size
    columns = [
        TENSORS.reshape(x, (1,) * place + (x.size,) + (1,) * (ndim - place - 1)) for x, place in zip(axes, places)
    ]
    return tuple([TENSORS.broadcast_to(x, tuple(shape)) for x in columns])


def _triangle(name: str, x: Any, k: int) -> Tensor:
    x = asarray(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: expected a matrix or a stack of matrices, got shape {x.shape}.")
    return getattr(TENSORS, name)(x, k)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, zeros above diagonal `k`.

    >>> import pullback as pb
    >>> pb.tril(pb.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle("tril", x, k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, zeros below diagonal `k`.

    >>> import pullback as pb
    >>> pb.triu(pb.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle("triu", x, k)
