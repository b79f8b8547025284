"""Elements that meet at the same place: their sum, product, mean, largest or smallest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .indexing import _compatible, _indices, put_along_axis
from .shapes import broadcast_shapes

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["scatter", "scatter_reduce"]

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_OF_SCATTER = {"add": "sum", "multiply": "prod"}


@hide_others
def scatter(
    x: ArrayLike, indices: Any, values: Any, /, *, axis: int = -1, reduce: str | None = None, **other: Never
) -> Tensor:
    """`x` with `values` where `take_along_axis(x, indices, axis=axis)` would read: written, or joined with it.

    Parameters
    ----------
    x : array
        The tensor, which stays as it is.
    indices : array of int
        Integers with as many axes as `x`, and the same sizes (or 1) in all but `axis`.
    values : array
        What to write; it is broadcast to the shape of `indices`.
    axis : int
        Along which axis the indices count.
    reduce : str, optional
        None to write, where the last value stays (as `put_along_axis` does); "add" or "multiply" to join all of them
        with the element of `x`. `scatter_reduce` has more.

    Returns
    -------
    Tensor
        A tensor of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter(pb.asarray([1.0, 1.0, 1.0]), pb.asarray([0, 2, 2]), pb.asarray([2.0, 3.0, 4.0]), reduce="multiply")
    tensor([ 2.,  1., 12.])
    """
    if other:
        raise unexpected("scatter", other)
    if reduce is None:
        return put_along_axis(x, indices, values, axis=axis)
    if reduce not in _OF_SCATTER:
        raise ValueError(f'scatter: reduce must be None, "add" or "multiply", got {reduce!r}; see `pb.scatter_reduce`.')
    return _scattered("scatter", x, indices, values, _OF_SCATTER[reduce], axis, True)


@hide_others
def scatter_reduce(
    x: ArrayLike,
    indices: Any,
    values: Any,
    /,
    reduce: str,
    *,
    axis: int = -1,
    include_self: bool = True,
    **other: Never,
) -> Tensor:
    """`x` where `take_along_axis(x, indices, axis=axis)` would read replaced by what `values` that meet there make.

    Parameters
    ----------
    x : array
        The tensor, which stays as it is.
    indices : array of int
        Integers with as many axes as `x`, and the same sizes (or 1) in all but `axis`.
    values : array
        What is joined; it is broadcast to the shape of `indices`.
    reduce : str
        "sum", "prod", "mean", "amax" or "amin".
    axis : int
        Along which axis the indices count.
    include_self : bool
        Whether the element of `x` is one of those that are joined.

    Returns
    -------
    Tensor
        A tensor of the shape of `x`, whose elements stay where no index points. Elements that tie for the largest or
        smallest share its gradient.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter_reduce(pb.asarray([0.0, 0.0, 5.0]), pb.asarray([0, 0, 1]), pb.asarray([1.0, 3.0, 4.0]), "mean",
    ...                   include_self=False)
    tensor([2., 4., 5.])
    """
    if other:
        raise unexpected("scatter_reduce", other)
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce must be one of {', '.join(map(repr, _REDUCTIONS))}, got {reduce!r}.")
    return _scattered("scatter_reduce", x, indices, values, reduce, axis, bool(include_self))


def _scattered(name: str, x: Any, indices: Any, values: Any, reduce: str, axis: int, include_self: bool) -> Tensor:
    x, where, values = asarray(x), _indices(name, indices), asarray(values)
    position = _compatible(name, x, where, axis)
    dtype = TENSORS.concat([_none_of(x), _none_of(values)], -1)._raw.dtype
    if dtype != x._raw.dtype:
        x = TENSORS.astype(x, dtype)
    if dtype != values._raw.dtype:
        values = TENSORS.astype(values, dtype)
    # every position of the other axes by itself
    others = tuple(1 if i - x.ndim == position else n for i, n in enumerate(x.shape))
    shape = broadcast_shapes(where.shape, others)
    if values.ndim > len(shape) or any(m not in (1, n) for m, n in zip(values.shape[::-1], shape[::-1])):
        raise ShapeError(f"{name}: values of shape {values.shape} do not fit indices of shape {where.shape}.")
    full = tuple(x.shape[i] if i - x.ndim == position else n for i, n in enumerate(shape))
    x = TENSORS.broadcast_to(x, full)
    where, values = TENSORS.broadcast_to(where, shape), TENSORS.broadcast_to(values, shape)
    size = full[position]
    where = TENSORS.where(TENSORS.less(where, 0), where + size, where)
    if reduce in ("amax", "amin"):
        return _extremum(name, x, where, values, position, reduce == "amax", include_self)
    if reduce == "prod":
        return _product(x, where, values, position, include_self)
    total = TENSORS.take_along_axis_transposed(values, where, size, position)
    if reduce == "sum" and include_self:
        return TENSORS.add(x, total)
    count = TENSORS.take_along_axis_transposed(TENSORS.ones_like(values), where, size, position)
    is_hit = TENSORS.greater(TENSORS.real(count), 0)
    if include_self:
        total, count = total + x, count + 1
    elif reduce == "mean":
        count = TENSORS.where(is_hit, count, TENSORS.ones_like(count))
    if reduce == "mean":
        is_whole = x.dtype.kind in ("int", "uint")
        total = TENSORS.floor_divide(total, count) if is_whole else TENSORS.divide(total, count)
    return total if include_self else TENSORS.where(is_hit, total, x)


def _none_of(x: Tensor) -> Tensor:
    return TENSORS.zeros((0,), x._raw.dtype, x)


def _extremum(name: str, x: Any, where: Any, values: Any, axis: int, largest: bool, include_self: bool) -> Tensor:
    if x.dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order.")
    if include_self:  # the elements of `x` are values, too, each at its own place
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
        own = TENSORS.reshape(TENSORS.arange(0, x.shape[axis], 1, where._raw.dtype, where), tuple(shape))
        values = TENSORS.concat([values, x], axis)
        where = TENSORS.concat([where, TENSORS.broadcast_to(own, x.shape)], axis)
    return apply(OPERATIONS["scatter_extremum"], (x, values, where), (axis, largest))


def _product(x: Any, where: Any, values: Any, axis: int, include_self: bool) -> Tensor:
    """Those of one place side by side, and each multiplied by those before it: twice as many in every round."""
    order = TENSORS.argsort(where, (axis,), False, True)
    where = TENSORS.take_along_axis(where, order, axis)
    values = TENSORS.take_along_axis(values, order, axis)
    distance = 1
    while distance < where.shape[axis]:
        before, here = _part(where, axis, slice(None, -distance)), _part(where, axis, slice(distance, None))
        factor = _part(values, axis, slice(None, -distance))
        factor = TENSORS.where(TENSORS.equal(before, here), factor, TENSORS.ones_like(factor))
        later = TENSORS.multiply(_part(values, axis, slice(distance, None)), factor)
        values = TENSORS.concat([_part(values, axis, slice(None, distance)), later], axis)
        distance *= 2
    start = TENSORS.ones_like(x) if include_self else x
    product = TENSORS.put_along_axis(start, values, where, axis)  # the last one of a place stays
    return TENSORS.multiply(x, product) if include_self else product


def _part(x: Any, axis: int, part: slice) -> Any:
    return TENSORS.getitem(x, (..., part, *(slice(None),) * (-1 - axis)))
