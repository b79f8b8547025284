"""Sorting and searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from ..autodiff.apply import apply
from ..autodiff.base import PYTHON_SCALARS
from ..autodiff.creation import given as asarray, result_type
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = ["argsort", "masked_fill", "nonzero", "searchsorted", "sort", "topk", "where"]


def _along(name: str, x: Tensor, axis: int) -> tuple[int]:
    if x.dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order.")
    return (negative_axis(name, axis, x.ndim),)


@hide_others
def sort(x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True, **other: Never) -> Tensor:
    """The elements in order along an axis; each gradient goes to where its element came from.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int
        Along which axis, by default the last one.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Whether equal elements keep their order.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sort(pb.asarray([3.0, 1.0, 2.0]), descending=True)
    tensor([3., 2., 1.])
    """
    if other:
        raise unexpected("sort", other)
    x = asarray(x)
    return apply(OPERATIONS["sort"], (x,), (_along("sort", x, axis), bool(descending), bool(stable)))


@hide_others
def argsort(
    x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True, **other: Never
) -> Tensor:
    """The places of the elements in sorted order; equal ones keep theirs if `stable`.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int
        Along which axis, by default the last one.
    descending : bool
        Whether the place of the largest comes first.
    stable : bool
        Whether equal elements keep their order.

    Returns
    -------
    Tensor
        Indices (int64) of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argsort(pb.asarray([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    if other:
        raise unexpected("argsort", other)
    x = asarray(x)
    return apply(OPERATIONS["argsort"], (x,), (_along("argsort", x, axis), bool(descending), bool(stable)))


@hide_others
def topk(x: ArrayLike, /, k: int, axis: int = -1, *, largest: bool = True, **other: Never) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) elements along an axis in order, and their places.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    k : int
        How many.
    axis : int
        Along which axis, by default the last one.
    largest : bool
        Whether to take the largest ones, the largest first, rather than the smallest ones.

    Returns
    -------
    tuple of Tensor
        (values, indices): both as `x`, with `k` elements along the axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.topk(pb.asarray([3.0, 1.0, 2.0]), 2)
    (tensor([3., 2.]), tensor([0, 2]))
    """
    if other:
        raise unexpected("topk", other)
    x = asarray(x)
    along = _along("topk", x, axis)
    if not 0 <= k <= x.shape[along[0]]:
        raise ShapeError(
            f"topk: k is {k}, but axis {axis} of a tensor of shape {x.shape} has {x.shape[along[0]]} elements."
        )
    indices = apply(OPERATIONS["top_indices"], (x,), (k, along, bool(largest)))
    return TENSORS.take_along_axis(x, indices, along[0]), indices


def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """The places of the elements that are not zero: one tensor of indices per axis.

    Parameters
    ----------
    x : array
        Numbers or truth values, with at least one axis.

    Returns
    -------
    tuple of Tensor
        For each axis the indices along it (int64): `x[pb.nonzero(x)]` are the elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nonzero(pb.asarray([0.0, 5.0, 6.0]))
    (tensor([1, 2]),)
    """
    x = asarray(x)
    if x.ndim == 0:
        raise ShapeError("nonzero: a 0-d tensor has no indices. Write `x != 0`.")
    return apply(OPERATIONS["nonzero"], (x,))


def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The places in the sorted tensor `x1` where the values `x2` would be put: before equal ones, or after ("right").

    Parameters
    ----------
    x1 : array
        Sorted in ascending order, with one axis.
    x2 : array
        The values to place, of any shape.
    side : str
        "left" for the place before equal values, "right" for the one after them.
    sorter : array of int, optional
        The result of `argsort(x1)`, where `x1` is not sorted itself.

    Returns
    -------
    Tensor
        Indices (int64) of the shape of `x2`, from 0 to the length of `x1`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.searchsorted(pb.asarray([1.0, 2.0, 3.0]), pb.asarray([2.0, 2.5]))
    tensor([1, 2])
    """
    x1 = asarray(x1)
    if x1.ndim != 1:
        raise ShapeError(f"searchsorted: expected a sorted tensor with one axis, got shape {x1.shape}.")
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side must be "left" or "right", got {side!r}.')
    return apply(OPERATIONS["searchsorted"], (x1, asarray(x2), None if sorter is None else asarray(sorter)), (side,))


def where(condition: Any, x1: Operand, x2: Operand, /) -> Tensor:
    """`x1` where `condition` is true, else `x2`; the one not chosen has gradient zero, even if it is not finite.

    Parameters
    ----------
    condition : array
        Truth values. Shapes of all three are broadcast.
    x1 : array
        What is taken where `condition` is true.
    x2 : array
        What is taken elsewhere. Either may be a Python number.

    Returns
    -------
    Tensor
        Of the common shape.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([0.0, 4.0], requires_grad=True)
    >>> y = pb.where(x > 0, pb.sqrt(x), 0.0)
    >>> pb.backward(y.sum())[x]
    tensor([0.  , 0.25])
    """
    if type(x1) in PYTHON_SCALARS and type(x2) in PYTHON_SCALARS:
        dtype = result_type(x1, x2)
        x1, x2 = asarray(x1, dtype=dtype), asarray(x2, dtype=dtype)
    return apply(OPERATIONS["where"], (asarray(condition), x1, x2))


def masked_fill(x: ArrayLike, mask: Any, value: ArrayLike, /) -> Tensor:
    """`x` with `value` where `mask` is true; there its gradient is zero, even if it is not finite.

    Parameters
    ----------
    x : array
    mask : array of booleans
        It broadcasts to `x`.
    value : number or array without axes
        In the dtype of `x`, which the result has, or converted to it.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.masked_fill(pb.tensor([1.0, 2.0, 3.0]), pb.asarray([False, True, False]), -pb.inf)
    tensor([  1., -inf,   3.])
    """
    x, mask = asarray(x), asarray(mask)
    if mask.dtype.kind != "bool":
        raise DtypeError(f"masked_fill: mask must be of booleans, got {mask.dtype.name}. Compare to get one: `m != 0`.")
    aligned = zip(reversed(mask.shape), reversed(x.shape))
    if mask.ndim > x.ndim or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(f"masked_fill: mask of shape {mask.shape} does not broadcast to x of shape {x.shape}.")
    if type(value) not in PYTHON_SCALARS:
        value = asarray(value)
        if value.ndim:
            raise ShapeError(f"masked_fill: value has shape {value.shape}, expected one number. Write `pb.where`.")
    if result_type(x, value).kind != x.dtype.kind:
        raise DtypeError(f"masked_fill: {value!r:.60} does not fit into {x.dtype.name}. Convert x with `.astype(...)`.")
    if type(value) not in PYTHON_SCALARS:
        value = asarray(value).astype(x.dtype)
    return apply(OPERATIONS["where"], (mask, value, x))
