"""Manipulation: shapes (see `shapes`), joining and splitting, repeating and padding."""

from __future__ import annotations

from operator import index as as_index
from typing import TYPE_CHECKING, Any, Never, Sequence

import numpy as np

from ..autodiff.apply import apply
from ..autodiff.base import values_of
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..autodiff.tables import TENSORS
from ..backends.axis_slice import axis_slice
from ..errors import AxisError, DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import negative_axis
from .shapes import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    flatten,
    flip,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    roll,
    squeeze,
    swapaxes,
    transpose,
)  # fmt: skip

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "array_split", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flatten", "flip",
    "hstack", "moveaxis", "pad", "permute_dims", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack",
    "swapaxes", "tile", "transpose", "unstack", "vstack",
]  # fmt: skip


_split = call_for("split")


# -- joining and splitting -----------------------------------------------------------------------


@hide_others
def concat(arrays: Sequence[Any], /, *, axis: int | None = 0, **other: Never) -> Tensor:
    """The arrays one after the other along an existing axis; flattened first if `axis` is None.

    Parameters
    ----------
    arrays : sequence of array
        At least one; their shapes may differ along `axis` only.
    axis : int or None
        Along which axis. None flattens all arrays first.

    Returns
    -------
    Tensor
        In a dtype that holds those of all arrays.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.concat([pb.asarray([1, 2]), pb.asarray([3])])
    tensor([1, 2, 3])
    >>> pb.concat([pb.ones((2, 1)), pb.zeros((2, 2))], axis=1)
    tensor([[1., 0., 0.],
            [1., 0., 0.]])
    """
    if other:
        raise unexpected("concat", other)
    tensors = _several("concat", arrays)
    if axis is None:
        tensors = [ravel(x) for x in tensors]
        axis = 0
    ndim = tensors[0].ndim
    if ndim == 0:
        raise ShapeError("concat: zero-dimensional arrays have no axis to join along; use stack, or axis=None.")
    position = negative_axis("concat", axis, ndim)
    for x in tensors[1:]:
        if x.ndim != ndim or any(
            m != n for i, (m, n) in enumerate(zip(x.shape, tensors[0].shape)) if i - ndim != position
        ):
            raise ShapeError(
                f"concat: shapes {', '.join(str(x.shape) for x in tensors)} differ in more than axis {axis}."
            )
    return apply(OPERATIONS["concat"], tuple(tensors), (position,))


@hide_others
def stack(arrays: Sequence[Any], /, *, axis: int = 0, **other: Never) -> Tensor:
    """The arrays, all of one shape, one after the other along a new axis.

    Parameters
    ----------
    arrays : sequence of array
        At least one, all of the same shape.
    axis : int
        Where the new axis is in the result.

    Returns
    -------
    Tensor
        With one axis more than the arrays.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.stack([pb.asarray([1, 2]), pb.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if other:
        raise unexpected("stack", other)
    tensors = _several("stack", arrays)
    if any(x.shape != tensors[0].shape for x in tensors):
        raise ShapeError(f"stack: shapes {', '.join(str(x.shape) for x in tensors)} are not all the same.")
    return apply(OPERATIONS["stack"], tuple(tensors), (negative_axis("stack", axis, tensors[0].ndim + 1),))


def vstack(arrays: Sequence[Any], /) -> Tensor:
    """The arrays one below the other: along the first axis, vectors as rows.

    Parameters
    ----------
    arrays : sequence of array
        Arrays of the same shape but for the first axis; vectors and numbers count as matrices of one row.

    Returns
    -------
    Tensor
        With at least two axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vstack([pb.asarray([1, 2]), pb.asarray([[3, 4], [5, 6]])])
    tensor([[1, 2],
            [3, 4],
            [5, 6]])
    """
    tensors = _several("vstack", arrays)
    rows = [reshape(x, (1, x.size)) if x.ndim < 2 else x for x in tensors]
    return _joined("vstack", tensors, rows, 0)


def hstack(arrays: Sequence[Any], /) -> Tensor:
    """The arrays one beside the other: along the second axis, vectors along their only one.

    Parameters
    ----------
    arrays : sequence of array
        Arrays of the same shape but for that axis; numbers count as vectors of one element.

    Returns
    -------
    Tensor
        With at least one axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hstack([pb.asarray([[1], [2]]), pb.asarray([[3, 4], [5, 6]])])
    tensor([[1, 3, 4],
            [2, 5, 6]])
    """
    tensors = _several("hstack", arrays)
    parts = [reshape(x, (1,)) if x.ndim == 0 else x for x in tensors]
    return _joined("hstack", tensors, parts, 0 if parts[0].ndim == 1 else 1)


def _joined(name: str, given: list[Tensor], tensors: list[Tensor], axis: int) -> Tensor:
    kinds = {(x.ndim, x.shape[:axis], x.shape[axis + 1 :]) for x in tensors}
    if len(kinds) > 1:
        raise ShapeError(f"{name}: shapes {', '.join(str(x.shape) for x in given)} differ in more than axis {axis}.")
    return apply(OPERATIONS["concat"], tuple(tensors), (axis - tensors[0].ndim,))


def _several(name: str, arrays: Sequence[Any]) -> list[Tensor]:
    tensors = [asarray(x) for x in arrays]
    if not tensors:
        raise ShapeError(f"{name}: expected at least one array, got none.")
    return tensors


@hide_others
def unstack(x: ArrayLike, /, *, axis: int = 0, **other: Never) -> tuple[Tensor, ...]:
    """The slices along an axis, as a tuple of views.

    Parameters
    ----------
    x : array
        With at least one axis.
    axis : int
        Along which axis to take slices.

    Returns
    -------
    tuple of Tensor
        As many as the axis is long, each without it.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unstack(pb.asarray([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if other:
        raise unexpected("unstack", other)
    x = asarray(x)
    if x.ndim == 0:
        raise AxisError("unstack: a zero-dimensional array has no axis to split.")
    return apply(OPERATIONS["unstack"], (x,), (negative_axis("unstack", axis, x.ndim),))


@hide_others
def split(
    x: ArrayLike,
    /,
    indices_or_sections: Any = None,
    *,
    sizes: Sequence[int] | None = None,
    axis: int = 0,
    **other: Never,
) -> tuple[Tensor, ...]:
    """Parts along an axis, as views.

    Parameters
    ----------
    x : array
        With at least one axis.
    indices_or_sections : int or sequence of int, optional
        A number of equal parts, or the indices at which parts begin after the first one. These are not sizes.
    sizes : sequence of int, optional
        The sizes of the parts, instead: their sum is that of the axis. (A list of sizes is what PyTorch's `split`
        takes; here it must be named, since it could as well be a list of indices.)
    axis : int
        Along which axis.

    Returns
    -------
    tuple of Tensor
        Views of `x`.

    Raises
    ------
    ShapeError
        If the axis has no such number of equal parts (see `array_split`).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.split(pb.asarray([1, 2, 3, 4]), [1, 3])
    (tensor([1]), tensor([2, 3]), tensor([4]))
    >>> pb.split(pb.asarray([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    >>> pb.split(pb.asarray([1, 2, 3, 4]), sizes=[1, 3])
    (tensor([1]), tensor([2, 3, 4]))
    """
    if other:
        raise unexpected("split", other)
    x = asarray(x)
    if sizes is not None or indices_or_sections is None:
        return _split_by_sizes(x, indices_or_sections, sizes, axis)
    if not isinstance(indices_or_sections, (tuple, list)):
        position = negative_axis("split", axis, len(x._raw.shape))
        size, sections = x._raw.shape[position], as_index(indices_or_sections)
        if sections < 1 or size % sections:
            raise ShapeError(
                f"split: axis {axis} of size {size} has no {sections} equal parts; use array_split, or "
                "`split(x, sizes=...)` for parts of given sizes."
            )
        return _split(x, (size // sections,) * sections, position)
    return array_split(x, indices_or_sections, axis=axis)


def _split_by_sizes(x: Tensor, indices: Any, sizes: Any, axis: int) -> tuple[Tensor, ...]:
    position = negative_axis("split", axis, x.ndim)
    size = x.shape[position]
    if sizes is None or indices is not None or not isinstance(sizes, (tuple, list)):
        raise ShapeError(
            f"split: give a number of equal parts or a list of indices, or else a list of `sizes`; got {indices!r} and "
            f"sizes={sizes!r}."
        )
    parts = tuple(as_index(n) for n in sizes)
    if sum(parts) != size or min(parts, default=0) < 0:
        raise ShapeError(f"split: sizes {list(parts)} add up to {sum(parts)}; axis {axis} has size {size}.")
    return _split(x, parts, position)


@hide_others
def array_split(x: ArrayLike, /, indices_or_sections: Any, *, axis: int = 0, **other: Never) -> tuple[Tensor, ...]:
    """`split` along an axis into parts whose sizes may differ by one.

    `indices_or_sections` is the number of parts, or the indices at which they begin, as in `split`.

    >>> import pullback as pb
    >>> pb.array_split(pb.asarray([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    if other:
        raise unexpected("array_split", other)
    x = asarray(x)
    position = negative_axis("split", axis, x.ndim)
    size = x.shape[position]
    if isinstance(indices_or_sections, (tuple, list)):
        ends = [slice(None, as_index(i)).indices(size)[1] for i in indices_or_sections] + [size]
        starts = [0, *ends[:-1]]
        if starts == sorted(starts):
            sizes = tuple(end - start for start, end in zip(starts, ends))
            return _split(x, sizes, position)
        # parts that overlap or are empty, as NumPy has it
        return tuple(TENSORS.getitem(x, axis_slice(position, a, b)) for a, b in zip(starts, ends))
    sections = as_index(indices_or_sections)
    if sections < 1:
        raise ShapeError(f"split: expected at least one section, got {sections}.")
    each, longer = divmod(size, sections)
    sizes = (each + 1,) * longer + (each,) * (sections - longer)
    return _split(x, sizes, position)


# -- repeating and padding -----------------------------------------------------------------------


@hide_others
def repeat(x: ArrayLike, repeats: Any, /, *, axis: int | None = None, **other: Never) -> Tensor:
    """Each element repeated, so many times in a row; flattened first if `axis` is None.

    Parameters
    ----------
    x : array
        Of any shape.
    repeats : int or array of int
        How often each element comes: a number, or one for each position along the axis. (From such an array on a
        device the result's shape must be read.)
    axis : int, optional
        Along which axis. None flattens `x` first.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.repeat(pb.asarray([1, 2]), pb.asarray([1, 2]))
    tensor([1, 2, 2])
    >>> pb.repeat(pb.asarray([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if other:
        raise unexpected("repeat", other)
    x = asarray(x)
    if axis is None:
        x, axis = ravel(x), 0
    position = negative_axis("repeat", axis, x.ndim)
    if isinstance(repeats, int) and not isinstance(repeats, bool):
        if repeats < 0:
            raise ShapeError(f"repeat: repeats must not be negative, got {repeats}.")
        return apply(OPERATIONS["repeat"], (x,), (repeats, position))
    counts = asarray(repeats)
    if counts.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"repeat: repeats must be integers, got {counts.dtype.name}.")
    times = np.asarray(values_of(counts))
    size = x.shape[position]
    if times.ndim > 1 or (times.ndim == 1 and times.size not in (1, size)) or (times < 0).any():
        raise ShapeError(f"repeat: repeats must be {size} numbers that are not negative, got shape {counts.shape}.")
    indices = np.repeat(np.arange(size), np.broadcast_to(times, (size,)).astype(np.int64))
    return apply(OPERATIONS["take"], (x, _like(indices, x)), (position,))


def _like(array: np.ndarray[Any, Any], x: Tensor) -> Tensor:
    """A NumPy array as a tensor on the device of `x`."""
    return asarray(array, device=x.device)


def tile(x: ArrayLike, repetitions: int | Sequence[int], /) -> Tensor:
    """`x` as a whole repeated along each axis.

    Parameters
    ----------
    x : array
        Of any shape.
    repetitions : int or tuple of int
        How often along each axis; the last number belongs to the last axis.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tile(pb.asarray([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = asarray(x)
    times = tuple(repetitions) if isinstance(repetitions, (tuple, list)) else (repetitions,)
    counts = (1,) * (x.ndim - len(times)) + tuple(as_index(n) for n in times)
    if min(counts, default=0) < 0:
        raise ShapeError(f"tile: repetitions must not be negative, got {times}.")
    return apply(OPERATIONS["tile"], (x,), (counts,))


_PAD_MODES = {"reflect": "reflect", "edge": "edge", "replicate": "edge", "wrap": "wrap", "circular": "wrap"}


def pad(x: ArrayLike, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """`x` with a margin.

    Parameters
    ----------
    x : array
        Of any shape.
    pad_width : int, pair or list of pairs
        How many elements to add: a number for all sides, a pair (before, after) for all axes, or a pair for every
        axis.
    mode : str
        What to fill with. "constant": `constant_values`. "reflect": mirrored at the edge element. "edge" or
        "replicate": the edge element. "wrap" or "circular": the other end.
    constant_values : number
        Used by the mode "constant".

    Returns
    -------
    Tensor
        As `x`, with longer axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pad(pb.asarray([1, 2, 3]), (1, 2), mode="reflect")
    tensor([2, 1, 2, 3, 2, 1])
    >>> pb.pad(pb.asarray([[1.0]]), [(0, 1), (2, 0)])
    tensor([[0., 0., 1.],
            [0., 0., 0.]])
    """
    x = asarray(x)
    try:
        widths = tuple(
            (int(before), int(after)) for before, after in np.broadcast_to(np.asarray(pad_width, np.int64), (x.ndim, 2))
        )
    except (ValueError, TypeError):
        raise ShapeError(
            f"pad: pad_width {pad_width!r} is no number, no pair, and no list of {x.ndim} pairs for shape {x.shape}."
        ) from None
    if any(n < 0 for pair in widths for n in pair):
        raise ShapeError(f"pad: widths must not be negative, got {pad_width!r}. Use a slice to cut off.")
    if mode == "constant":
        value = constant_values.item() if hasattr(constant_values, "item") else constant_values
        return apply(OPERATIONS["pad"], (x,), (widths, value))
    if mode not in _PAD_MODES:
        raise ShapeError(f"pad: unknown mode {mode!r}; use constant, {', '.join(_PAD_MODES)}.")
    padded: Tensor = x
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            if x.shape[axis] == 0:
                raise ShapeError(f"pad: axis {axis} of shape {padded.shape} is empty: nothing to fill its margin with.")
            indices = np.pad(np.arange(x.shape[axis]), pair, mode=_PAD_MODES[mode])
            padded = apply(OPERATIONS["take"], (padded, _like(indices, x)), (axis - x.ndim,))
    return padded
