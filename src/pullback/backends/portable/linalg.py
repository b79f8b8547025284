"""Portable kernels: linear algebra: decompositions, solvers, determinants."""

from __future__ import annotations

import math
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


def solve_triangular(xp: Any, x: Any, y: Any, lower: bool, unit: bool) -> Any:
    """Elimination finds nothing to do in an upper triangle, and exchanges no rows: what is left is substitution."""
    if lower:
        turned = solve_triangular(xp, xp.flip(x, (-2, -1)), xp.flip(y, (-2,)), False, unit)
        return xp.flip(turned, (-2,))
    x = xp.matrix_transpose(lower_triangle(xp, xp.matrix_transpose(x), int(unit)))
    return xp.solve(x + xp.identity_like(x) if unit else x, y)


def matrix_exp(xp: Any, x: Any) -> Any:
    """By scaling and squaring (Higham 2005); how often to square is read from the matrices."""
    if 0 in x.shape:
        return x
    power, squarings = exponential_of_scaled(xp, x)
    for done in range(int(xp.max(squarings))):
        power = xp.where(xp.less(done, squarings), xp.matmul(power, power), power)
    return power


def exponential_of_scaled(xp: Any, x: Any) -> tuple[Any, Any]:
    """The exponential of x / 2**n, for n so large that a Padé approximant of order 13 has it to all digits; and n."""
    size = xp.max(xp.sum(xp.abs(x), (-2,), True), (-1,), True)
    is_large = xp.logical_and(xp.greater(size, _PADE_BOUND), xp.isfinite(size))
    ratio = xp.where(is_large, size / _PADE_BOUND, xp.ones_like(size))
    squarings = xp.ceil(xp.log2(ratio))
    x = x * xp.pow(xp.full(squarings.shape, 0.5, squarings.dtype, squarings), squarings)
    b = _PADE
    one = xp.identity_like(x)
    x2 = xp.matmul(x, x)
    x4 = xp.matmul(x2, x2)
    x6 = xp.matmul(x2, x4)
    odd = xp.matmul(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    odd = xp.matmul(x, odd)
    even = xp.matmul(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    return xp.solve(even - odd, even + odd), squarings


_PADE_BOUND = 5.371920351148152  # of the norm
_PADE = tuple(
    math.factorial(26 - k) * math.factorial(13) / (math.factorial(26) * math.factorial(k) * math.factorial(13 - k))
    for k in range(14)
)
