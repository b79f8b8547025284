"""Comparisons, tests, logic and bits: what has no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal",
]  # fmt: skip


# -- comparisons and tests ----------------------------------------------------------------------------


def equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 == x2, element by element.

    >>> import pullback as pb
    >>> pb.equal(pb.asarray([1, 2]), 2)
    tensor([False,  True])
    """
    return apply(OPERATIONS["equal"], (x1, x2))


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 != x2, element by element.

    >>> import pullback as pb
    >>> pb.not_equal(pb.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return apply(OPERATIONS["not_equal"], (x1, x2))


def less(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 < x2, element by element.

    >>> import pullback as pb
    >>> pb.less(pb.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return apply(OPERATIONS["less"], (x1, x2))


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 <= x2, element by element.

    >>> import pullback as pb
    >>> pb.less_equal(pb.asarray([1, 2]), 1)
    tensor([ True, False])
    """
    return apply(OPERATIONS["less_equal"], (x1, x2))


def greater(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 > x2, element by element.

    >>> import pullback as pb
    >>> pb.greater(pb.asarray([1, 2]), 1)
    tensor([False,  True])
    """
    return apply(OPERATIONS["greater"], (x1, x2))


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """Whether x1 >= x2, element by element.

    >>> import pullback as pb
    >>> pb.greater_equal(pb.asarray([1, 2]), 2)
    tensor([False,  True])
    """
    return apply(OPERATIONS["greater_equal"], (x1, x2))


def isfinite(x: Any, /) -> Tensor:
    """Whether each element of `x` is neither infinite nor NaN.

    >>> import pullback as pb
    >>> pb.isfinite(pb.asarray([1.0, pb.inf]))
    tensor([ True, False])
    """
    return apply(OPERATIONS["isfinite"], (x,))


def isinf(x: Any, /) -> Tensor:
    """Whether each element of `x` is infinite.

    >>> import pullback as pb
    >>> pb.isinf(pb.asarray([1.0, -pb.inf]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["isinf"], (x,))


def isnan(x: Any, /) -> Tensor:
    """Whether each element of `x` is NaN.

    >>> import pullback as pb
    >>> pb.isnan(pb.asarray([1.0, pb.nan]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["isnan"], (x,))


# -- logic and bits -----------------------------------------------------------------------------------


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both of two truth values are true, element by element.

    >>> import pullback as pb
    >>> pb.logical_and(pb.asarray([True, False]), True)
    tensor([ True, False])
    """
    return apply(OPERATIONS["logical_and"], (x1, x2))


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether at least one of two truth values is true, element by element.

    >>> import pullback as pb
    >>> pb.logical_or(pb.asarray([True, False]), False)
    tensor([ True, False])
    """
    return apply(OPERATIONS["logical_or"], (x1, x2))


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one of two truth values is true, element by element.

    >>> import pullback as pb
    >>> pb.logical_xor(pb.asarray([True, False]), True)
    tensor([False,  True])
    """
    return apply(OPERATIONS["logical_xor"], (x1, x2))


def logical_not(x: Any, /) -> Tensor:
    """Whether each truth value in `x` is false.

    >>> import pullback as pb
    >>> pb.logical_not(pb.asarray([True, False]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["logical_not"], (x,))


def bitwise_and(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in both of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_and(pb.asarray([6]), 3)
    tensor([2])
    """
    return apply(OPERATIONS["bitwise_and"], (x1, x2))


def bitwise_or(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in at least one of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_or(pb.asarray([6]), 3)
    tensor([7])
    """
    return apply(OPERATIONS["bitwise_or"], (x1, x2))


def bitwise_xor(x1: Any, x2: Any, /) -> Tensor:
    """The bits that are set in exactly one of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_xor(pb.asarray([6]), 3)
    tensor([5])
    """
    return apply(OPERATIONS["bitwise_xor"], (x1, x2))


def bitwise_invert(x: Any, /) -> Tensor:
    """Each integer of `x` with all its bits flipped.

    >>> import pullback as pb
    >>> pb.bitwise_invert(pb.asarray([0, 1]))
    tensor([-1, -2])
    """
    return apply(OPERATIONS["bitwise_invert"], (x,))


def bitwise_left_shift(x1: Any, x2: Any, /) -> Tensor:
    """x1 * 2**x2 for integers, element by element: bits moved to the left.

    >>> import pullback as pb
    >>> pb.bitwise_left_shift(pb.asarray([1]), 3)
    tensor([8])
    """
    return apply(OPERATIONS["bitwise_left_shift"], (x1, x2))


def bitwise_right_shift(x1: Any, x2: Any, /) -> Tensor:
    """x1 // 2**x2 for integers, element by element: bits moved to the right.

    >>> import pullback as pb
    >>> pb.bitwise_right_shift(pb.asarray([8]), 3)
    tensor([1])
    """
    return apply(OPERATIONS["bitwise_right_shift"], (x1, x2))
