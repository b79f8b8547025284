"""Sums, means and largest elements of the rows of a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import modes
from ..autodiff.base import values_of
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..dtypes import int64
from ..errors import DtypeError, ShapeError
from .normalization import embedding
from .scattering import scatter_reduce
from .sorting import searchsorted

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["embedding_bag"]


def embedding_bag(
    indices: Any,
    weight: ArrayLike,
    offsets: Any = None,
    mode: str = "mean",
    *,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, the mean or the largest elements of the rows of `weight` that belong to each of several bags.

    Parameters
    ----------
    indices : array of int
        Which rows: integers of shape (bags, rows of each), or of all bags in a row, (N,), with `offsets`.
    weight : array
        The table, (rows, features).
    offsets : array of int, optional
        Where each bag begins among (N,) `indices`, in ascending order; the first is 0.
    mode : {"mean", "sum", "max"}
        "mean", "sum" or "max".
    per_sample_weights : array, optional
        By what each row is multiplied, in the shape of `indices`; for "sum" only.
    include_last_offset : bool
        Whether the last of `offsets` is where the last bag ends.
    padding_idx : int, optional
        A row that is left out, and gets no gradient.

    Returns
    -------
    Tensor
        (bags, features); zeros for a bag without rows.

    Examples
    --------
    >>> import pullback as pb
    >>> table = pb.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> pb.embedding_bag(pb.asarray([0, 1, 2]), table, pb.asarray([0, 2]), mode="sum")
    tensor([[2., 4.],
            [4., 5.]])
    """
    indices, weight = asarray(indices), asarray(weight)
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f'embedding_bag: mode must be "mean", "sum" or "max", got {mode!r}.')
    if per_sample_weights is not None and mode != "sum":
        raise ValueError(f'embedding_bag: per_sample_weights are for mode="sum", got mode={mode!r}.')
    if mode == "max" and weight.dtype.kind == "complex":
        raise DtypeError("embedding_bag: complex numbers have no order; the mode must be sum or mean.")
    rows = embedding(indices, weight, padding_idx)
    if not (indices.ndim == 2 and offsets is None) and not (indices.ndim == 1 and offsets is not None):
        raise ShapeError(
            f"embedding_bag: indices must be (bags, rows of each), or (N,) with offsets; got shape {indices.shape} "
            f"{'without' if offsets is None else 'with'} offsets."
        )
    if per_sample_weights is not None:
        factors = asarray(per_sample_weights)
        if factors.shape != indices.shape:
            raise ShapeError(
                f"embedding_bag: per_sample_weights have shape {factors.shape}, indices have {indices.shape}."
            )
        rows = TENSORS.multiply(rows, TENSORS.expand_dims(factors, (-1,)))
    counted = None
    if padding_idx is not None:
        counted = TENSORS.not_equal(TENSORS.expand_dims(indices, (-1,)), padding_idx % weight.shape[0])
    if offsets is None:
        return _of_rows(rows, counted, mode)
    bag, bags = _bags(indices, offsets, include_last_offset)
    return _of_bags(rows, counted, bag, bags, mode)


def _of_rows(rows: Any, counted: Any, mode: str) -> Tensor:
    """Of bags (bags, rows of each, features) that are all of the same size."""
    if mode == "max":
        if not rows.shape[1]:
            return TENSORS.sum(rows, (1 - rows.ndim,), False)
        if counted is None:
            return TENSORS.max(rows, (-2,), False)
        largest = TENSORS.max(TENSORS.where(counted, rows, -math.inf), (-2,), False)
        return TENSORS.where(TENSORS.any(counted, (-2,), False), largest, 0.0)
    if counted is not None:
        rows = TENSORS.where(counted, rows, 0.0)
    total = TENSORS.sum(rows, (-2,), False)
    if mode == "sum":
        return total
    if counted is None:
        return TENSORS.divide(total, max(rows.shape[1], 1))
    counts = TENSORS.astype(TENSORS.count_nonzero(counted, (-2,), False), TENSORS.real(total)._raw.dtype)
    return TENSORS.divide(total, TENSORS.maximum(counts, 1))


def _of_bags(rows: Any, counted: Any, bag: Any, bags: int, mode: str) -> Tensor:
    """Of rows (N, features), each of which belongs to one of so many bags."""
    if counted is not None:  # what is left out goes into a bag of its own
        bag = TENSORS.where(TENSORS.squeeze(counted, (-1,)), bag, bags)
    if mode == "max":
        empty = TENSORS.zeros((bags + 1, rows.shape[-1]), rows._raw.dtype, rows)
        place = TENSORS.broadcast_to(TENSORS.expand_dims(bag, (-1,)), rows.shape)
        out = scatter_reduce(empty, place, rows, "amax", axis=0, include_self=False)
    else:
        out = TENSORS.take_transposed(rows, bag, bags + 1, -2)
    if mode == "mean":
        ones = TENSORS.ones_like(TENSORS.getitem(rows, (..., slice(0, 1))))
        out = TENSORS.divide(out, TENSORS.maximum(TENSORS.real(TENSORS.take_transposed(ones, bag, bags + 1, -2)), 1))
    return TENSORS.getitem(out, (slice(0, bags),))


def _bags(indices: Tensor, offsets: Any, include_last: bool) -> tuple[Tensor, int]:
    """The bag of each of the indices, and how many bags there are."""
    offsets = asarray(offsets)
    if offsets.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"embedding_bag: offsets must be integers, got {offsets.dtype.name}.")
    if offsets.ndim != 1 or offsets.shape[0] < int(include_last):
        raise ShapeError(f"embedding_bag: offsets must have one axis, got shape {offsets.shape}.")
    if modes.tracing() is None and modes.mapping() is None:
        starts = np.asarray(values_of(offsets)).astype(np.int64)
        if starts.size and (starts[0] != 0 or np.any(np.diff(starts) < 0) or starts[-1] > indices.shape[0]):
            raise ValueError(
                f"embedding_bag: offsets must begin with 0, ascend, and stay within {indices.shape[0]} indices; they "
                f"are {starts.tolist() if starts.size < 9 else [*starts[:8].tolist(), '...']}."
            )
    bags = offsets.shape[0] - int(include_last)
    if not bags and indices.shape[0]:
        raise ShapeError(f"embedding_bag: {indices.shape[0]} indices, but no offsets: at least one bag is needed.")
    starts = TENSORS.getitem(offsets, slice(0, bags))
    starts = TENSORS.astype(starts, _int64(indices))
    numbers = TENSORS.arange(0, indices.shape[0], 1, _int64(indices), indices)
    return searchsorted(starts, numbers, side="right") - 1, bags


def _int64(like: Tensor) -> Any:
    return like._backend.raw_dtype(int64)
