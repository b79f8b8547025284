"""Reductions, statistics and running totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from .. import dtypes
from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import all_axes, negative_axes, negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "diff", "max", "mean", "median", "min", "prod", "std", "sum", "var",
]  # fmt: skip


_CALLS = {
    name: call_for(name)
    for name in ("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "sum")
}


def _reduce(name: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    if not isinstance(x, base.Tensor):
        x = asarray(x)
    axes = None if axis is None else negative_axes(name, axis, len(x._raw.shape))
    return _CALLS[name](x, axes, bool(keepdims))


def _total(name: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Tensor:
    """A sum or product; given a dtype, computed in it."""
    if dtype is None:
        return _reduce(name, x, axis, keepdims)
    return _in_dtype(_reduce(name, _in_dtype(asarray(x), dtype), axis, keepdims), dtype)


def _in_dtype(x: Tensor, dtype: Any) -> Tensor:
    wanted = dtypes.get(dtype)
    return x if x.dtype == wanted else TENSORS.astype(x, x._backend.raw_dtype(wanted))


@hide_others
def sum(x: ArrayLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, **other: Never) -> Tensor:
    """The sum of all elements, or along an axis or several; small integers and truth values are summed as int64.

    Parameters
    ----------
    x : array
        Numbers or truth values of any shape.
    axis : int or tuple of int, optional
        Which axes to sum over; by default all of them.
    dtype : dtype, optional
        What to sum in; the result has it.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sum(pb.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    if other:
        raise unexpected("sum", other)
    return _total("sum", x, axis, dtype, keepdims)


@hide_others
def prod(x: ArrayLike, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, **other: Never) -> Tensor:
    """The product of all elements, or along an axis or several; its gradient is exact where elements are zero.

    Parameters
    ----------
    x : array
        Numbers or truth values of any shape.
    axis : int or tuple of int, optional
        Which axes to multiply over; by default all of them.
    dtype : dtype, optional
        What to multiply in; the result has it.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prod(pb.asarray([1.0, 2.0, 3.0]))
    tensor(6.)
    """
    if other:
        raise unexpected("prod", other)
    return _total("prod", x, axis, dtype, keepdims)


@hide_others
def mean(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The arithmetic mean of all elements, or along an axis or several.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.
    axis : int or tuple of int, optional
        Which axes to average over; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default. That of nothing is NaN.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mean(pb.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    tensor([1.5, 3.5])
    """
    if other:
        raise unexpected("mean", other)
    return _reduce("mean", x, axis, keepdims)


def _spread(name: str, x: Any, axis: Any, correction: float, keepdims: bool) -> Tensor:
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        x = _in_dtype(x, dtypes.float64)
    axes = None if axis is None else negative_axes(name, axis, x.ndim)
    return apply(OPERATIONS[name], (x,), (axes, correction, bool(keepdims)))


@hide_others
def var(
    x: ArrayLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, **other: Never
) -> Tensor:
    """The variance: the mean square deviation, with `correction` subtracted from the number of elements.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.
    axis : int or tuple of int, optional
        Over which axes; by default all of them.
    correction : float
        Subtracted from the number of elements; 1 gives the unbiased variance of a sample.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Real, without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.var(pb.asarray([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    if other:
        raise unexpected("var", other)
    return _spread("var", x, axis, correction, keepdims)


@hide_others
def std(
    x: ArrayLike, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, **other: Never
) -> Tensor:
    """The standard deviation, the root of `var`; its gradient is zero where all elements are equal.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.
    axis : int or tuple of int, optional
        Over which axes; by default all of them.
    correction : float
        Subtracted from the number of elements that squares are divided by; 1 for a sample's.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Real, without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.std(pb.asarray([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    if other:
        raise unexpected("std", other)
    return _spread("std", x, axis, correction, keepdims)


@hide_others
def max(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The largest element, or that along an axis or several; equal ones share the gradient equally.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int or tuple of int, optional
        Along which axes to look; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default. NaN if an element is.

    Raises
    ------
    ShapeError
        If there is no element to choose from.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.max(pb.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    tensor([3., 4.])
    """
    if other:
        raise unexpected("max", other)
    return _reduce("max", x, axis, keepdims)


@hide_others
def min(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The smallest element, or that along an axis or several; equal ones share the gradient equally.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int or tuple of int, optional
        Along which axes to look; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default. NaN if an element is.

    Raises
    ------
    ShapeError
        If there is no element to choose from.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.min(pb.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    tensor([1., 2.])
    """
    if other:
        raise unexpected("min", other)
    return _reduce("min", x, axis, keepdims)


amax, amin = max, min


@hide_others
def median(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The middle one of the sorted elements, or the mean of the middle two; NaN if one of them is.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int or tuple of int, optional
        Over which axes; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.median(pb.asarray([3.0, 1.0, 2.0, 10.0]))
    tensor(2.5)
    """
    if other:
        raise unexpected("median", other)
    x = asarray(x)
    ndim = x.ndim
    axes = all_axes(ndim) if axis is None else negative_axes("median", axis, ndim)
    kept = tuple(a for a in all_axes(ndim) if a not in axes)
    moved = TENSORS.permute_dims(x, kept + axes)
    rows = TENSORS.reshape(moved, moved.shape[: len(kept)] + (-1,) if moved.size else moved.shape[: len(kept)] + (0,))
    length = rows.shape[-1]
    if length == 0:
        raise ShapeError(f"median: there are no elements along axis {axis} of a tensor of shape {x.shape}.")
    ordered = TENSORS.sort(rows, (-1,), False, True)
    middle = TENSORS.getitem(ordered, (Ellipsis, slice((length - 1) // 2, length // 2 + 1)))
    result = TENSORS.mean(middle, (-1,), False)
    if x.dtype.kind == "float":
        result = TENSORS.where(TENSORS.any(TENSORS.isnan(rows), (-1,), False), float("nan"), result)
    if keepdims:
        result = TENSORS.reshape(result, tuple([1 if i - ndim in axes else n for i, n in enumerate(x.shape)]))
    return result


# -- running totals ------------------------------------------------------------------------------


def _running(name: str, x: Any, axis: Any, dtype: Any, include_initial: bool, initial: int) -> Tensor:
    x = asarray(x)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(
                f"{name}: a tensor of shape {x.shape} needs `axis=`; only with one axis it can be left out."
            )
        axis = -1
    if dtype is not None:
        x = _in_dtype(x, dtype)
    along = negative_axis(name, axis, x.ndim)
    result = getattr(TENSORS, name)(x, (along,))
    if dtype is not None:
        result = _in_dtype(result, dtype)
    if include_initial:
        shape = list(x.shape)
        shape[along] = 1
        first = TENSORS.full(tuple(shape), initial, result._raw.dtype, result)
        result = TENSORS.concat([first, result], along)
    return result


@hide_others
def cumulative_sum(
    x: ArrayLike, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False, **other: Never
) -> Tensor:
    """The sums of the elements up to each one, that one included; with `include_initial` a zero comes first.

    Parameters
    ----------
    x : array
        Numbers of any shape.
    axis : int, optional
        Along which axis. It can be left out only if there is no other.
    dtype : dtype, optional
        What to sum in; the result has it.
    include_initial : bool
        Whether a zero comes first, which makes the axis longer by one.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_sum(pb.asarray([1.0, 2.0, 3.0]))
    tensor([1., 3., 6.])
    """
    if other:
        raise unexpected("cumulative_sum", other)
    return _running("cumulative_sum", x, axis, dtype, include_initial, 0)


@hide_others
def cumulative_prod(
    x: ArrayLike, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False, **other: Never
) -> Tensor:
    """The products of the elements up to each one, that one included; with `include_initial` a one comes first.

    >>> import pullback as pb
    >>> pb.cumulative_prod(pb.asarray([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    if other:
        raise unexpected("cumulative_prod", other)
    return _running("cumulative_prod", x, axis, dtype, include_initial, 1)


@hide_others
def cumsum(x: ArrayLike, /, axis: int | None = None, *, dtype: Any = None, **other: Never) -> Tensor:
    """The sums of the elements up to each one; without an axis those of all elements in a row.

    Parameters
    ----------
    x : array
    axis : int, optional
        Along which to add; if it is not given, `x` is flattened, as NumPy does, unlike in `cumulative_sum`.
    dtype : dtype, optional
        What to add in; the result has it, too.

    Returns
    -------
    Tensor
        In the shape of `x`, or in one row.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumsum(pb.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([ 1.,  3.,  6., 10.])
    >>> pb.cumsum(pb.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([[1., 2.],
            [4., 6.]])
    """
    if other:
        raise unexpected("cumsum", other)
    return cumulative_sum(_in_a_row(x) if axis is None else x, axis, dtype=dtype)


@hide_others
def cumprod(x: ArrayLike, /, axis: int | None = None, *, dtype: Any = None, **other: Never) -> Tensor:
    """The products of the elements up to each one; without an axis those of all elements in a row.

    Parameters
    ----------
    x : array
    axis : int, optional
        Along which to multiply; if it is not given, `x` is flattened, as NumPy does, unlike in `cumulative_prod`.
    dtype : dtype, optional
        What to multiply in; the result has it, too.

    Returns
    -------
    Tensor
        In the shape of `x`, or in one row.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumprod(pb.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([ 1.,  2.,  6., 24.])
    """
    if other:
        raise unexpected("cumprod", other)
    return cumulative_prod(_in_a_row(x) if axis is None else x, axis, dtype=dtype)


def _in_a_row(x: Any) -> Tensor:
    x = asarray(x)
    return TENSORS.reshape(x, (x.size,))


@hide_others
def diff(
    x: ArrayLike, /, axis: int = -1, *, n: int = 1, prepend: Any = None, append: Any = None, **other: Never
) -> Tensor:
    """The differences of neighbours, `n` times over.

    Parameters
    ----------
    x : array
        Numbers of any shape.
    axis : int
        Along which axis, by default the last one.
    n : int
        How many times to take differences. Each time the axis gets shorter by one.
    prepend : array, optional
        What to put before `x` along the axis, before differences are taken.
    append : array, optional
        What to put behind it.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diff(pb.asarray([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    if other:
        raise unexpected("diff", other)
    x = asarray(x)
    along = negative_axis("diff", axis, x.ndim)
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, got {n}.")
    parts = [asarray(part) for part in (prepend, x, append) if part is not None]
    found: Tensor = TENSORS.concat(parts, along) if len(parts) > 1 and n > 0 else x
    rest = (slice(None),) * (-along - 1)
    for _ in range(n):
        later = TENSORS.getitem(found, (Ellipsis, slice(1, None), *rest))
        earlier = TENSORS.getitem(found, (Ellipsis, slice(None, -1), *rest))
        found = TENSORS.logical_xor(later, earlier) if found.dtype.kind == "bool" else later - earlier
    return found


# -- truth values and places ---------------------------------------------------------------------


@hide_others
def all(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """Whether all elements are true (not zero), or all along an axis or several.

    Parameters
    ----------
    x : array
        Truth values or numbers of any shape.
    axis : int or tuple of int, optional
        Along which axes; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Truth values, without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.all(pb.asarray([True, False]))
    tensor(False)
    """
    if other:
        raise unexpected("all", other)
    return _reduce("all", x, axis, keepdims)


@hide_others
def any(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """Whether any element is true (not zero), of all or along an axis or several.

    Parameters
    ----------
    x : array
        Truth values or numbers of any shape.
    axis : int or tuple of int, optional
        Along which axes; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Truth values, without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.any(pb.asarray([True, False]))
    tensor(True)
    """
    if other:
        raise unexpected("any", other)
    return _reduce("any", x, axis, keepdims)


@hide_others
def count_nonzero(x: ArrayLike, /, axis: Any = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The number of elements that are not zero, of all or along an axis or several.

    >>> import pullback as pb
    >>> pb.count_nonzero(pb.asarray([0, 1, 2]))
    tensor(2)
    """
    if other:
        raise unexpected("count_nonzero", other)
    return _reduce("count_nonzero", x, axis, keepdims)


@hide_others
def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The place of the largest element, the first if there are several; without an axis, in the flattened tensor.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int, optional
        Along which axis; by default the tensor is flattened first.
    keepdims : bool
        Whether the axis stays, with size one.

    Returns
    -------
    Tensor
        Indices (int64), without the axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argmax(pb.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    tensor([1, 0])
    """
    if other:
        raise unexpected("argmax", other)
    return _reduce("argmax", x, axis, keepdims)


@hide_others
def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False, **other: Never) -> Tensor:
    """The place of the smallest element, the first if there are several; without an axis, in the flattened tensor.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int, optional
        Along which axis; by default the tensor is flattened first.
    keepdims : bool
        Whether the axis stays, with size one.

    Returns
    -------
    Tensor
        Indices (int64), without the axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argmin(pb.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)
    tensor([0, 1])
    """
    if other:
        raise unexpected("argmin", other)
    return _reduce("argmin", x, axis, keepdims)
