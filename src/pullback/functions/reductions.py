"""Reductions, statistics and running totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.creation import asarray
from ..autodiff.fast import call_for
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..operations import OPERATIONS
from .axes import all_axes, negative_axes, negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "median", "min", "prod", "std", "sum", "var",
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


def sum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
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
    return _total("sum", x, axis, dtype, keepdims)


def prod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
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
    return _total("prod", x, axis, dtype, keepdims)


def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("mean", x, axis, keepdims)


def _spread(name: str, x: Any, axis: Any, correction: float, keepdims: bool) -> Tensor:
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        x = _in_dtype(x, dtypes.float64)
    axes = None if axis is None else negative_axes(name, axis, x.ndim)
    return apply(OPERATIONS[name], (x,), (axes, correction, bool(keepdims)))


def var(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
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
    return _spread("var", x, axis, correction, keepdims)


def std(x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
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
    return _spread("std", x, axis, correction, keepdims)


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("max", x, axis, keepdims)


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("min", x, axis, keepdims)


def median(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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


def cumulative_sum(x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Tensor:
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
    return _running("cumulative_sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The products of the elements up to each one, that one included; with `include_initial` a one comes first.

    >>> import pullback as pb
    >>> pb.cumulative_prod(pb.asarray([1.0, 2.0, 3.0]))
    tensor([1., 2., 6.])
    """
    return _running("cumulative_prod", x, axis, dtype, include_initial, 1)


def diff(x: Any, /, axis: int = -1, *, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
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
    x = asarray(x)
    along = negative_axis("diff", axis, x.ndim)
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, got {n}.")
    parts = [asarray(part) for part in (prepend, x, append) if part is not None]
    if len(parts) > 1 and n > 0:
        x = TENSORS.concat(parts, along)
    rest = (slice(None),) * (-along - 1)
    for _ in range(n):
        later = TENSORS.getitem(x, (Ellipsis, slice(1, None), *rest))
        earlier = TENSORS.getitem(x, (Ellipsis, slice(None, -1), *rest))
        x = TENSORS.logical_xor(later, earlier) if x.dtype.kind == "bool" else later - earlier
    return x


# -- truth values and places ---------------------------------------------------------------------


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("all", x, axis, keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("any", x, axis, keepdims)


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero, of all or along an axis or several.

    >>> import pullback as pb
    >>> pb.count_nonzero(pb.asarray([0, 1, 2]))
    tensor(2)
    """
    return _reduce("count_nonzero", x, axis, keepdims)


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("argmax", x, axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
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
    return _reduce("argmin", x, axis, keepdims)
