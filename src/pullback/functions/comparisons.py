"""Comparisons, tests, logic and bits: what has no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff import base
from ..autodiff.apply import apply
from ..autodiff.base import PYTHON_SCALARS
from ..autodiff.creation import asarray
from ..autodiff.tables import TENSORS
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = [
    "allclose", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "equal", "greater", "greater_equal", "isclose", "isfinite", "isinf", "isnan", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
]  # fmt: skip


# -- comparisons and tests ----------------------------------------------------------------------------


def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 == x2, element by element.

    >>> import pullback as pb
    >>> pb.equal(pb.asarray([1, 2]), 2)
    tensor([False,  True])
    """
    return apply(OPERATIONS["equal"], (x1, x2))


def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 != x2, element by element.

    >>> import pullback as pb
    >>> pb.not_equal(pb.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return apply(OPERATIONS["not_equal"], (x1, x2))


def less(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 < x2, element by element.

    >>> import pullback as pb
    >>> pb.less(pb.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return apply(OPERATIONS["less"], (x1, x2))


def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 <= x2, element by element.

    >>> import pullback as pb
    >>> pb.less_equal(pb.asarray([1, 2]), 1)
    tensor([ True, False])
    """
    return apply(OPERATIONS["less_equal"], (x1, x2))


def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 > x2, element by element.

    >>> import pullback as pb
    >>> pb.greater(pb.asarray([1, 2]), 1)
    tensor([False,  True])
    """
    return apply(OPERATIONS["greater"], (x1, x2))


def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether x1 >= x2, element by element.

    >>> import pullback as pb
    >>> pb.greater_equal(pb.asarray([1, 2]), 2)
    tensor([False,  True])
    """
    return apply(OPERATIONS["greater_equal"], (x1, x2))


def isclose(x: ArrayLike, y: ArrayLike, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether numbers are nearly equal: |x - y| <= atol + rtol |y|. Infinities are near themselves alone.

    Parameters
    ----------
    x, y : array or number
        What to compare; `y` is the reference.
    rtol, atol : number or array
        How far apart they may be, relative to `y` and in addition to that.
    equal_nan : bool
        Whether NaN is near NaN.

    Returns
    -------
    Tensor
        Of booleans.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isclose(pb.asarray([1.0, 2.0, pb.inf]), pb.asarray([1.000001, 2.1, pb.inf]))
    tensor([ True, False,  True])
    """
    if type(y) in PYTHON_SCALARS and isinstance(x, base.Tensor):
        y = asarray(y, device=x.device)
    elif type(x) in PYTHON_SCALARS and isinstance(y, base.Tensor):
        x = asarray(x, device=y.device)
    x, y = asarray(x).detach(), asarray(y).detach()
    if y.dtype.kind not in ("float", "complex"):
        y = y * 1.0  # differences of integers may wrap around
    same = TENSORS.equal(x, y)
    is_finite = TENSORS.isfinite(y)
    reference = TENSORS.where(TENSORS.logical_and(is_finite, TENSORS.logical_not(same)), y, 0)
    is_near = TENSORS.less_equal(TENSORS.abs(x - reference), atol + rtol * TENSORS.abs(reference))
    close = TENSORS.logical_or(same, TENSORS.logical_and(is_finite, is_near))
    return TENSORS.logical_or(close, TENSORS.logical_and(TENSORS.isnan(x), TENSORS.isnan(y))) if equal_nan else close


def allclose(x: ArrayLike, y: ArrayLike, /, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all numbers are nearly equal, as of `isclose`.

    Parameters
    ----------
    x, y : array or number
        What to compare; `y` is the reference.
    rtol, atol : number or array
        How far apart they may be, relative to `y` and in addition to that.
    equal_nan : bool
        Whether NaN is near NaN.

    Returns
    -------
    Tensor
        One boolean, which `if` and `assert` take as one of Python's.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.allclose(pb.asarray([1.0, 2.0]), pb.asarray([1.0, 2.000001]))
    tensor(True)
    """
    return TENSORS.all(isclose(x, y, rtol, atol, equal_nan), None, False)


def isfinite(x: Operand, /) -> Tensor:
    """Whether each element of `x` is neither infinite nor NaN.

    >>> import pullback as pb
    >>> pb.isfinite(pb.asarray([1.0, pb.inf]))
    tensor([ True, False])
    """
    return apply(OPERATIONS["isfinite"], (x,))


def isinf(x: Operand, /) -> Tensor:
    """Whether each element of `x` is infinite.

    >>> import pullback as pb
    >>> pb.isinf(pb.asarray([1.0, -pb.inf]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["isinf"], (x,))


def isnan(x: Operand, /) -> Tensor:
    """Whether each element of `x` is NaN.

    >>> import pullback as pb
    >>> pb.isnan(pb.asarray([1.0, pb.nan]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["isnan"], (x,))


# -- logic and bits -----------------------------------------------------------------------------------


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether both of two truth values are true, element by element.

    >>> import pullback as pb
    >>> pb.logical_and(pb.asarray([True, False]), True)
    tensor([ True, False])
    """
    return apply(OPERATIONS["logical_and"], (x1, x2))


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether at least one of two truth values is true, element by element.

    >>> import pullback as pb
    >>> pb.logical_or(pb.asarray([True, False]), False)
    tensor([ True, False])
    """
    return apply(OPERATIONS["logical_or"], (x1, x2))


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Whether exactly one of two truth values is true, element by element.

    >>> import pullback as pb
    >>> pb.logical_xor(pb.asarray([True, False]), True)
    tensor([False,  True])
    """
    return apply(OPERATIONS["logical_xor"], (x1, x2))


def logical_not(x: Operand, /) -> Tensor:
    """Whether each truth value in `x` is false.

    >>> import pullback as pb
    >>> pb.logical_not(pb.asarray([True, False]))
    tensor([False,  True])
    """
    return apply(OPERATIONS["logical_not"], (x,))


def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """The bits that are set in both of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_and(pb.asarray([6]), 3)
    tensor([2])
    """
    return apply(OPERATIONS["bitwise_and"], (x1, x2))


def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """The bits that are set in at least one of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_or(pb.asarray([6]), 3)
    tensor([7])
    """
    return apply(OPERATIONS["bitwise_or"], (x1, x2))


def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """The bits that are set in exactly one of two integers, element by element.

    >>> import pullback as pb
    >>> pb.bitwise_xor(pb.asarray([6]), 3)
    tensor([5])
    """
    return apply(OPERATIONS["bitwise_xor"], (x1, x2))


def bitwise_invert(x: Operand, /) -> Tensor:
    """Each integer of `x` with all its bits flipped.

    >>> import pullback as pb
    >>> pb.bitwise_invert(pb.asarray([0, 1]))
    tensor([-1, -2])
    """
    return apply(OPERATIONS["bitwise_invert"], (x,))


def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 * 2**x2 for integers, element by element: bits moved to the left.

    >>> import pullback as pb
    >>> pb.bitwise_left_shift(pb.asarray([1]), 3)
    tensor([8])
    """
    return apply(OPERATIONS["bitwise_left_shift"], (x1, x2))


def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """x1 // 2**x2 for integers, element by element: bits moved to the right.

    >>> import pullback as pb
    >>> pb.bitwise_right_shift(pb.asarray([8]), 3)
    tensor([1])
    """
    return apply(OPERATIONS["bitwise_right_shift"], (x1, x2))
