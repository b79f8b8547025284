"""Absolute values, signs, rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..autodiff.fast import fast_path
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = [
    "abs", "ceil", "copysign", "floor", "nextafter", "round", "sign", "signbit", "straight_through", "trunc",
]  # fmt: skip


@fast_path
def abs(x: Operand) -> Tensor:
    """The absolute value of each element of `x`; its gradient at zero is zero.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`; real.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.abs(pb.asarray([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return apply(OPERATIONS["abs"], (x,))


@fast_path
def sign(x: Operand) -> Tensor:
    """The sign of each element of `x`: -1, 0 or 1; for complex numbers x / abs(x).

    >>> import pullback as pb
    >>> pb.sign(pb.asarray([-3.0, 0.0]))
    tensor([-1.,  0.])
    """
    return apply(OPERATIONS["sign"], (x,))


@fast_path
def copysign(x: Operand, y: Operand) -> Tensor:
    """abs(x) with the sign of y, element by element.

    >>> import pullback as pb
    >>> pb.copysign(pb.asarray([1.0, 2.0]), -1.0)
    tensor([-1., -2.])
    """
    return apply(OPERATIONS["copysign"], (x, y))


@fast_path
def floor(x: Operand) -> Tensor:
    """The largest integer not above each element of `x`; its gradient is zero.

    >>> import pullback as pb
    >>> pb.floor(pb.asarray([1.5]))
    tensor([1.])
    """
    return apply(OPERATIONS["floor"], (x,))


@fast_path
def ceil(x: Operand) -> Tensor:
    """The smallest integer not below each element of `x`; its gradient is zero.

    >>> import pullback as pb
    >>> pb.ceil(pb.asarray([1.5]))
    tensor([2.])
    """
    return apply(OPERATIONS["ceil"], (x,))


@fast_path
def trunc(x: Operand) -> Tensor:
    """The integer part of each element of `x`; its gradient is zero.

    >>> import pullback as pb
    >>> pb.trunc(pb.asarray([-1.5]))
    tensor([-1.])
    """
    return apply(OPERATIONS["trunc"], (x,))


@fast_path
def round(x: Operand) -> Tensor:
    """The integer nearest to each element of `x`, of two the even one; its gradient is zero.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape and the dtype of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.round(pb.asarray([0.5, 1.5]))
    tensor([0., 2.])
    """
    return apply(OPERATIONS["round"], (x,))


@fast_path
def nextafter(x: Operand, y: Operand) -> Tensor:
    """The number that follows each element of `x` in the direction of `y`.

    >>> import pullback as pb
    >>> pb.nextafter(pb.asarray([0.0]), 0.0)
    tensor([0.])
    """
    return apply(OPERATIONS["nextafter"], (x, y))


def signbit(x: Operand, /) -> Tensor:
    """Whether the sign of each element of `x` is negative, -0 included.

    >>> import pullback as pb
    >>> pb.signbit(pb.asarray([-0.0, 1.0]))
    tensor([ True, False])
    """
    return apply(OPERATIONS["signbit"], (x,))


def straight_through(x: ArrayLike, value: ArrayLike) -> Tensor:
    """`value`, with the gradient going to `x` as if that were the result: past rounding, choices and other steps.

    Parameters
    ----------
    x : array
        Floating-point or complex numbers.
    value : array
        Of the same shape and dtype, such as what rounding leaves of `x`. It counts as a constant.

    Returns
    -------
    Tensor
        As `value`.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.asarray([0.4, 2.6]).set_requires_grad(True)
    >>> rounded = pb.straight_through(x, pb.round(x))
    >>> rounded
    tensor([0., 3.], requires_grad=True)
    >>> pb.backward((rounded * rounded).sum())[x]
    tensor([0., 6.])
    """
    x, value = asarray(x), asarray(value).detach()
    if x.shape != value.shape:
        raise ShapeError(f"straight_through: x has shape {x.shape} and value {value.shape}: expected the same.")
    if x.dtype != value.dtype:
        raise DtypeError(f"straight_through: x is {x.dtype.name} and value {value.dtype.name}: expected the same.")
    return apply(OPERATIONS["straight_through"], (x, value))
