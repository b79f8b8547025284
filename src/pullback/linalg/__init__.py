"""Linear algebra on stacks of matrices, with gradients: the `linalg` part of the array API standard, and what NumPy,
SciPy and PyTorch have beside it.

Gradients of decompositions are right for functions that do not depend on what a decomposition leaves open: signs and
phases of vectors, bases of eigenspaces. At equal eigenvalues or singular values, and at singular values of zero, the
terms that would be infinite are left out.
"""

import typing as _typing

from ..functions.linear import diagonal, matmul, matrix_transpose, outer, tensordot, trace, vecdot
from .decompositions import (
    EighResult,
    EigResult,
    LUResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu,
    qr,
    svd,
    svdvals,
)
from .determinants import SlogdetResult, det, slogdet
from .least_squares import LstsqResult, lstsq, matrix_rank, pinv
from .norms import matrix_norm, norm, vector_norm
from .products import cross, matrix_exp, matrix_power
from .solving import cholesky_solve, inv, solve, solve_triangular

__all__ = [
    "cholesky", "cholesky_solve", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "lu", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "norm", "outer",
    "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know the names without it

    def __getattr__(name: str) -> object:
        from ..pytorch_names import missing

        raise missing(__name__, name)


def __dir__() -> list[str]:
    return __all__
