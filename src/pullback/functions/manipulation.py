"""Changing shapes and moving elements. What can be a view is one: O(1), memory shared until somebody writes."""

from __future__ import annotations

from operator import index as as_index
from typing import Any, Sequence

import numpy as np

from ..autodiff.apply import apply
from ..autodiff.operation import OPERATIONS
from ..autodiff.tables import TENSORS
from ..errors import AxisError, DtypeError, ShapeError
from ..tensor.core import Tensor
from .axes import all_axes, as_tensor, negative_axes, negative_axis
from .direct import one_array

__all__ = [
    "array_split", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flatten", "flip",
    "moveaxis", "pad", "permute_dims", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack", "swapaxes",
    "tile", "transpose", "unstack",
]  # fmt: skip

_reshape = one_array("reshape")
_permute_dims = one_array("permute_dims")
_expand_dims = one_array("expand_dims")
_squeeze = one_array("squeeze")
_broadcast_to = one_array("broadcast_to")


# -- shapes --------------------------------------------------------------------------------------


def reshape(x: Any, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1.

    With copy=False it raises where the elements do not lie in memory in a way that a view can show.

    >>> import pullback as pb
    >>> pb.reshape(pb.asarray([1, 2, 3, 4, 5, 6]), (2, -1)).shape
    (2, 3)
    """
    x = as_tensor(x)
    sizes = shape_of("reshape", shape, x)
    result = _reshape(x, sizes)
    if copy is False and x.size and not (x._backend.is_contiguous(x._data) or _is_view(result._data, x._data)):
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
    try:
        sizes = tuple([as_index(n) for n in shape])
    except TypeError:
        raise DtypeError(f"{name}: a shape is made of integers, got {shape!r}.") from None
    known = 1
    for n in sizes:
        if n != -1:
            known *= n
    unknown = sizes.count(-1)
    fits = x.size == known if unknown == 0 else unknown == 1 and known != 0 and x.size % known == 0
    if not fits or min(sizes, default=0) < -1:
        raise ShapeError(f"{name}: {x.size} elements of shape {x.shape} do not fit into shape {sizes}.")
    return tuple(x.size // known if n == -1 else n for n in sizes) if unknown else sizes


def ravel(x: Any, /) -> Tensor:
    """The elements in one row, a view where possible.

    >>> import pullback as pb
    >>> pb.ravel(pb.asarray([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return reshape(x, (-1,)) if as_tensor(x).size else reshape(x, (0,))


flatten = ravel


def expand_dims(x: Any, /, axis: int | Sequence[int]) -> Tensor:
    """New axes of size one at the positions `axis` of the result.

    >>> import pullback as pb
    >>> pb.expand_dims(pb.asarray([1, 2, 3]), (0, -1)).shape
    (1, 3, 1)
    """
    x = as_tensor(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = negative_axes("expand_dims", axis, x.ndim + count)
    return _expand_dims(x, axes)


def squeeze(x: Any, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without the axes `axis`, which must be of size one; without all such axes if None is given.

    >>> import pullback as pb
    >>> pb.squeeze(pb.asarray([[[1], [2]]]), 0).shape
    (2, 1)
    """
    x = as_tensor(x)
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
    """The shape that arrays of these shapes are brought to when they are used together.

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

    >>> import pullback as pb
    >>> pb.broadcast_to(pb.asarray([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    x = as_tensor(x)
    sizes = tuple([as_index(n) for n in shape])
    if sizes == x.shape:
        return x
    if broadcast_shapes(x.shape, sizes) != sizes:
        raise ShapeError(f"broadcast_to: shape {x.shape} cannot be broadcast to {sizes}.")
    return _broadcast_to(x, sizes)


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """The arrays, each broadcast to their common shape.

    >>> import pullback as pb
    >>> [x.shape for x in pb.broadcast_arrays(pb.asarray([1, 2]), pb.asarray([[3], [4]]))]
    [(2, 2), (2, 2)]
    """
    tensors = [as_tensor(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(broadcast_to(x, shape) for x in tensors)


# -- order of axes and elements ------------------------------------------------------------------


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """The axes in another order: axis i of the result is axis `axes[i]` of `x`.

    >>> import pullback as pb
    >>> pb.permute_dims(pb.asarray([[1, 2, 3]]), (1, 0)).shape
    (3, 1)
    """
    x = as_tensor(x)
    order = negative_axes("permute_dims", tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise AxisError(f"permute_dims: {tuple(axes)} is no permutation of the {x.ndim} axes of shape {x.shape}.")
    return _permute_dims(x, order)


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Tensor:
    """`permute_dims`, or all axes in reverse order if none are given.

    >>> import pullback as pb
    >>> pb.transpose(pb.asarray([[1, 2, 3]])).shape
    (3, 1)
    """
    x = as_tensor(x)
    return permute_dims(x, all_axes(x.ndim)[::-1] if axes is None else axes)


def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """Two axes exchanged.

    >>> import pullback as pb
    >>> pb.swapaxes(pb.asarray([[[1, 2, 3]]]), 0, -1).shape
    (3, 1, 1)
    """
    x = as_tensor(x)
    first, second = negative_axis("swapaxes", axis1, x.ndim), negative_axis("swapaxes", axis2, x.ndim)
    order = list(all_axes(x.ndim))
    order[first], order[second] = second, first
    return _permute_dims(x, tuple(order))


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Axes moved to new positions; the others keep their order.

    >>> import pullback as pb
    >>> pb.moveaxis(pb.broadcast_to(pb.asarray(1), (2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor(x)
    sources = negative_axes("moveaxis", source, x.ndim)
    destinations = negative_axes("moveaxis", destination, x.ndim)
    if len(sources) != len(destinations):
        raise AxisError(f"moveaxis: {len(sources)} axes cannot be moved to {len(destinations)} positions.")
    order = [axis for axis in all_axes(x.ndim) if axis not in sources]
    for position, axis in sorted(zip(destinations, sources)):
        order.insert(position + x.ndim, axis)
    return _permute_dims(x, tuple(order))


def flip(x: Any, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements in reverse order along some axes, or along all of them.

    >>> import pullback as pb
    >>> pb.flip(pb.asarray([1, 2, 3]))
    tensor([3, 2, 1])
    """
    x = as_tensor(x)
    axes = all_axes(x.ndim) if axis is None else negative_axes("flip", axis, x.ndim)
    return apply(OPERATIONS["flip"], (x,), (axes,))


def roll(x: Any, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements moved by `shift` places along an axis; what falls off the end comes in at the start.

    >>> import pullback as pb
    >>> pb.roll(pb.asarray([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    x = as_tensor(x)
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise ShapeError(f"roll: shift {tuple(shift)} is a tuple, so axis must be a tuple of the same length.")
        return reshape(roll(ravel(x), shift, axis=0), x.shape)
    axes = tuple(negative_axis("roll", a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes.")
    return apply(OPERATIONS["roll"], (x,), (tuple(as_index(s) for s in shifts), axes))


# -- joining and splitting -----------------------------------------------------------------------


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along an existing axis; flattened first if `axis` is None.

    >>> import pullback as pb
    >>> pb.concat([pb.asarray([1, 2]), pb.asarray([3])])
    tensor([1, 2, 3])
    """
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


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Tensor:
    """The arrays, all of one shape, one after the other along a new axis.

    >>> import pullback as pb
    >>> pb.stack([pb.asarray([1, 2]), pb.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    tensors = _several("stack", arrays)
    if any(x.shape != tensors[0].shape for x in tensors):
        raise ShapeError(f"stack: shapes {', '.join(str(x.shape) for x in tensors)} are not all the same.")
    return apply(OPERATIONS["stack"], tuple(tensors), (negative_axis("stack", axis, tensors[0].ndim + 1),))


def _several(name: str, arrays: Sequence[Any]) -> list[Tensor]:
    tensors = [as_tensor(x) for x in arrays]
    if not tensors:
        raise ShapeError(f"{name}: expected at least one array, got none.")
    return tensors


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as a tuple of views.

    >>> import pullback as pb
    >>> pb.unstack(pb.asarray([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    x = as_tensor(x)
    if x.ndim == 0:
        raise AxisError("unstack: a zero-dimensional array has no axis to split.")
    return apply(OPERATIONS["unstack"], (x,), (negative_axis("unstack", axis, x.ndim),))


def split(x: Any, /, indices_or_sections: int | Sequence[int], *, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis, as views: so many equal ones, or those that start at the given indices.

    >>> import pullback as pb
    >>> pb.split(pb.asarray([1, 2, 3, 4]), [1, 3])
    (tensor([1]), tensor([2, 3]), tensor([4]))
    """
    x = as_tensor(x)
    if not isinstance(indices_or_sections, (tuple, list)):
        size, sections = x.shape[negative_axis("split", axis, x.ndim)], as_index(indices_or_sections)
        if sections < 1 or size % sections:
            raise ShapeError(f"split: axis {axis} of size {size} has no {sections} equal parts; use array_split.")
    return array_split(x, indices_or_sections, axis=axis)


def array_split(x: Any, /, indices_or_sections: int | Sequence[int], *, axis: int = 0) -> tuple[Tensor, ...]:
    """`split` into parts whose sizes may differ by one.

    >>> import pullback as pb
    >>> pb.array_split(pb.asarray([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    x = as_tensor(x)
    position = negative_axis("split", axis, x.ndim)
    size = x.shape[position]
    if isinstance(indices_or_sections, (tuple, list)):
        ends = [slice(None, as_index(i)).indices(size)[1] for i in indices_or_sections] + [size]
        starts = [0, *ends[:-1]]
        if starts == sorted(starts):
            sizes = tuple(end - start for start, end in zip(starts, ends))
            return apply(OPERATIONS["split"], (x,), (sizes, position))
        rest = (slice(None),) * (-1 - position)  # parts that overlap or are empty, as NumPy has it
        return tuple(TENSORS.getitem(x, (..., slice(a, b), *rest)) for a, b in zip(starts, ends))
    sections = as_index(indices_or_sections)
    if sections < 1:
        raise ShapeError(f"split: expected at least one section, got {sections}.")
    each, longer = divmod(size, sections)
    sizes = (each + 1,) * longer + (each,) * (sections - longer)
    return apply(OPERATIONS["split"], (x,), (sizes, position))


# -- repeating and padding -----------------------------------------------------------------------


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated, so many times in a row; flattened first if `axis` is None.

    `repeats` is an integer, or an array with a number for each position along the axis (a device must be
    read then to know the result's shape).

    >>> import pullback as pb
    >>> pb.repeat(pb.asarray([1, 2]), pb.asarray([1, 2]))
    tensor([1, 2, 2])
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    position = negative_axis("repeat", axis, x.ndim)
    if isinstance(repeats, int) and not isinstance(repeats, bool):
        if repeats < 0:
            raise ShapeError(f"repeat: repeats must not be negative, got {repeats}.")
        return apply(OPERATIONS["repeat"], (x,), (repeats, position))
    counts = as_tensor(repeats)
    if counts.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"repeat: repeats must be integers, got {counts.dtype.name}.")
    times = np.asarray(counts._backend.to_numpy(counts._data))
    size = x.shape[position]
    if times.ndim > 1 or (times.ndim == 1 and times.size not in (1, size)) or (times < 0).any():
        raise ShapeError(f"repeat: repeats must be {size} numbers that are not negative, got shape {counts.shape}.")
    indices = np.repeat(np.arange(size), np.broadcast_to(times, (size,)).astype(np.int64))
    return apply(OPERATIONS["take"], (x, _like(indices, x)), (position,))


def _like(array: np.ndarray[Any, Any], x: Tensor) -> Tensor:
    """A NumPy array as a tensor on the device of `x`."""
    from .creation import asarray

    return asarray(array, device=x.device)


def tile(x: Any, repetitions: int | Sequence[int], /) -> Tensor:
    """`x` as a whole repeated along each axis.

    >>> import pullback as pb
    >>> pb.tile(pb.asarray([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor(x)
    times = tuple(repetitions) if isinstance(repetitions, (tuple, list)) else (repetitions,)
    counts = (1,) * (x.ndim - len(times)) + tuple(as_index(n) for n in times)
    if min(counts, default=0) < 0:
        raise ShapeError(f"tile: repetitions must not be negative, got {times}.")
    return apply(OPERATIONS["tile"], (x,), (counts,))


_PAD_MODES = {"reflect": "reflect", "edge": "edge", "replicate": "edge", "wrap": "wrap", "circular": "wrap"}


def pad(x: Any, pad_width: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """`x` with a margin. `pad_width` is a number for all sides, a pair for all axes, or a pair for every axis.

    Modes: "constant" (`constant_values`), "reflect" (mirrored at the edge element), "edge" or "replicate" (the edge
    element repeated), "wrap" or "circular" (the other end).

    >>> import pullback as pb
    >>> pb.pad(pb.asarray([1, 2, 3]), (1, 2), mode="reflect")
    tensor([2, 1, 2, 3, 2, 1])
    """
    x = as_tensor(x)
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
    for axis, pair in enumerate(widths):
        if pair != (0, 0):
            if x.shape[axis] == 0:
                raise ShapeError(f"pad: axis {axis} of shape {x.shape} is empty: nothing to fill its margin with.")
            indices = np.pad(np.arange(x.shape[axis]), pair, mode=_PAD_MODES[mode])  # type: ignore[call-overload]
            x = apply(OPERATIONS["take"], (x, _like(indices, x)), (axis - x.ndim,))
    return x
