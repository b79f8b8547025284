"""Linear algebra: the `linalg` part of the array API standard, on stacks of matrices, with gradients.

Gradients of decompositions are right for functions that do not depend on what a decomposition leaves open: signs and
phases of vectors, bases of eigenspaces. At equal eigenvalues or singular values, and at singular values of zero, the
terms that would be infinite are left out.
"""

from __future__ import annotations

import math
from operator import index as _index
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from .autodiff import base
from .autodiff.apply import apply as _apply
from .autodiff.base import resolved as _resolved
from .autodiff.creation import asarray as _asarray
from .autodiff.tables import TENSORS as _TENSORS
from .errors import DtypeError as _DtypeError, ShapeError as _ShapeError
from .functions.axes import negative_axes as _negative_axes
from .functions.linear import diagonal, matmul, matrix_transpose, outer, tensordot, trace, vecdot
from .functions.manipulation import broadcast_shapes as _broadcast_shapes
from .operations import OPERATIONS as _OPERATIONS

if TYPE_CHECKING:
    from .tensors.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def _matrices(name: str, x: Any, square: bool = False) -> Tensor:
    x = _asarray(x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrix or a stack of square matrices" if square else "matrix or a stack of matrices"
        raise _ShapeError(f"{name}: expected a {kind}, got shape {x.shape}.")
    if x.dtype.kind not in ("float", "complex"):
        raise _DtypeError(
            f"{name}: expected floating-point or complex numbers, got {x.dtype.name}. Use `.astype(pb.float64)`."
        )
    return x


def _run(name: str, *inputs: Any, static: tuple[Any, ...] = ()) -> Any:
    return _apply(_OPERATIONS[name], inputs, static)


# -- solving -------------------------------------------------------------------------------------


def inv(x: Any, /) -> Tensor:
    """The inverse of a square matrix; a singular one raises `LinearAlgebraError`.

    >>> import pullback as pb
    >>> pb.linalg.inv(pb.asarray([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return _run("inv", _matrices("inv", x, square=True))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solution of x1 @ out = x2. `x2` is one vector (one axis) or matrices; a singular `x1` raises.

    >>> import pullback as pb
    >>> pb.linalg.solve(pb.asarray([[2.0, 0.0], [0.0, 4.0]]), pb.asarray([2.0, 2.0]))
    tensor([1. , 0.5])
    """
    x, y = _matrices("solve", x1, square=True), _asarray(x2)
    if y.ndim == 0 or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise _ShapeError(f"solve: matrices of shape {x.shape} do not fit right sides of shape {y.shape}.")
    if y.ndim > 1:
        _broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return _run("solve", x, y)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse; singular values up to `rtol` times the largest count as zero.

    Its gradient is the one along matrices of the same rank: at a matrix of lower rank the inverse jumps elsewhere.

    >>> import pullback as pb
    >>> pb.linalg.pinv(pb.asarray([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5, 0. ],
            [0. , 0. ]])
    """
    x = _matrices("pinv", x)
    return _run("pinv", x, static=(_tolerance(x, rtol),))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The number of singular values above `rtol` times the largest one.

    >>> import pullback as pb
    >>> pb.linalg.matrix_rank(pb.asarray([[1.0, 1.0], [1.0, 1.0]]))
    tensor(1)
    """
    x = _matrices("matrix_rank", x)
    return _run("matrix_rank", x, static=(_tolerance(x, rtol),))


def _tolerance(x: Tensor, rtol: Any) -> Any:
    if rtol is None:
        single = x.dtype.name in ("float32", "complex64")
        return max(x.shape[-2:]) * (2.0**-23 if single else 2.0**-52)
    return _resolved(rtol)._raw if isinstance(rtol, base.Tensor) else rtol


def matrix_power(x: Any, n: int, /) -> Tensor:
    """A square matrix multiplied by itself, `n` factors; the inverse's power for negative `n`.

    >>> import pullback as pb
    >>> pb.linalg.matrix_power(pb.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    x, count = _matrices("matrix_power", x, square=True), _index(n)
    if count == 0:
        return _TENSORS.identity_like(x)
    square = inv(x) if count < 0 else x
    count = abs(count)
    result: Tensor | None = None
    while True:
        if count % 2:
            result = square if result is None else matmul(result, square)
        count //= 2
        if not count:
            return result  # type: ignore[return-value]
        square = matmul(square, square)


# -- determinants and norms ----------------------------------------------------------------------


def det(x: Any, /) -> Tensor:
    """The determinant. First and second derivatives are right for singular matrices too.

    >>> import pullback as pb
    >>> pb.linalg.det(pb.asarray([[1.0, 0.0], [0.0, 3.0]]))
    tensor(3.)
    """
    return _run("det", _matrices("det", x, square=True))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign (or phase) of the determinant, and the logarithm of its absolute value; 0 and -inf for a singular matrix.

    >>> import pullback as pb
    >>> pb.linalg.slogdet(pb.asarray([[1.0, 0.0], [0.0, -1.0]]))
    SlogdetResult(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    return SlogdetResult(*_run("slogdet", _matrices("slogdet", x, square=True)))


def vector_norm(
    x: Any, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of vectors along one or more axes, or of all elements: sum(abs(x)**ord)**(1/ord).

    `ord` inf and -inf are the largest and the smallest absolute value, 0 counts what is not zero. The gradient at a
    zero vector is zero; elements that tie for the largest share it.

    >>> import pullback as pb
    >>> pb.linalg.vector_norm(pb.asarray([3.0, 4.0]))
    tensor(5.)
    """
    x = _asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        raise _DtypeError(f"vector_norm: expected floating-point or complex numbers, got {x.dtype.name}.")
    axes = None if axis is None else _negative_axes("vector_norm", axis, x.ndim)
    return _run("vector_norm", x, static=(axes, bool(keepdims), ord))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: "fro", "nuc", 1 and -1 (column sums), inf and -inf (row sums), 2 and -2 (singular values).

    >>> import pullback as pb
    >>> pb.linalg.matrix_norm(pb.asarray([[3.0, 0.0], [0.0, 4.0]]), ord="nuc")
    tensor(7.)
    """
    x = _matrices("matrix_norm", x)
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord == "nuc":
        result = _TENSORS.sum(svdvals(x), (-1,), False)
    elif ord in (2, -2):
        result = (_TENSORS.max if ord > 0 else _TENSORS.min)(svdvals(x), (-1,), False)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = _TENSORS.sum(_TENSORS.abs(x), (-2,) if abs(ord) == 1 else (-1,), False)
        result = (_TENSORS.max if ord > 0 else _TENSORS.min)(sums, (-1,), False)
    else:
        raise _ShapeError(f"matrix_norm: unknown ord {ord!r}; use 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    return _TENSORS.expand_dims(result, (-2, -1)) if keepdims else result


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis; the other axes are broadcast.

    >>> import pullback as pb
    >>> pb.linalg.cross(pb.asarray([1, 0, 0]), pb.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x, y = _asarray(x1), _asarray(x2)
    (position,) = _negative_axes("cross", axis, min(x.ndim, y.ndim) if axis < 0 else max(x.ndim, y.ndim))
    if min(x.ndim, y.ndim) < -position or x.shape[position] != 3 or y.shape[position] != 3:
        raise _ShapeError(f"cross: axis {axis} of shapes {x.shape} and {y.shape} must have size 3 in both.")
    return _run("cross", x, y, static=(position,))


# -- decompositions ------------------------------------------------------------------------------


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L L^H = x (or U with U^H U = x) of a positive-definite matrix; raises if it is none.

    >>> import pullback as pb
    >>> pb.linalg.cholesky(pb.asarray([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    lower = _run("cholesky", _matrices("cholesky", x, square=True))
    if not upper:
        return lower
    transposed = matrix_transpose(lower)
    return _TENSORS.conj(transposed) if transposed.dtype.kind == "complex" else transposed


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues in ascending order and orthonormal eigenvectors (as columns) of a symmetric or Hermitian matrix.

    >>> import pullback as pb
    >>> pb.linalg.eigh(pb.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return EighResult(*_run("eigh", _matrices("eigh", x, square=True)))


def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix in ascending order.

    >>> import pullback as pb
    >>> pb.linalg.eigvalsh(pb.asarray([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return _run("eigvalsh", _matrices("eigvalsh", x, square=True))


def eig(x: Any, /) -> EigResult:
    """Complex eigenvalues and eigenvectors (as columns of norm one) of a square matrix.

    >>> import pullback as pb
    >>> pb.linalg.eig(pb.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*_run("eig", _matrices("eig", x, square=True)))


def eigvals(x: Any, /) -> Tensor:
    """The complex eigenvalues of a square matrix.

    >>> import pullback as pb
    >>> pb.linalg.eigvals(pb.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return _run("eigvals", _matrices("eigvals", x, square=True))


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R with Q R = x; "complete" makes Q square.

    The gradient needs the first min(M, N) columns of `x` to be independent.

    >>> import pullback as pb
    >>> pb.abs(pb.linalg.qr(pb.asarray([[0.0, 2.0], [3.0, 0.0]])).R)
    tensor([[3., 0.],
            [0., 2.]])
    """
    if mode not in ("reduced", "complete"):
        raise _ShapeError(f'qr: mode must be "reduced" or "complete", got {mode!r}.')
    return QRResult(*_run("qr", _matrices("qr", x), static=(mode,)))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors (columns of U, rows of Vh) and singular values in descending order: U diag(S) Vh = x.

    >>> import pullback as pb
    >>> pb.linalg.svd(pb.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    return SVDResult(*_run("svd", _matrices("svd", x), static=(bool(full_matrices),)))


def svdvals(x: Any, /) -> Tensor:
    """The singular values in descending order.

    >>> import pullback as pb
    >>> pb.linalg.svdvals(pb.asarray([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    return _run("svdvals", _matrices("svdvals", x))
