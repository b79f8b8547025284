"""Arithmetic, powers and logarithms, parts of complex numbers. Inputs broadcast; one of two may be a Python number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.base import PYTHON_SCALARS
from ..autodiff.creation import given as asarray
from ..autodiff.fast import fast_path
from ..autodiff.tables import TENSORS
from ..errors import DtypeError
from ..operations import OPERATIONS
from .trigonometry import atan2

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = [
    "add", "angle", "clip", "conj", "divide", "exp", "expm1", "floor_divide", "imag", "log", "log10", "log1p", "log2",
    "lerp", "logaddexp", "maximum", "minimum", "multiply", "negative", "positive", "pow", "real", "reciprocal",
    "remainder", "rsqrt", "sqrt", "square", "subtract",
]  # fmt: skip


# -- arithmetic ---------------------------------------------------------------------------------------


@fast_path
def add(x: Operand, y: Operand) -> Tensor:
    """The sum x + y, element by element; shapes are broadcast, and one of the two may be a number.

    >>> import pullback as pb
    >>> pb.add(pb.asarray([1.0, 2.0]), 1.0)
    tensor([2., 3.])
    """
    return apply(OPERATIONS["add"], (x, y))


@fast_path
def subtract(x: Operand, y: Operand) -> Tensor:
    """The difference x - y, element by element; shapes are broadcast, and one of the two may be a number.

    >>> import pullback as pb
    >>> pb.subtract(pb.asarray([1.0, 2.0]), 1.0)
    tensor([0., 1.])
    """
    return apply(OPERATIONS["subtract"], (x, y))


@fast_path
def multiply(x: Operand, y: Operand) -> Tensor:
    """The product x * y, element by element; shapes are broadcast, and one of the two may be a number.

    >>> import pullback as pb
    >>> pb.multiply(pb.asarray([1.0, 2.0]), 3.0)
    tensor([3., 6.])
    """
    return apply(OPERATIONS["multiply"], (x, y))


@fast_path
def divide(x: Operand, y: Operand) -> Tensor:
    """The quotient x / y, element by element; shapes are broadcast, and one of the two may be a number.

    >>> import pullback as pb
    >>> pb.divide(pb.asarray([1.0, 2.0]), 2.0)
    tensor([0.5, 1. ])
    """
    return apply(OPERATIONS["divide"], (x, y))


@fast_path
def floor_divide(x: Operand, y: Operand) -> Tensor:
    """The largest integer not above x / y, element by element; its gradient is zero.

    >>> import pullback as pb
    >>> pb.floor_divide(pb.asarray([7, -7]), 2)
    tensor([ 3, -4])
    """
    return apply(OPERATIONS["floor_divide"], (x, y))


@fast_path
def remainder(x: Operand, y: Operand) -> Tensor:
    """What is left of `x` divided by `y`: x - y * floor_divide(x, y), which has the sign of `y`.

    >>> import pullback as pb
    >>> pb.remainder(pb.asarray([7, -7]), 3)
    tensor([1, 2])
    """
    return apply(OPERATIONS["remainder"], (x, y))


@fast_path
def pow(x: Operand, y: Operand) -> Tensor:
    """`x` to the power `y`, element by element; the gradient in `y` is zero where `x` is not positive.

    Parameters
    ----------
    x : array
        The bases.
    y : array
        The exponents. One of the two may be a Python number; shapes are broadcast.

    Returns
    -------
    Tensor
        Of the common shape.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pow(pb.asarray([2.0, 3.0]), 2.0)
    tensor([4., 9.])
    """
    return apply(OPERATIONS["pow"], (x, y))


@fast_path
def negative(x: Operand) -> Tensor:
    """-x for each element of `x`.

    >>> import pullback as pb
    >>> pb.negative(pb.asarray([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    return apply(OPERATIONS["negative"], (x,))


@fast_path
def positive(x: Operand) -> Tensor:
    """+x: the elements of `x` as they are.

    >>> import pullback as pb
    >>> pb.positive(pb.asarray([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    return apply(OPERATIONS["positive"], (x,))


@fast_path
def square(x: Operand) -> Tensor:
    """The square of each element of `x`.

    Parameters
    ----------
    x : array
        Numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.square(pb.asarray([1.0, -2.0]))
    tensor([1., 4.])
    """
    return apply(OPERATIONS["square"], (x,))


@fast_path
def sqrt(x: Operand) -> Tensor:
    """The square root of each element of `x`.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape. Negative real numbers give NaN.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sqrt(pb.asarray([4.0, 9.0]))
    tensor([2., 3.])
    """
    return apply(OPERATIONS["sqrt"], (x,))


@fast_path
def reciprocal(x: Operand) -> Tensor:
    """1 / x for each element of `x`.

    >>> import pullback as pb
    >>> pb.reciprocal(pb.asarray([2.0, 4.0]))
    tensor([0.5 , 0.25])
    """
    return apply(OPERATIONS["reciprocal"], (x,))


def rsqrt(x: Operand, /) -> Tensor:
    """1 / sqrt(x).

    Parameters
    ----------
    x : array

    Returns
    -------
    Tensor
        In the shape of `x`; infinite at 0, and not a number for negative real numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rsqrt(pb.asarray([4.0, 0.25]))
    tensor([0.5, 2. ])
    """
    return reciprocal(sqrt(x))


def lerp(x: Any, y: Any, weight: Any, /) -> Tensor:
    """x + weight (y - x): the number so far along the way from `x` to `y`, exactly `x` at 0 and exactly `y` at 1.

    Parameters
    ----------
    x, y : array or number
    weight : array or number
        Where it is not from 0 to 1 the line goes on beyond `x` and `y`.

    Returns
    -------
    Tensor
        In the shape to which all three broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.lerp(pb.asarray([0.0, 10.0]), 20.0, 0.25)
    tensor([ 5. , 12.5])
    """
    way = subtract(y, x)
    if type(weight) in PYTHON_SCALARS:
        return add(x, weight * way) if abs(weight) < 0.5 else subtract(y, (1 - weight) * way)
    weight = asarray(weight)
    is_near = TENSORS.less(TENSORS.abs(weight), 0.5)
    return TENSORS.where(is_near, add(x, weight * way), subtract(y, (1 - weight) * way))


# -- exponentials and logarithms ----------------------------------------------------------------------


@fast_path
def exp(x: Operand) -> Tensor:
    """e to the power of each element of `x`.

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
    >>> pb.exp(pb.asarray([0.0, -1000.0]))
    tensor([1., 0.])
    """
    return apply(OPERATIONS["exp"], (x,))


@fast_path
def expm1(x: Operand) -> Tensor:
    """exp(x) - 1 for each element of `x`, exact for small ones.

    >>> import pullback as pb
    >>> pb.expm1(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["expm1"], (x,))


@fast_path
def log(x: Operand) -> Tensor:
    """The natural logarithm of each element of `x`.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape. 0 gives -inf, and negative real numbers give NaN.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.log(pb.asarray([1.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["log"], (x,))


@fast_path
def log1p(x: Operand) -> Tensor:
    """log(1 + x) for each element of `x`, exact for small ones.

    >>> import pullback as pb
    >>> pb.log1p(pb.asarray([0.0]))
    tensor([0.])
    """
    return apply(OPERATIONS["log1p"], (x,))


@fast_path
def log2(x: Operand) -> Tensor:
    """The logarithm to base 2 of each element of `x`.

    >>> import pullback as pb
    >>> pb.log2(pb.asarray([8.0]))
    tensor([3.])
    """
    return apply(OPERATIONS["log2"], (x,))


@fast_path
def log10(x: Operand) -> Tensor:
    """The logarithm to base 10 of each element of `x`.

    >>> import pullback as pb
    >>> pb.log10(pb.asarray([10.0]))
    tensor([1.])
    """
    return apply(OPERATIONS["log10"], (x,))


@fast_path
def logaddexp(x: Operand, y: Operand) -> Tensor:
    """log(exp(x) + exp(y)), element by element, without overflow.

    >>> import pullback as pb
    >>> pb.logaddexp(pb.asarray([-pb.inf]), 2.0)
    tensor([2.])
    """
    return apply(OPERATIONS["logaddexp"], (x, y))


# -- complex numbers ----------------------------------------------------------------------------------


@fast_path
def conj(x: Operand) -> Tensor:
    """The complex conjugate of each element of `x`; real numbers stay what they are.

    >>> import pullback as pb
    >>> pb.conj(pb.asarray([1.0 + 2.0j]))
    tensor([1.-2.j], dtype=complex64)
    """
    return apply(OPERATIONS["conj"], (x,))


@fast_path
def real(x: Operand) -> Tensor:
    """The real part of each element of `x`.

    >>> import pullback as pb
    >>> pb.real(pb.asarray([1.0 + 2.0j]))
    tensor([1.])
    """
    return apply(OPERATIONS["real"], (x,))


@fast_path
def imag(x: Operand) -> Tensor:
    """The imaginary part of each element of `x`; zero for real numbers.

    >>> import pullback as pb
    >>> pb.imag(pb.asarray([1.0 + 2.0j]))
    tensor([2.])
    """
    return apply(OPERATIONS["imag"], (x,))


def angle(x: ArrayLike, /) -> Tensor:
    """The angle of each complex number of `x` in the plane, in radians; its gradient at zero is zero.

    >>> import pullback as pb
    >>> pb.angle(pb.asarray([1.0 + 0.0j]))
    tensor([0.])
    """
    x = asarray(x)
    return atan2(imag(x), real(x))


# -- the larger, the smaller, the nearest inside ------------------------------------------------------


@fast_path
def maximum(x: Operand, y: Operand) -> Tensor:
    """The larger of `x` and `y`, element by element; where both are equal each has half the gradient.

    Parameters
    ----------
    x, y : array
        Real numbers, whose shapes are broadcast; one may be a Python number. NaN in either gives NaN.

    Returns
    -------
    Tensor
        Of the common shape.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.maximum(pb.asarray([1.0, 3.0]), 2.0)
    tensor([2., 3.])
    """
    return apply(OPERATIONS["maximum"], (x, y))


@fast_path
def minimum(x: Operand, y: Operand) -> Tensor:
    """The smaller of `x` and `y`, element by element; where both are equal each has half the gradient.

    Parameters
    ----------
    x, y : array
        Real numbers, whose shapes are broadcast; one may be a Python number. NaN in either gives NaN.

    Returns
    -------
    Tensor
        Of the common shape.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.minimum(pb.asarray([1.0, 3.0]), 2.0)
    tensor([1., 2.])
    """
    return apply(OPERATIONS["minimum"], (x, y))


def clip(x: ArrayLike, /, min: Any = None, max: Any = None) -> Tensor:
    """The nearest value that is not below `min` and not above `max`; at a bound the gradient is that of `x`.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    min : array, optional
        The lower bound, a number or an array (shapes are broadcast); by default there is none.
    max : array, optional
        The upper bound, likewise.

    Returns
    -------
    Tensor
        Of the common shape.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clip(pb.asarray([-1.0, 0.5, 2.0]), 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    x = asarray(x)
    if x.dtype.kind in ("complex", "bool"):
        raise DtypeError(f"clip: {x.dtype.name} has no order; expected a real tensor.")
    if min is None and max is None:
        return positive(x)
    if x.dtype.kind in ("int", "uint"):
        for bound in (min, max):
            if type(bound) in PYTHON_SCALARS and type(bound) is not int:
                raise DtypeError(f"clip: the bound {bound!r} is not an integer, the tensor is {x.dtype.name}.")
    return apply(OPERATIONS["clip"], (x, min, max))
