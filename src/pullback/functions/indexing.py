"""Taking and placing elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

import numpy as np

from .. import backends, modes
from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.base import resolved
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..dtypes import int64
from ..errors import DtypeError, IndexingError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["index_add", "put_along_axis", "scatter_add", "take", "take_along_axis"]

_getitem = call_for("getitem")
_PLAIN = frozenset((int, slice, type(None), type(Ellipsis)))


# -- x[index] ------------------------------------------------------------------------------------


def canonical_index(x: base.TensorBase, index: Any) -> Any:
    """`index` as the backend of `x` takes it: integers, slices, None, Ellipsis, raw integer or boolean arrays."""
    kind = type(index)
    if kind is int or kind is type(None) or kind is type(Ellipsis):
        return index
    if modes.tracing() is not None:
        x = resolved(x)
        return tuple([_traced_part(x, part) for part in index]) if kind is tuple else _traced_part(x, index)
    if kind is tuple:
        return tuple([part if type(part) is int else _part(x, part) for part in index])
    return _part(x, index)


def _traced_part(x: base.TensorBase, part: Any) -> Any:
    """One entry of an index while a function is traced: arrays of integers are inputs by reference."""
    modes.tracing().recorder.refuse_array(part)
    part = _part(x, asarray(part) if isinstance(part, np.ndarray) else part)
    if not hasattr(part, "dtype") or part.dtype.kind != "b":
        return part
    mask = modes.tracing().find_values(part)  # how many elements it selects must be known now
    return part if mask is None else mask


def _part(x: base.TensorBase, part: Any) -> Any:
    """One entry of an index."""
    kind = type(part)
    if kind is slice:
        if _is_plain_slice(part):
            return part
        return slice(*(None if n is None else _integer(n, part) for n in (part.start, part.stop, part.step)))
    if kind in _PLAIN or kind is bool:
        return part
    if isinstance(part, (list, tuple)):
        part = np.asarray(part) if part else np.zeros(0, np.int64)
        if part.dtype == object:  # a list with tensors in it
            part = np.asarray([_integer(n, part) for n in part])
    raw = resolved(part)._raw if isinstance(part, base.Tensor) else part
    backend = backends.of(raw)
    if backend is None:
        return _integer(part, part)
    dtype = backend.dtype_of(raw)
    if dtype.kind not in ("int", "uint", "bool"):
        raise IndexingError(
            f"an index must be made of integers, slices, None, ... or boolean masks, got {dtype.name} of shape "
            f"{tuple(raw.shape)}: {part!r:.60}. Convert it with `.astype(pb.int64)` or compare it to get a mask."
        )
    if dtype.kind != "bool" and not raw.shape and backend.is_concrete(raw):
        return int(raw)  # selects as an integer does: a view
    if backend.lives_anywhere:  # of many examples, inside of `vmap`
        return raw
    own = backends.of(x._backend.values_in(x._raw))
    if backend is not own:
        raw = own.asarray(backend.to_numpy(raw), None, x.device, None)
    if dtype.kind != "bool" and isinstance(raw, np.ndarray) and raw.dtype != np.int64:
        raw = raw.astype(np.int64)
    if raw is part and isinstance(raw, np.ndarray):
        raw = raw.copy()  # the graph may keep it, and index buffers are often filled again
    return raw


def _is_plain_slice(part: slice) -> bool:
    return type(part.start) in _PLAIN and type(part.stop) in _PLAIN and type(part.step) in _PLAIN


def _integer(value: Any, shown: Any) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise IndexingError(
            f"an index must be made of integers, slices, None, ... or integer or boolean arrays, got "
            f"{type(value).__name__}: {shown!r:.60}."
        ) from None


def getitem(self: Tensor, index: Any) -> Tensor:
    """The elements at `index`: a view for integers and slices, a copy for integer arrays and boolean masks."""
    if type(index) is not int:
        index = canonical_index(self, index)
    return _getitem(self, index)


def index_add(x: ArrayLike, index: Any, value: ArrayLike, /) -> Tensor:
    """`x` with `value` added at `x[index]`, once for each time that `index` names a position.

    Parameters
    ----------
    x : array
        What to add to. It is not changed.
    index : index
        Whatever can stand in `x[index]`: integers, slices, arrays of integers, masks, tuples of these.
    value : array
        What to add; it broadcasts to `x[index]`.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_add(pb.asarray([1.0, 1.0, 1.0]), pb.asarray([0, 0, 2]), 1.0)
    tensor([3., 1., 2.])
    """
    x = asarray(x)
    place = canonical_index(x, index)
    return apply(OPERATIONS["index_add"], (x, value), (place,))


# -- along one axis ------------------------------------------------------------------------------


@hide_others
def take(x: ArrayLike, indices: Any, /, *, axis: int | None = None, **other: Never) -> Tensor:
    """The slices of `x` at `indices` along an axis, which must be named unless `x` has only one.

    Parameters
    ----------
    x : array
        With at least one axis.
    indices : array of int
        Which slices. It may have any number of axes; they replace the one that is indexed. Negative ones count from
        the end.
    axis : int, optional
        Along which axis. It can be left out only if there is no other.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.take(pb.asarray([[1, 2, 3], [4, 5, 6]]), pb.asarray([2, 0]), axis=1)
    tensor([[3, 1],
            [6, 4]])
    """
    if other:
        raise unexpected("take", other)
    x, where = asarray(x), _indices("take", indices)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(f"take: `axis` must be given for shape {x.shape}; it can be left out for one axis only.")
        axis = 0
    position = negative_axis("take", axis, x.ndim)
    if where.ndim == 1:
        return apply(OPERATIONS["take"], (x, where), (position,))
    flat = apply(OPERATIONS["reshape"], (where,), ((where.size,),))
    taken = apply(OPERATIONS["take"], (x, flat), (position,))
    split = x.ndim + position
    return apply(OPERATIONS["reshape"], (taken,), ((*x.shape[:split], *where.shape, *x.shape[split + 1 :]),))


@hide_others
def take_along_axis(x: ArrayLike, indices: Any, /, *, axis: int = -1, **other: Never) -> Tensor:
    """For each position along the other axes, the elements at its own `indices` (broadcast against `x` there).

    Parameters
    ----------
    x : array
        With at least one axis.
    indices : array of int
        With as many axes as `x`. Its axes other than `axis` are broadcast against those of `x`.
    axis : int
        Along which axis elements are chosen.

    Returns
    -------
    Tensor
        Of the shape of `indices`, broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.take_along_axis(pb.asarray([[1, 2, 3], [4, 5, 6]]), pb.asarray([[2], [0]]), axis=1)
    tensor([[3],
            [4]])
    """
    if other:
        raise unexpected("take_along_axis", other)
    x, where = asarray(x), _indices("take_along_axis", indices)
    position = _compatible("take_along_axis", x, where, axis)
    return apply(OPERATIONS["take_along_axis"], (x, where), (position,))


@hide_others
def put_along_axis(x: ArrayLike, indices: Any, values: Any, /, *, axis: int = -1, **other: Never) -> Tensor:
    """A copy of `x` with `values` where `take_along_axis(x, indices, axis=axis)` would read; the last of several stays.

    >>> import pullback as pb
    >>> pb.put_along_axis(pb.asarray([[1, 2, 3], [4, 5, 6]]), pb.asarray([[2], [0]]), 0, axis=1)
    tensor([[1, 2, 0],
            [0, 5, 6]])
    """
    if other:
        raise unexpected("put_along_axis", other)
    x, where = asarray(x), _indices("put_along_axis", indices)
    position = _compatible("put_along_axis", x, where, axis)
    return apply(OPERATIONS["put_along_axis"], (x, values, where), (position,))


@hide_others
def scatter_add(x: ArrayLike, indices: Any, values: Any, /, *, axis: int = -1, **other: Never) -> Tensor:
    """`x` with `values` added where `take_along_axis(x, indices, axis=axis)` would read, repeated positions too.

    Parameters
    ----------
    x : array
        What to add to. It is not changed.
    indices : array of int
        With as many axes as `x`: the places along `axis`.
    values : array
        What to add there; it broadcasts to what `take_along_axis(x, indices)` gives.
    axis : int
        Along which axis places are counted.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter_add(pb.asarray([[0.0, 0.0, 0.0]]), pb.asarray([[2, 2]]), pb.asarray([[1.0, 2.0]]), axis=1)
    tensor([[0., 0., 3.]])
    """
    if other:
        raise unexpected("scatter_add", other)
    x, where, values = asarray(x), _indices("scatter_add", indices), asarray(values)
    position = _compatible("scatter_add", x, where, axis)
    if values.ndim > where.ndim:
        raise ShapeError(f"scatter_add: values have shape {values.shape}, indices have shape {where.shape}.")
    added = apply(OPERATIONS["take_along_axis_transposed"], (values, where), (x.shape[position], position))
    return apply(OPERATIONS["add"], (x, added))


def _indices(name: str, indices: Any) -> Tensor:
    found = asarray(indices)
    if found.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"{name}: indices must be integers, got {found.dtype.name}. Use `.astype(pb.int64)`.")
    if found.dtype.name != "int64":
        found = found.detach()
        found = apply(OPERATIONS["astype"], (found,), (found._backend.raw_dtype(int64),))
    return found


def _compatible(name: str, x: Tensor, indices: Tensor, axis: int) -> int:
    """The axis, after checking that the other axes of `x` and `indices` broadcast."""
    position = negative_axis(name, axis, x.ndim)
    if indices.ndim != x.ndim or any(
        m != n and 1 not in (m, n) for i, (m, n) in enumerate(zip(x.shape, indices.shape)) if i - x.ndim != position
    ):
        raise ShapeError(
            f"{name}: indices of shape {indices.shape} do not fit an array of shape {x.shape}: they must have as many "
            f"axes, and the same sizes (or 1) in all but axis {axis}."
        )
    return position
