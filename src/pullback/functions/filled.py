"""Tensors of a given shape: filled, ranges, grids, triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from .. import backends, dtypes
from ..autodiff import base
from ..autodiff.base import created
from ..autodiff.creation import asarray, default_complex_dtype, default_dtype, dtype_of_number, result_type
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..keywords import hide_others, one_shape, unexpected

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "tril",
    "triu", "zeros", "zeros_like",
]  # fmt: skip


def _like_for(device: str | None) -> tuple[Any, Any]:
    """The backend of a device, and an array there that creation kernels can follow."""
    backend, device = backends.for_device(device)
    return backend, backend.asarray(0, dtypes.int64, device, None) if backend is not backends.NUMPY else None


def _shape(shape: Any) -> tuple[int, ...]:
    try:
        return (int(shape.__index__()),) if hasattr(shape, "__index__") else tuple(n.__index__() for n in shape)
    except (TypeError, AttributeError):
        raise ShapeError(f"a shape is an integer or a tuple of integers, got {shape!r}.") from None


@hide_others
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """A tensor of `shape` that is `fill_value` everywhere; a 0-d tensor as `fill_value` keeps its gradient.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the axes.
    fill_value : number or 0-d tensor
        What every element is.
    dtype : dtype, optional
        By default that of `fill_value`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full((2, 2), 7.0)
    tensor([[7., 7.],
            [7., 7.]])
    """
    if other:
        raise unexpected("full", other)
    shape = _shape(shape)
    if isinstance(fill_value, base.Tensor):
        return TENSORS.broadcast_to(asarray(fill_value, dtype=dtype, device=device), shape)
    wanted = dtype_of_number(fill_value) if dtype is None else dtypes.get(dtype)
    backend, like = _like_for(device)
    try:
        return created(backend.xp.full(shape, fill_value, backend.raw_dtype(wanted), like))
    except ValueError as error:
        raise ShapeError(f"full: {error}, given shape {shape}.") from error


@hide_others
def zeros(shape: Any, *more: Never, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """A tensor of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the axes.
    dtype : dtype, optional
        By default `pb.default_dtype()`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros(3)
    tensor([0., 0., 0.])
    >>> pb.zeros((2, 2), dtype=pb.int64)
    tensor([[0, 0],
            [0, 0]])
    """
    if more:
        raise one_shape("zeros", (shape, *more))
    if other:
        raise unexpected("zeros", other)
    wanted = default_dtype() if dtype is None else dtypes.get(dtype)
    backend, like = _like_for(device)
    try:
        return created(backend.xp.zeros(_shape(shape), backend.raw_dtype(wanted), like))
    except ValueError as error:
        raise ShapeError(f"zeros: {error}, given shape {shape}.") from error


@hide_others
def ones(shape: Any, *more: Never, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """A tensor of ones.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the axes.
    dtype : dtype, optional
        By default `pb.default_dtype()`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones((1, 2))
    tensor([[1., 1.]])
    """
    if more:
        raise one_shape("ones", (shape, *more))
    if other:
        raise unexpected("ones", other)
    return full(shape, 1, dtype=default_dtype() if dtype is None else dtype, device=device)


@hide_others
def empty(shape: Any, *more: Never, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """A tensor whose values do not matter; they are zeros, which systems hand out for nothing.

    Parameters
    ----------
    shape : int or tuple of int
        The sizes of the axes.
    dtype : dtype, optional
        By default `pb.default_dtype()`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.empty((2, 3)).shape
    (2, 3)
    """
    if more:
        raise one_shape("empty", (shape, *more))
    if other:
        raise unexpected("empty", other)
    return zeros(shape, dtype=dtype, device=device)


@hide_others
def full_like(
    x: ArrayLike, /, fill_value: Any, *, dtype: Any = None, device: str | None = None, **other: Never
) -> Tensor:
    """A tensor with the shape, dtype and device of `x` that is `fill_value` everywhere.

    Parameters
    ----------
    x : array
        Whose shape the result has.
    fill_value : number or 0-d tensor
        What every element is.
    dtype : dtype, optional
        By default that of `x`.
    device : str, optional
        By default that of `x`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full_like(pb.asarray([1, 2]), 7)
    tensor([7, 7])
    """
    if other:
        raise unexpected("full_like", other)
    x = asarray(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


@hide_others
def zeros_like(x: ArrayLike, /, *, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """Zeros with the shape, dtype and device of `x`.

    Parameters
    ----------
    x : array
        Whose shape the result has.
    dtype : dtype, optional
        By default that of `x`.
    device : str, optional
        By default that of `x`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros_like(pb.asarray([1, 2]))
    tensor([0, 0])
    """
    if other:
        raise unexpected("zeros_like", other)
    x = asarray(x)
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


@hide_others
def ones_like(x: ArrayLike, /, *, dtype: Any = None, device: str | None = None, **other: Never) -> Tensor:
    """Ones with the shape, dtype and device of `x`.

    Parameters
    ----------
    x : array
        Whose shape the result has.
    dtype : dtype, optional
        By default that of `x`.
    device : str, optional
        By default that of `x`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones_like(pb.asarray([1, 2]))
    tensor([1, 1])
    """
    if other:
        raise unexpected("ones_like", other)
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: ArrayLike, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """A tensor with the shape, dtype and device of `x`, whose values do not matter.

    >>> import pullback as pb
    >>> pb.empty_like(pb.asarray([1, 2])).dtype
    pullback.int64
    """
    return zeros_like(x, dtype=dtype, device=device)


# -- ranges and grids ----------------------------------------------------------------------------


@hide_others
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: str | None = None,
    **other: Never,
) -> Tensor:
    """Evenly spaced values from `start` up to but not including `stop`.

    Parameters
    ----------
    start : number
        The first value; with this argument alone it is `stop`, and the first value is 0.
    stop : number, optional
        Where to end. This value is not in the result.
    step : number
        The distance between two values. It may be negative.
    dtype : dtype, optional
        By default int64 for integers, else `pb.default_dtype()`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.arange(3), pb.arange(1.0, 2.0, 0.5)
    (tensor([0, 1, 2]), tensor([1. , 1.5]))
    >>> pb.arange(5, 0, -2)
    tensor([5, 3, 1])
    """
    if other:
        raise unexpected("arange", other)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        wanted = (
            default_dtype() if any(isinstance(n, (float, np.floating)) for n in (start, stop, step)) else dtypes.int64
        )
    else:
        wanted = dtypes.get(dtype)
    if step == 0:
        raise ShapeError("arange: the step must not be zero.")
    if (stop - start) / step <= 0:
        return zeros(0, dtype=wanted, device=device)
    backend, like = _like_for(device)
    return created(backend.xp.arange(start, stop, step, backend.raw_dtype(wanted), like))


@hide_others
def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
    **other: Never,
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, which is left out if not `endpoint`.

    `start` and `stop` may be 0-d tensors, and keep their gradients.

    Parameters
    ----------
    start : number or 0-d tensor
        The first value.
    stop : number or 0-d tensor
        The last value, if `endpoint`.
    num : int
        How many values.
    dtype : dtype, optional
        By default `pb.default_dtype()`, or the complex one if a bound is complex.
    device : str, optional
        By default the current device (see `pb.device`).
    endpoint : bool
        Whether `stop` is the last value.

    Returns
    -------
    Tensor
        With one axis of length `num`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linspace(0.0, 1.0, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if other:
        raise unexpected("linspace", other)
    if num < 0:
        raise ShapeError(f"linspace: the number of values must not be negative, got {num}.")
    if isinstance(start, base.Tensor) or isinstance(stop, base.Tensor):
        wanted = dtypes.get(dtype) if dtype is not None else result_type(start, stop, default_dtype())
        start, stop = asarray(start, dtype=wanted, device=device), asarray(stop, dtype=wanted, device=device)
        weights = linspace(0.0, 1.0, num, dtype=wanted, device=start.device, endpoint=endpoint)
        return start * (1 - weights) + stop * weights
    if dtype is None:
        wanted = default_complex_dtype() if isinstance(start, complex) or isinstance(stop, complex) else default_dtype()
    else:
        wanted = dtypes.get(dtype)
    backend, device = backends.for_device(device)
    values = np.linspace(start, stop, num, dtype=dtypes.numpy_dtype(wanted), endpoint=endpoint)
    return created(backend.asarray(values, wanted, device, None))


@hide_others
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
    **other: Never,
) -> Tensor:
    """A matrix with ones on the diagonal number `k` (positive: above the main one) and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    n_cols : int, optional
        The number of columns, by default that of rows.
    k : int
        Which diagonal has the ones: 0 is the main one, 1 the one above it, -1 the one below.
    dtype : dtype, optional
        By default `pb.default_dtype()`.
    device : str, optional
        By default the current device (see `pb.device`).

    Returns
    -------
    Tensor
        Of shape (n_rows, n_cols).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if other:
        raise unexpected("eye", other)
    wanted = default_dtype() if dtype is None else dtypes.get(dtype)
    backend, device = backends.for_device(device)
    matrix = np.eye(n_rows, n_cols, k, dtype=dtypes.numpy_dtype(wanted))
    return created(backend.asarray(matrix, wanted, device, None))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor per axis; with "xy" the first two axes are exchanged, as for pictures.

    Parameters
    ----------
    *arrays : array
        The coordinates along each axis, each with one axis.
    indexing : str
        "xy": the second array runs along the first axis, as in pictures. "ij": the first one does.

    Returns
    -------
    tuple of Tensor
        One per array, all of the grid's shape.

    Examples
    --------
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


def tril(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, zeros above diagonal `k`.

    Parameters
    ----------
    x : array
        A matrix, or a stack of matrices in its last two axes.
    k : int
        The highest diagonal that is kept: 0 is the main one, 1 the one above it.

    Returns
    -------
    Tensor
        As `x`, with zeros above that diagonal.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tril(pb.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle("tril", x, k)


def triu(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, zeros below diagonal `k`.

    Parameters
    ----------
    x : array
        A matrix, or a stack of matrices in its last two axes.
    k : int
        The lowest diagonal that is kept: 0 is the main one, -1 the one below it.

    Returns
    -------
    Tensor
        As `x`, with zeros below that diagonal.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.triu(pb.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle("triu", x, k)
