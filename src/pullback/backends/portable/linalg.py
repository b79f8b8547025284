"""Portable kernels: linear algebra: decompositions, solvers, determinants."""

from __future__ import annotations

from typing import Any


def lower_triangle(xp: Any, x: Any, below: int) -> Any:
    """`x` with zeros above the diagonal (below=0), or on it too (below=1)."""
    rows, columns = x.shape[-2:]
    real = xp.real(x).dtype if xp.is_complex(x) else x.dtype
    i = xp.reshape(xp.arange(0, rows, 1, real, x), (rows, 1))
    j = xp.arange(0, columns, 1, real, x)
    return xp.where(xp.greater_equal(i, j + below), x, xp.zeros_like(x))


def identity_like(xp: Any, x: Any) -> Any:
    """Identity matrices of the shape and dtype of the square matrices `x`."""
    n = x.shape[-1]
    ones = xp.full((*x.shape[:-2], n), 1, x.dtype, x)
    return xp.place_diagonal(ones, x.shape, 0)


def cofactor(xp: Any, x: Any) -> Any:
    """Right where `x` is invertible."""
    factor = xp.expand_dims(xp.det(x), (-2, -1))
    return factor * xp.matrix_transpose(xp.inv(x))


def cofactor_product(xp: Any, g: Any, x: Any) -> Any:
    """Right where `x` is invertible."""
    inverse = xp.matrix_transpose(xp.inv(x))
    inside = xp.sum(g * inverse, (-2, -1), True) * inverse
    inside = inside - xp.matmul(inverse, xp.matmul(xp.matrix_transpose(g), inverse))
    return xp.expand_dims(xp.det(x), (-2, -1)) * inside
