"""Absolute values, signs, rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.fast import fast_path
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "abs", "ceil", "copysign", "floor", "nextafter", "round", "sign", "signbit", "trunc",
]  # fmt: skip


@fast_path
def abs(x: Any) -> Tensor:
    """The absolute value; its gradient at zero is zero.

    >>> import pullback as pb
    >>> pb.abs(pb.asarray([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return apply(OPERATIONS["abs"], (x,))


@fast_path
def sign(x: Any) -> Tensor:
    """-1, 0 or 1; x / abs(x) for complex x.

    >>> import pullback as pb
    >>> pb.sign(pb.asarray([-3.0, 0.0]))
    tensor([-1.,  0.])
    """
    return apply(OPERATIONS["sign"], (x,))


@fast_path
def copysign(x: Any, y: Any) -> Tensor:
    """abs(x) with the sign of y.

    >>> import pullback as pb
    >>> pb.copysign(pb.asarray([1.0, 2.0]), -1.0)
    tensor([-1., -2.])
    """
    return apply(OPERATIONS["copysign"], (x, y))


@fast_path
def floor(x: Any) -> Tensor:
    """The largest integer not above x; its gradient is zero.

    >>> import pullback as pb
    >>> pb.floor(pb.asarray([1.5]))
    tensor([1.])
    """
    return apply(OPERATIONS["floor"], (x,))


@fast_path
def ceil(x: Any) -> Tensor:
    """The smallest integer not below x; its gradient is zero.

    >>> import pullback as pb
    >>> pb.ceil(pb.asarray([1.5]))
    tensor([2.])
    """
    return apply(OPERATIONS["ceil"], (x,))


@fast_path
def trunc(x: Any) -> Tensor:
    """The integer part of x; its gradient is zero.

    >>> import pullback as pb
    >>> pb.trunc(pb.asarray([-1.5]))
    tensor([-1.])
    """
    return apply(OPERATIONS["trunc"], (x,))


@fast_path
def round(x: Any) -> Tensor:
    """The nearest integer, of two the even one; its gradient is zero.

    >>> import pullback as pb
    >>> pb.round(pb.asarray([0.5, 1.5]))
    tensor([0., 2.])
    """
    return apply(OPERATIONS["round"], (x,))


@fast_path
def nextafter(x: Any, y: Any) -> Tensor:
    """The number that follows x in the direction of y.

    >>> import pullback as pb
    >>> pb.nextafter(pb.asarray([0.0]), 0.0)
    tensor([0.])
    """
    return apply(OPERATIONS["nextafter"], (x, y))


def signbit(x: Any, /) -> Tensor:
    """Whether the sign is negative, -0 included.

    >>> import pullback as pb
    >>> pb.signbit(pb.asarray([-0.0, 1.0]))
    tensor([ True, False])
    """
    return apply(OPERATIONS["signbit"], (x,))
