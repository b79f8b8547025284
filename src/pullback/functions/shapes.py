"""Shapes and the order of axes. What can be a view is one: O(1), memory shared until somebody writes."""

from __future__ import annotations

from math import prod
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Never, Sequence

import numpy as np

from ..autodiff.apply import apply
from ..autodiff.base import resolved
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..errors import AxisError, DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import all_axes, negative_axes, negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

_reshape = call_for("reshape")
_permute_dims = call_for("permute_dims")
_expand_dims = call_for("expand_dims")
_squeeze = call_for("squeeze")
_broadcast_to = call_for("broadcast_to")


# -- shapes --------------------------------------------------------------------------------------


def reshape(x: Any, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The elements of `x` in another shape; one size may be -1.

    Parameters
    ----------
    x : array
        Of any shape.
    shape : int or tuple of int
        The new sizes, which have as many elements. One may be -1: it is worked out.
    copy : bool, optional
        True copies. False raises `ShapeError` where a view cannot show the elements. None does what it must.

    Returns
    -------
    Tensor
        A view of `x` where possible: it shares memory until one of the two is written.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.reshape(pb.asarray([1, 2, 3, 4, 5, 6]), (2, -1)).shape
    (2, 3)
    """
    x = resolved(asarray(x))
    sizes = shape_of("reshape", shape, x)
    result = _reshape(x, sizes)
    if copy is False and x.size and not (x._backend.is_contiguous(x._raw) or _is_view(result._raw, x._raw)):
        raise ShapeError(
            f"reshape: elements of shape {x.shape} lie in memory in an order that needs a copy for shape {sizes}, "
            "and copy=False."
        )
    return result


def _is_view(result: Any, raw: Any) -> bool:
    return isinstance(raw, np.ndarray) and np.may_share_memory(raw, result)


def shape_of(name: str, shape: Any, x: Tensor) -> tuple[int, ...]:
    """A shape for the elements of `x` as a tuple of integers, with -1 worked out."""
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    size = prod(x.shape)
    try:
        sizes = tuple([as_index(n) for n in shape])
    except TypeError:
        raise DtypeError(f"{name}: a shape is made of integers, got {shape!r}.") from None
    known = 1
    for n in sizes:
        if n != -1:
            known *= n
    unknown = sizes.count(-1)
    fits = size == known if unknown == 0 else unknown == 1 and known != 0 and size % known == 0
    if not fits or min(sizes, default=0) < -1:
        raise ShapeError(f"{name}: {size} elements of shape {x.shape} do not fit into shape {sizes}.")
    return tuple([size // known if n == -1 else n for n in sizes]) if unknown else sizes


def ravel(x: Any, /) -> Tensor:
    """The elements of `x` in one row, a view where possible.

    Parameters
    ----------
    x : array
        Of any shape; the last axis runs fastest.

    Returns
    -------
    Tensor
        With one axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ravel(pb.asarray([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return reshape(x, (-1,)) if asarray(x).size else reshape(x, (0,))


@hide_others
def flatten(x: Any, /, start_axis: int = 0, end_axis: int = -1, **other: Never) -> Tensor:
    """The elements in one row, or some neighbouring axes made one.

    Parameters
    ----------
    x : array
        The tensor.
    start_axis, end_axis : int
        The first and the last of the axes that are made one; all of them unless said. `flatten(x, 1)` leaves the
        first one, of samples, say.

    Returns
    -------
    Tensor
        A view if it can be one.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flatten(pb.asarray([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    >>> pb.flatten(pb.asarray([[[1, 2], [3, 4]]]), 1)
    tensor([[1, 2, 3, 4]])
    """
    if other:
        raise unexpected("flatten", other)
    x = asarray(x)
    if x.ndim == 0 or (start_axis == 0 and end_axis == -1):
        return ravel(x)
    first, last = (negative_axis("flatten", axis, x.ndim) + x.ndim for axis in (start_axis, end_axis))
    if first > last:
        raise ShapeError(f"flatten: start_axis {start_axis} comes after end_axis {end_axis} in shape {x.shape}.")
    size = prod(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], size, *x.shape[last + 1 :]))


@hide_others
def expand_dims(x: Any, /, axis: int | Sequence[int], **other: Never) -> Tensor:
    """With new axes of size one, which are at the positions `axis` of the result.

    Parameters
    ----------
    x : array
        Of any shape.
    axis : int or tuple of int
        Where the new axes are in the result. Negative numbers count from its end.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.expand_dims(pb.asarray([1, 2, 3]), (0, -1)).shape
    (1, 3, 1)
    """
    if other:
        raise unexpected("expand_dims", other)
    x = asarray(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = negative_axes("expand_dims", axis, x.ndim + count)
    return _expand_dims(x, axes)


@hide_others
def squeeze(x: Any, /, axis: int | Sequence[int] | None = None, **other: Never) -> Tensor:
    """Without axes of size one: those in `axis`, or all of them.

    Parameters
    ----------
    x : array
        Of any shape.
    axis : int or tuple of int, optional
        Which axes to leave out. They must be of size one.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.squeeze(pb.asarray([[[1], [2]]]), 0).shape
    (2, 1)
    """
    if other:
        raise unexpected("squeeze", other)
    x = asarray(x)
    if axis is None:
        axes = tuple(i - x.ndim for i, n in enumerate(x.shape) if n == 1)
    else:
        axes = negative_axes("squeeze", axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has size {x.shape[a]}, not 1.")
    return _squeeze(x, axes)


# -- broadcasting --------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of the given `shapes` are brought to when they are used together.

    >>> import pullback as pb
    >>> pb.broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    result: list[int] = []
    for shape in shapes:
        sizes = [as_index(n) for n in shape]
        result[:0] = [1] * (len(sizes) - len(result))
        for i in range(-len(sizes), 0):
            if result[i] == 1:
                result[i] = sizes[i]
            elif sizes[i] not in (1, result[i]):
                raise ShapeError(f"shapes {', '.join(str(tuple(s)) for s in shapes)} cannot be broadcast together.")
    return tuple(result)


def broadcast_to(x: Any, /, shape: Sequence[int]) -> Tensor:
    """`x` repeated along new axes and along axes of size one, without copying.

    Parameters
    ----------
    x : array
        Of any shape.
    shape : tuple of int
        The new shape: the axes of `x` are its last ones, and those of size one may be any size there.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.broadcast_to(pb.asarray([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    x = asarray(x)
    sizes = tuple([as_index(n) for n in shape])
    if sizes == x.shape:
        return x
    if broadcast_shapes(x.shape, sizes) != sizes:
        raise ShapeError(f"broadcast_to: shape {x.shape} cannot be broadcast to {sizes}.")
    return _broadcast_to(x, sizes)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Several `arrays`, each broadcast to their common shape.

    >>> import pullback as pb
    >>> [x.shape for x in pb.broadcast_arrays(pb.asarray([1, 2]), pb.asarray([[3], [4]]))]
    [(2, 2), (2, 2)]
    """
    tensors = [asarray(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(broadcast_to(x, shape) for x in tensors)


# -- order of axes and elements ------------------------------------------------------------------


@hide_others
def permute_dims(x: Any, /, axes: Sequence[int], **other: Never) -> Tensor:
    """The axes in another order: axis i of the result is axis `axes[i]` of `x`.

    Parameters
    ----------
    x : array
        Of any shape.
    axes : tuple of int
        Every axis of `x` once, in the new order.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.permute_dims(pb.asarray([[1, 2, 3]]), (1, 0)).shape
    (3, 1)
    """
    if other:
        raise unexpected("permute_dims", other)
    x = asarray(x)
    ndim = len(x._raw.shape)
    order = negative_axes("permute_dims", tuple(axes), ndim)
    if len(order) != ndim:
        raise AxisError(f"permute_dims: {tuple(axes)} is no permutation of the {ndim} axes of shape {x.shape}.")
    return _permute_dims(x, order)


@hide_others
def transpose(x: Any, /, axes: Sequence[int] | None = None, *more: Never, **other: Never) -> Tensor:
    """The axes in another order (as `permute_dims`), or all of them in reverse order.

    Parameters
    ----------
    x : array
        Of any shape. A matrix is transposed.
    axes : tuple of int, optional
        Axis i of the result is axis `axes[i]` of `x`. By default the order is reversed.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.transpose(pb.asarray([[1, 2, 3]])).shape
    (3, 1)
    """
    if other:
        raise unexpected("transpose", other)
    x = asarray(x)
    if axes is None:
        return permute_dims(x, all_axes(x.ndim)[::-1])
    order = (axes, *more) if isinstance(axes, int) else tuple(axes)  # one number, or PyTorch's two
    if isinstance(axes, int) or len(order) != x.ndim:
        write = f" To exchange two axes, write `swapaxes({order[0]}, {order[1]})`." if len(order) == 2 else ""
        raise AxisError(
            f"transpose: expected the order of all {x.ndim} axes of shape {x.shape} as a tuple, got {order}.{write}"
        )
    return permute_dims(x, order)


def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """Two axes, number `axis1` and number `axis2`, exchanged.

    >>> import pullback as pb
    >>> pb.swapaxes(pb.asarray([[[1, 2, 3]]]), 0, -1).shape
    (3, 1, 1)
    """
    x = asarray(x)
    first, second = negative_axis("swapaxes", axis1, x.ndim), negative_axis("swapaxes", axis2, x.ndim)
    order = list(all_axes(x.ndim))
    order[first], order[second] = second, first
    return _permute_dims(x, tuple(order))


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Some axes moved to new positions; the others keep their order.

    Parameters
    ----------
    x : array
        Of any shape.
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Where they are in the result, one for each.

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.moveaxis(pb.broadcast_to(pb.asarray(1), (2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = asarray(x)
    sources = negative_axes("moveaxis", source, x.ndim)
    destinations = negative_axes("moveaxis", destination, x.ndim)
    if len(sources) != len(destinations):
        raise AxisError(f"moveaxis: {len(sources)} axes cannot be moved to {len(destinations)} positions.")
    order = [axis for axis in all_axes(x.ndim) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources)):
        order.insert(position + x.ndim, axis)
    return _permute_dims(x, tuple(order))


@hide_others
def flip(x: Any, /, *, axis: int | Sequence[int] | None = None, **other: Never) -> Tensor:
    """The elements in reverse order along some axes, or along all of them.

    Parameters
    ----------
    x : array
        Of any shape.
    axis : int or tuple of int, optional
        Which axes to reverse; by default all of them.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flip(pb.asarray([1, 2, 3]))
    tensor([3, 2, 1])
    """
    if other:
        raise unexpected("flip", other)
    x = asarray(x)
    axes = all_axes(x.ndim) if axis is None else negative_axes("flip", axis, x.ndim)
    return apply(OPERATIONS["flip"], (x,), (axes,))


@hide_others
def roll(x: Any, /, shift: Any, *, axis: int | Sequence[int] | None = None, **other: Never) -> Tensor:
    """The elements moved by `shift` places along an axis; what falls off the end comes in at the start.

    Parameters
    ----------
    x : array
        Of any shape.
    shift : int or tuple of int
        By how many places; negative numbers move towards the start. One per axis in `axis`, or one for all.
    axis : int or tuple of int, optional
        Along which axes. None moves elements in the flattened tensor and keeps the shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.roll(pb.asarray([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if other:
        raise unexpected("roll", other)
    x = asarray(x)
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise ShapeError(f"roll: shift {tuple(shift)} is a tuple, so axis must be a tuple of the same length.")
        return reshape(roll(ravel(x), shift, axis=0), x.shape)
    axes = tuple(negative_axis("roll", a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes.")
    return apply(OPERATIONS["roll"], (x,), (tuple(as_index(s) for s in shifts), axes))
