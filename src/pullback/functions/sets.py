"""Set functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The different values of `x` in order, where each is first, which of them each element is, and how often each is.

    Every NaN counts as different. The gradient of a value goes to its first occurrence.

    >>> import pullback as pb
    >>> pb.unique_all(pb.asarray([3, 1, 3])).counts
    tensor([1, 2])
    """
    x = asarray(x)
    indices, inverse, counts = apply(OPERATIONS["unique"], (x.detach(),))
    values = TENSORS.take(TENSORS.reshape(x, (x.size,)), indices, -1)
    return UniqueAll(values, indices, inverse, counts)


def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The different values of `x` in order, and how often each comes.

    >>> import pullback as pb
    >>> pb.unique_counts(pb.asarray([3, 1, 3])).values
    tensor([1, 3])
    """
    values, _, _, counts = unique_all(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The different values of `x` in order, and which of them each element is.

    >>> import pullback as pb
    >>> pb.unique_inverse(pb.asarray([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    values, _, inverse, _ = unique_all(x)
    return UniqueInverse(values, inverse)


def unique_values(x: ArrayLike, /) -> Tensor:
    """The different values of `x` in order.

    >>> import pullback as pb
    >>> pb.unique_values(pb.asarray([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is one of those of `x2` (or is none of them, if `invert`).

    >>> import pullback as pb
    >>> pb.isin(pb.asarray([1, 2, 3]), pb.asarray([2, 5]))
    tensor([False,  True, False])
    """
    return apply(OPERATIONS["isin"], (asarray(x1), asarray(x2)), (bool(invert),))
