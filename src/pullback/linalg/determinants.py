"""Determinants."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .arguments import matrices, run

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


def det(x: ArrayLike, /) -> Tensor:
    """The determinant of a square matrix; first and second derivatives are right for singular matrices too.

    Parameters
    ----------
    x : array
        (..., N, N).

    Returns
    -------
    Tensor
        (...).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.det(pb.asarray([[1.0, 0.0], [0.0, 3.0]]))
    tensor(3.)
    """
    return run("det", matrices("det", x, square=True))


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Sign (or phase) of the determinant, and the logarithm of its absolute value; 0 and -inf for a singular matrix.

    >>> import pullback as pb
    >>> pb.linalg.slogdet(pb.asarray([[1.0, 0.0], [0.0, -1.0]]))
    SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    return SlogdetResult(*run("slogdet", matrices("slogdet", x, square=True)))
