"""Solving systems of linear equations: square ones, triangular ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..functions.linear import matrix_transpose
from ..functions.manipulation import broadcast_shapes
from .arguments import matrices, numbers, run

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


def inv(x: ArrayLike, /) -> Tensor:
    """The inverse of a square matrix.

    Parameters
    ----------
    x : array
        (..., N, N).

    Returns
    -------
    Tensor
        (..., N, N).

    Raises
    ------
    LinearAlgebraError
        If a matrix is singular.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.inv(pb.asarray([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return run("inv", matrices("inv", x, square=True))


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The solution of x1 @ out = x2.

    Parameters
    ----------
    x1 : array
        Square matrices (..., N, N).
    x2 : array
        The right sides: one vector (N,), or matrices (..., N, K), whose leading axes are broadcast.

    Returns
    -------
    Tensor
        Of the shape of `x2`, with the leading axes of both.

    Raises
    ------
    LinearAlgebraError
        If `x1` is singular.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.solve(pb.asarray([[2.0, 0.0], [0.0, 4.0]]), pb.asarray([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    x, y = matrices("solve", x1, square=True), asarray(x2)
    if y.ndim == 0 or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise ShapeError(f"solve: matrices of shape {x.shape} do not fit right sides of shape {y.shape}.")
    if y.ndim > 1:
        broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return run("solve", x, y)


_TRANSPOSED = {0: "N", "N": "N", 1: "T", "T": "T", 2: "C", "C": "C"}


def solve_triangular(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    lower: bool | None = None,
    upper: bool | None = None,
    trans: int | str = 0,
    unit_diagonal: bool = False,
) -> Tensor:
    """The solution of x1 @ out = x2 for a triangular `x1`, of which only that triangle is read.

    Parameters
    ----------
    x1 : array
        Square matrices, of shape (..., N, N).
    x2 : array
        The right sides: one vector (N,), or matrices (..., N, K), whose leading axes are broadcast.
    lower, upper : bool, optional
        Which triangle `x1` is: `lower=True` (as SciPy has it) is `upper=False` (as PyTorch has it). The upper one
        unless said.
    trans : {0, 1, 2, "N", "T", "C"}
        0 or "N" for x1 @ out = x2, 1 or "T" for x1.mT @ out = x2, 2 or "C" for the conjugate transpose.
    unit_diagonal : bool
        Whether the diagonal counts as ones, whatever is there.

    Returns
    -------
    Tensor
        The solution, of the shape of `x2` with the leading axes of both. NumPy raises `LinearAlgebraError` for a
        zero on the diagonal, other libraries divide by it.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.solve_triangular(pb.asarray([[2.0, 0.0], [1.0, 4.0]]), pb.asarray([2.0, 5.0]), lower=True)
    tensor([1., 1.])
    """
    x, y = matrices("solve_triangular", x1, square=True), numbers("solve_triangular", x2)
    if lower is not None and upper is not None and lower == upper:
        raise ShapeError(f"solve_triangular: lower={lower} and upper={upper} exclude each other; give one of the two.")
    kind = _TRANSPOSED.get(trans)
    if kind is None:
        raise ShapeError(f'solve_triangular: trans must be 0, 1, 2, "N", "T" or "C", got {trans!r}.')
    is_lower = bool(lower) if lower is not None else upper is not None and not upper
    if kind != "N":
        x, is_lower = matrix_transpose(x), not is_lower
    if kind == "C" and x.dtype.kind == "complex":
        x = TENSORS.conj(x)
    return _substituted("solve_triangular", x, y, is_lower, bool(unit_diagonal))


def _substituted(name: str, x: Tensor, y: Tensor, lower: bool, unit: bool) -> Tensor:
    """Forward or backward substitution, after a look at the shapes."""
    if y.ndim == 0 or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise ShapeError(f"{name}: matrices of shape {x.shape} do not fit right sides of shape {y.shape}.")
    if y.ndim == 1:
        return TENSORS.squeeze(run("solve_triangular", x, TENSORS.expand_dims(y, (-1,)), static=(lower, unit)), (-1,))
    broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return run("solve_triangular", x, y, static=(lower, unit))


def cholesky_solve(x1: ArrayLike, x2: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The solution of A @ out = x1 for a positive-definite A = x2 @ x2^H, whose triangular factor `x2` is given.

    Parameters
    ----------
    x1 : array
        The right sides: one vector (N,), or matrices (..., N, K). They come first, as in PyTorch.
    x2 : array
        What `cholesky` made of A, of shape (..., N, N).
    upper : bool
        Whether that is the upper factor: A = x2^H @ x2.

    Returns
    -------
    Tensor
        The solution, of the shape of `x1` with the leading axes of both.

    Examples
    --------
    >>> import pullback as pb
    >>> factor = pb.linalg.cholesky(pb.asarray([[4.0, 2.0], [2.0, 2.0]]))
    >>> pb.linalg.cholesky_solve(pb.asarray([6.0, 4.0]), factor)
    tensor([1., 1.])
    """
    y, factor = numbers("cholesky_solve", x1), matrices("cholesky_solve", x2, square=True)
    adjoint = matrix_transpose(factor)
    if adjoint.dtype.kind == "complex":
        adjoint = TENSORS.conj(adjoint)
    first, second = (adjoint, factor) if upper else (factor, adjoint)
    half = _substituted("cholesky_solve", first, y, True, False)
    return _substituted("cholesky_solve", second, half, False, False)
