"""Trigonometric and hyperbolic functions, in radians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.fast import fast_path
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "hypot", "sin", "sinh", "tan", "tanh",
]  # fmt: skip


@fast_path
def sin(x: Any) -> Tensor:
    """The sine.

    >>> import pullback as pb
    >>> pb.sin(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["sin"], (x,))


@fast_path
def cos(x: Any) -> Tensor:
    """The cosine.

    >>> import pullback as pb
    >>> pb.cos(pb.asarray([0.0]))
    tensor([1.])
    """
    return apply(OPERATIONS["cos"], (x,))


@fast_path
def tan(x: Any) -> Tensor:
    """The tangent.

    >>> import pullback as pb
    >>> pb.tan(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["tan"], (x,))


@fast_path
def asin(x: Any) -> Tensor:
    """The inverse of the sine.

    >>> import pullback as pb
    >>> pb.asin(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["asin"], (x,))


@fast_path
def acos(x: Any) -> Tensor:
    """The inverse of the cosine.

    >>> import pullback as pb
    >>> pb.acos(pb.asarray([1.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["acos"], (x,))


@fast_path
def atan(x: Any) -> Tensor:
    """The inverse of the tangent.

    >>> import pullback as pb
    >>> pb.atan(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["atan"], (x,))


@fast_path
def sinh(x: Any) -> Tensor:
    """The hyperbolic sine.

    >>> import pullback as pb
    >>> pb.sinh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["sinh"], (x,))


@fast_path
def cosh(x: Any) -> Tensor:
    """The hyperbolic cosine.

    >>> import pullback as pb
    >>> pb.cosh(pb.asarray([0.0]))
    tensor([1.])
    """
    return apply(OPERATIONS["cosh"], (x,))


@fast_path
def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent.

    >>> import pullback as pb
    >>> pb.tanh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["tanh"], (x,))


@fast_path
def asinh(x: Any) -> Tensor:
    """The inverse of the hyperbolic sine.

    >>> import pullback as pb
    >>> pb.asinh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["asinh"], (x,))


@fast_path
def acosh(x: Any) -> Tensor:
    """The inverse of the hyperbolic cosine.

    >>> import pullback as pb
    >>> pb.acosh(pb.asarray([1.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["acosh"], (x,))


@fast_path
def atanh(x: Any) -> Tensor:
    """The inverse of the hyperbolic tangent.

    >>> import pullback as pb
    >>> pb.atanh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["atanh"], (x,))


@fast_path
def atan2(x: Any, y: Any) -> Tensor:
    """The angle of the point (y, x); its gradient at the origin is zero.

    >>> import pullback as pb
    >>> pb.atan2(pb.asarray([0.0]), 1.0)
    tensor([0.])
    """
    return apply(OPERATIONS["atan2"], (x, y))


@fast_path
def hypot(x: Any, y: Any) -> Tensor:
    """The length of (x, y); its gradient at the origin is zero.

    >>> import pullback as pb
    >>> pb.hypot(pb.asarray([3.0]), 4.0)
    tensor([5.])
    """
    return apply(OPERATIONS["hypot"], (x, y))
