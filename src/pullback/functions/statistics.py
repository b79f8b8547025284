"""Statistics of several variables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Never

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from .linear import matmul, matrix_transpose
from .manipulation import concat

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["cov"]


@hide_others
def cov(
    x: Any,
    y: ArrayLike | None = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
    **other: Never,
) -> Tensor:
    """The covariances of variables, as NumPy's `cov` gives them.

    Parameters
    ----------
    x : array
        One variable, (N,), or several, (variables, N): one per row, with an observation in each column.
    y : array, optional
        Further variables of as many observations.
    rowvar : bool
        Whether rows are variables; if not, columns are.
    bias : bool
        Whether to divide by N rather than by N - 1.
    ddof : float, optional
        What to divide by, said in another way: N - `ddof`.
    fweights : array of int, optional
        How often each observation was made: N integers.
    aweights : array, optional
        How much each observation counts: N numbers.

    Returns
    -------
    Tensor
        The symmetric (or Hermitian) matrix (variables, variables); a single number for one variable. Not a number
        where there are too few observations.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cov(pb.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if other:
        raise unexpected("cov", other)
    rows = _rows_of(x, rowvar)
    if y is not None:
        more = _rows_of(y, rowvar)
        if more.shape[-1] != rows.shape[-1]:
            raise ShapeError(
                f"cov: x has {rows.shape[-1]} observations (shape {asarray(x).shape}), y has {more.shape[-1]} (shape "
                f"{asarray(y).shape})."
            )
        rows = concat([rows, more])
    count = rows.shape[-1]
    correction = ddof if ddof is not None else 0 if bias else 1
    frequencies, importances = _weights("fweights", fweights, rows), _weights("aweights", aweights, rows)
    if frequencies is None and importances is None:
        centred = TENSORS.subtract(rows, TENSORS.mean(rows, (-1,), True))
        weighted, divisor = centred, count - correction if count > correction else math.nan
    else:
        weights: Any = frequencies if importances is None else importances
        if frequencies is not None and importances is not None:
            weights = TENSORS.multiply(frequencies, importances)
        total = TENSORS.sum(weights, None, False)
        total = TENSORS.where(TENSORS.equal(total, 0), math.nan, total)
        centred = TENSORS.subtract(rows, TENSORS.sum(rows * weights, (-1,), True) / total)
        spread = 1.0 if importances is None else TENSORS.sum(weights * importances, None, False) / total
        divisor = total - correction * spread
        weighted, divisor = centred * weights, TENSORS.where(TENSORS.greater(divisor, 0), divisor, math.nan)
    transposed = matrix_transpose(TENSORS.conjugate(centred))
    product = TENSORS.divide(matmul(weighted, transposed), divisor)
    return TENSORS.reshape(product, ()) if product.shape == (1, 1) else product


def _rows_of(x: Any, rowvar: bool) -> Tensor:
    """Variables as the rows of a matrix."""
    x = asarray(x)
    if x.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"cov: expected floating-point or complex numbers, got {x.dtype.name}.")
    if x.ndim > 2:
        raise ShapeError(f"cov: expected a vector or a matrix, got shape {x.shape}.")
    if x.ndim < 2:
        return TENSORS.reshape(x, (1, x.size))
    return x if rowvar or x.shape[0] == 1 else matrix_transpose(x)


def _weights(name: str, weights: Any, rows: Tensor) -> Tensor | None:
    if weights is None:
        return None
    weights = asarray(weights)
    if weights.shape != rows.shape[-1:]:
        raise ShapeError(
            f"cov: {name} has shape {weights.shape}; expected {rows.shape[-1:]}, a number for each observation."
        )
    if weights.dtype.kind in ("float", "complex"):
        return weights
    return TENSORS.astype(weights, TENSORS.real(rows)._raw.dtype)
