"""Matrix decompositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from ..functions.linear import matrix_transpose
from .arguments import matrices, run

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class LUResult(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L L^H = x of a positive-definite matrix; raises if it is none.

    With `upper` it is U with U^H U = x.

    Parameters
    ----------
    x : array
        Symmetric or Hermitian positive-definite matrices (..., N, N).
    upper : bool
        Whether to give U with U^H U = x, rather than L.

    Returns
    -------
    Tensor
        (..., N, N), with zeros in the other triangle.

    Raises
    ------
    LinearAlgebraError
        If a matrix is not positive definite.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.cholesky(pb.asarray([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    lower = run("cholesky", matrices("cholesky", x, square=True))
    if not upper:
        return lower
    transposed = matrix_transpose(lower)
    return TENSORS.conj(transposed) if transposed.dtype.kind == "complex" else transposed


def eigh(x: ArrayLike, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues in ascending order and orthonormal eigenvectors of a symmetric or Hermitian matrix.

    Parameters
    ----------
    x : array
        Floating-point or complex numbers of shape (..., N, N).
    UPLO : {"L", "U"}
        Which triangle is read, "L" for the lower and "U" for the upper one: the other one counts as its mirror image.
        Gradients are those of a matrix that stays Hermitian.

    Returns
    -------
    EighResult
        `eigenvalues`, (..., N), and `eigenvectors`, the columns of (..., N, N).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eigh(pb.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return EighResult(*run("eigh", _with_lower("eigh", x, UPLO)))


def eigvalsh(x: ArrayLike, /, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix in ascending order; of its `UPLO` triangle, as of `eigh`.

    >>> import pullback as pb
    >>> pb.linalg.eigvalsh(pb.asarray([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return run("eigvalsh", _with_lower("eigvalsh", x, UPLO))


def _with_lower(name: str, x: Any, UPLO: str) -> Tensor:
    """The Hermitian matrix of which the triangle `UPLO` is given, with that triangle below the diagonal."""
    x = matrices(name, x, square=True)
    if UPLO in ("L", "l"):
        return x
    if UPLO not in ("U", "u"):
        raise ShapeError(f'{name}: UPLO must be "L" or "U", got {UPLO!r}.')
    return TENSORS.adjoint(x)


def eig(x: ArrayLike, /) -> EigResult:
    """Complex eigenvalues and eigenvectors (as columns of norm one) of a square matrix.

    Parameters
    ----------
    x : array
        (..., N, N).

    Returns
    -------
    EigResult
        `eigenvalues` (..., N) and `eigenvectors` (..., N, N), both complex, also as a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eig(pb.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*run("eig", matrices("eig", x, square=True)))


def eigvals(x: ArrayLike, /) -> Tensor:
    """The complex eigenvalues of a square matrix.

    >>> import pullback as pb
    >>> pb.linalg.eigvals(pb.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return run("eigvals", matrices("eigvals", x, square=True))


def lu(x: ArrayLike, /) -> LUResult:
    """P, L and U with P @ L @ U = x: a permutation, and a lower and an upper triangle, by elimination with pivots.

    Parameters
    ----------
    x : array
        Floating-point or complex numbers of shape (..., M, N).

    Returns
    -------
    LUResult
        `P`, (..., M, M), has no gradient; `L`, (..., M, K), has ones on its diagonal; `U`, (..., K, N); K is the
        smaller of M and N. The gradient needs the first K columns of `x` to be independent.

    Examples
    --------
    >>> import pullback as pb
    >>> p, l, u = pb.linalg.lu(pb.asarray([[0.0, 2.0], [4.0, 2.0]]))
    >>> p
    tensor([[0., 1.],
            [1., 0.]])
    >>> u
    tensor([[4., 2.],
            [0., 2.]])
    """
    p, l, u = run("lu", matrices("lu", x))
    return LUResult(p.detach(), l, u)


def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R with Q R = x.

    The `mode` is "reduced", or "complete", which makes Q square.

    The gradient needs the first min(M, N) columns of `x` to be independent.

    Parameters
    ----------
    x : array
        (..., M, N).
    mode : str
        "reduced" gives Q (..., M, K) and R (..., K, N), K the smaller of M and N; "complete" gives Q (..., M, M).

    Returns
    -------
    QRResult
        `Q` and `R`, also as a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.abs(pb.linalg.qr(pb.asarray([[0.0, 2.0], [3.0, 0.0]])).R)
    tensor([[3., 0.],
            [0., 2.]])
    """
    if mode not in ("reduced", "complete"):
        raise ShapeError(f'qr: mode must be "reduced" or "complete", got {mode!r}.')
    return QRResult(*run("qr", matrices("qr", x), static=(mode,)))


def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors (columns of U, rows of Vh) and singular values in descending order: U diag(S) Vh = x.

    Parameters
    ----------
    x : array
        (..., M, N).
    full_matrices : bool
        Whether U is (..., M, M) and Vh (..., N, N). Otherwise they have K columns and rows, K the smaller of M and
        N.

    Returns
    -------
    SVDResult
        `U`, `S` (..., K) and `Vh`, also as a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.svd(pb.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    return SVDResult(*run("svd", matrices("svd", x), static=(bool(full_matrices),)))


def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values of a matrix in descending order.

    >>> import pullback as pb
    >>> pb.linalg.svdvals(pb.asarray([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    return run("svdvals", matrices("svdvals", x))
