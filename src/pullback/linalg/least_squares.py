"""Matrices of any rank: their inverses, their rank, and what comes closest to a solution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..autodiff import base
from ..autodiff.base import resolved
from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..functions.linear import matmul
from .arguments import matrices, numbers, run
from .decompositions import svd, svdvals

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


class LstsqResult(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def pinv(x: ArrayLike, /, *, rtol: Any = None, atol: float | None = None) -> Tensor:
    """The Moore-Penrose inverse, in which small singular values count as zero.

    At a matrix of lower rank the inverse jumps; its gradient there is the one along matrices of the same rank. Where
    singular values that are not zero are left out, it is the gradient of what is left.

    Parameters
    ----------
    x : array
        Floating-point or complex numbers of shape (..., M, N).
    rtol : float or array, optional
        Singular values up to `rtol` times the largest count as zero. Unless said (or `atol` is), the rounding of the
        dtype times the larger of M and N.
    atol : float, optional
        Singular values up to `atol` count as zero, too.

    Returns
    -------
    Tensor
        The inverses, of shape (..., N, M).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.pinv(pb.asarray([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    >>> pb.linalg.pinv(pb.asarray([[2.0, 0.0], [0.0, 0.1]]), atol=0.5)
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    x = matrices("pinv", x)
    if atol is not None and not (isinstance(atol, (int, float)) and atol >= 0):
        raise ShapeError(f"pinv: atol must be a number that is not negative, got {atol!r}.")
    bound, rounding = 0.0 if atol is None else float(atol), _tolerance(x, None)
    rtol = 0.0 if rtol is None and bound else _tolerance(x, rtol)
    is_number = isinstance(rtol, (int, float))
    if 0 in x.shape or (is_number and rtol <= rounding and not bound):
        return run("pinv", x, static=(rtol, bound))
    return run("pinv", _of_larger_values(x, rtol, bound), static=(max(rtol, rounding) if is_number else rtol, bound))


def _of_larger_values(x: Tensor, rtol: Any, atol: float) -> Tensor:
    """`x` without the parts that belong to small singular values: a projection, so that equal ones do no harm."""
    u, s, vh = svd(x, full_matrices=False)
    relative = rtol if isinstance(rtol, (int, float)) else TENSORS.expand_dims(asarray(rtol), (-1,))
    smallest = TENSORS.maximum(TENSORS.max(s, (-1,), True) * relative, atol)
    kept = TENSORS.greater(s, smallest)
    if x.shape[-2] < x.shape[-1]:
        left = TENSORS.where(TENSORS.expand_dims(kept, (-2,)), u, 0.0)
        return matmul(matmul(left, TENSORS.adjoint(left)), x)
    right = TENSORS.where(TENSORS.expand_dims(kept, (-1,)), vh, 0.0)
    return matmul(x, matmul(TENSORS.adjoint(right), right))


def lstsq(x1: ArrayLike, x2: ArrayLike, /, rcond: float | None = None) -> LstsqResult:
    """What comes closest to a solution of x1 @ out = x2: the sum of squares of the rest is least.

    If several do, the smallest of them. The gradient is right where `x1` has full rank; at lower rank it is the one
    along matrices of the same rank.

    Parameters
    ----------
    x1 : array
        Floating-point or complex numbers of shape (..., M, N).
    x2 : array
        The right sides: one vector (M,), or matrices (..., M, K), whose leading axes are broadcast.
    rcond : float, optional
        Singular values up to `rcond` times the largest count as zero; unless said, the rounding of the dtype times
        the larger of M and N.

    Returns
    -------
    LstsqResult
        `solution`, (N,) or (..., N, K); `residuals`, the sums of squares of the rest, (1,) or (..., K), and none
        unless M > N (NumPy leaves them out at lower rank, too); `rank` and `singular_values` of `x1`.

    Examples
    --------
    >>> import pullback as pb
    >>> line = pb.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> slope, start = pb.linalg.lstsq(line, pb.asarray([1.0, 3.0, 5.0])).solution
    >>> round(float(slope), 4), round(float(start), 4)
    (2.0, 1.0)
    """
    x, y = matrices("lstsq", x1), numbers("lstsq", x2)
    is_vector = y.ndim == 1
    if y.ndim == 0 or y.shape[-1 if is_vector else -2] != x.shape[-2]:
        raise ShapeError(f"lstsq: matrices of shape {x.shape} do not fit right sides of shape {y.shape}.")
    columns = TENSORS.expand_dims(y, (-1,)) if is_vector else y
    solution = matmul(pinv(x, rtol=rcond), columns)
    if x.shape[-2] > x.shape[-1]:
        rest = TENSORS.abs(columns - matmul(x, solution))
        residuals = TENSORS.sum(rest * rest, (-2,), False)
    else:
        residuals = TENSORS.abs(TENSORS.sum(solution, (-2,), False))[..., :0]
    if is_vector:
        solution = TENSORS.squeeze(solution, (-1,))
    return LstsqResult(solution, residuals, matrix_rank(x, rtol=rcond), svdvals(x))


def matrix_rank(x: ArrayLike, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above `rtol` times the largest one.

    >>> import pullback as pb
    >>> pb.linalg.matrix_rank(pb.asarray([[1.0, 1.0], [1.0, 1.0]]))
    tensor(1)
    """
    x = matrices("matrix_rank", x)
    return run("matrix_rank", x, static=(_tolerance(x, rtol),))


def _tolerance(x: Tensor, rtol: Any) -> Any:
    if rtol is None:
        single = x.dtype.name in ("float32", "complex64")
        return max(x.shape[-2:]) * (2.0**-23 if single else 2.0**-52)
    return resolved(rtol)._raw if isinstance(rtol, base.Tensor) else rtol
