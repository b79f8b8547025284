"""Trigonometric and hyperbolic functions, in radians."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autodiff.apply import apply
from ..autodiff.fast import fast_path
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import Operand

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "hypot", "sin", "sinh", "tan", "tanh",
]  # fmt: skip


@fast_path
def sin(x: Operand) -> Tensor:
    """The sine of each element of `x`.

    Parameters
    ----------
    x : array
        Angles in radians, real or complex, of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sin(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["sin"], (x,))


@fast_path
def cos(x: Operand) -> Tensor:
    """The cosine of each element of `x`.

    Parameters
    ----------
    x : array
        Angles in radians, real or complex, of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cos(pb.asarray([0.0]))
    tensor([1.])
    """
    return apply(OPERATIONS["cos"], (x,))


@fast_path
def tan(x: Operand) -> Tensor:
    """The tangent of each element of `x`, in radians.

    >>> import pullback as pb
    >>> pb.tan(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["tan"], (x,))


@fast_path
def asin(x: Operand) -> Tensor:
    """The inverse of the sine, in radians, for each element of `x` from -1 to 1 (NaN outside).

    >>> import pullback as pb
    >>> pb.asin(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["asin"], (x,))


@fast_path
def acos(x: Operand) -> Tensor:
    """The inverse of the cosine, in radians, for each element of `x` from -1 to 1 (NaN outside).

    >>> import pullback as pb
    >>> pb.acos(pb.asarray([1.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["acos"], (x,))


@fast_path
def atan(x: Operand) -> Tensor:
    """The inverse of the tangent, in radians, for each element of `x`.

    >>> import pullback as pb
    >>> pb.atan(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["atan"], (x,))


@fast_path
def sinh(x: Operand) -> Tensor:
    """The hyperbolic sine of each element of `x`.

    >>> import pullback as pb
    >>> pb.sinh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["sinh"], (x,))


@fast_path
def cosh(x: Operand) -> Tensor:
    """The hyperbolic cosine of each element of `x`.

    >>> import pullback as pb
    >>> pb.cosh(pb.asarray([0.0]))
    tensor([1.])
    """
    return apply(OPERATIONS["cosh"], (x,))


@fast_path
def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent of each element of `x`: a number between -1 and 1.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tanh(pb.asarray([-100.0, 0.0, 100.0]))
    tensor([-1.,  0.,  1.])
    """
    return apply(OPERATIONS["tanh"], (x,))


@fast_path
def asinh(x: Operand) -> Tensor:
    """The inverse of the hyperbolic sine for each element of `x`.

    >>> import pullback as pb
    >>> pb.asinh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["asinh"], (x,))


@fast_path
def acosh(x: Operand) -> Tensor:
    """The inverse of the hyperbolic cosine for each element of `x` from 1 on (NaN below).

    >>> import pullback as pb
    >>> pb.acosh(pb.asarray([1.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["acosh"], (x,))


@fast_path
def atanh(x: Operand) -> Tensor:
    """The inverse of the hyperbolic tangent for each element of `x` from -1 to 1 (NaN outside).

    >>> import pullback as pb
    >>> pb.atanh(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["atanh"], (x,))


@fast_path
def atan2(x: Operand, y: Operand) -> Tensor:
    """The angle of the point at `y` to the right and `x` up, in radians; its gradient at the origin is zero.

    >>> import pullback as pb
    >>> pb.atan2(pb.asarray([0.0]), 1.0)
    tensor([0.])
    """
    return apply(OPERATIONS["atan2"], (x, y))


@fast_path
def hypot(x: Operand, y: Operand) -> Tensor:
    """The length of the vector (x, y), element by element; its gradient at the origin is zero.

    >>> import pullback as pb
    >>> pb.hypot(pb.asarray([3.0]), 4.0)
    tensor([5.])
    """
    return apply(OPERATIONS["hypot"], (x, y))
