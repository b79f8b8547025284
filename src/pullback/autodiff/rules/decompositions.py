"""Matrix decompositions.

The rules are written for gradients (the conjugates of cotangents), as the literature has them, so they conjugate at
entry and exit. They are right for functions of the factors that do not depend on what the decomposition leaves open
(signs, phases, bases of eigenspaces), and assume that a Hermitian input stays Hermitian. Where two eigenvalues or
singular values are equal to rounding, or a singular value is zero, the term that would be infinite is left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    op = partial(op, batch="leading", autocast="float32", dtypes="floating", standard="linalg")
    mT = xp.matrix_transpose
    is_complex = xp.is_complex
    conj = xp.conjugate
    adjoint = xp.adjoint
    matmul = xp.matmul
    where = xp.where

    def row(x: Any) -> Any:
        """Numbers that multiply the columns of matrices."""
        return xp.expand_dims(x, (-2,))

    def column(x: Any) -> Any:
        return xp.expand_dims(x, (-1,))

    def diagonal_matrix(x: Any) -> Any:
        return xp.place_diagonal(x, (*x.shape, x.shape[-1]), 0)

    def hermitian_part(x: Any) -> Any:
        return (x + adjoint(x)) / 2

    def reciprocal(x: Any, values: Any) -> Any:
        """1 / x, and 0 where that is nothing but rounding of `values`."""
        size = xp.sum(xp.abs(values), (-1,), True)
        size = column(size) if len(x.shape) > len(values.shape) else size
        none = xp.less_equal(xp.abs(x), size * _rounding(x))
        return where(none, xp.zeros_like(x), 1 / where(none, xp.ones_like(x), x))

    def gaps(values: Any) -> Any:
        """values[j] - values[i]"""
        return row(values) - column(values)

    # Cholesky: x = out out^H
    def cholesky_x(g: Any, out: Any) -> Any:
        g = conj(g)
        inside = xp.lower_triangle(matmul(adjoint(out), g), 0)
        inside = (inside + xp.lower_triangle(inside, 1)) / 2  # half the diagonal
        half = xp.solve(adjoint(out), inside)
        return conj(hermitian_part(adjoint(xp.solve(adjoint(out), adjoint(half)))))

    op("cholesky", "x", x=cholesky_x)

    # Hermitian eigenvalues: x = v diag(w) v^H
    def eigh_x(g: Any, w: Any, v: Any) -> Any:
        g_w, g_v = g
        inside = None
        if g_v is not None:
            inside = matmul(adjoint(v), conj(g_v)) * reciprocal(gaps(w), w)
        if g_w is not None:
            inside = diagonal_matrix(g_w) if inside is None else inside + diagonal_matrix(g_w)
        return conj(hermitian_part(matmul(v, matmul(inside, adjoint(v)))))

    op("eigh", "x", outputs="w v", x=eigh_x)

    def eigvalsh_x(g: Any, x: Any) -> Any:
        _, v = xp.eigh(x)
        return conj(matmul(v * row(g), adjoint(v)))

    op("eigvalsh", "x", x=eigvalsh_x)

    # General eigenvalues: x v = v diag(w), columns of norm one
    def eig_x(g: Any, w: Any, v: Any, x_dtype: Any) -> Any:
        g_w, g_v = g
        inside = None
        if g_v is not None:
            g_v = conj(g_v)
            overlap = matmul(adjoint(v), g_v)
            along = xp.real(xp.diagonal(overlap, 0))
            inside = (overlap - matmul(adjoint(v), v) * row(along)) * conj(reciprocal(gaps(w), w))
        if g_w is not None:
            inside = diagonal_matrix(conj(g_w)) if inside is None else inside + diagonal_matrix(conj(g_w))
        return as_input(conj(xp.solve(adjoint(v), matmul(inside, adjoint(v)))), x_dtype)

    def as_input(g: Any, dtype: Any) -> Any:
        return g if "complex" in str(dtype) else xp.real(g)

    op("eig", "x", outputs="w v", x=eig_x)

    def eigvals_x(g: Any, x: Any) -> Any:
        _, v = xp.eig(x)
        return as_input(conj(xp.solve(adjoint(v), column(conj(g)) * adjoint(v))), x.dtype)

    op("eigvals", "x", x=eigvals_x)

    # Orthonormal columns that complete others to a basis move so that they stay orthogonal to these.
    def fold_completion(q: Any, g_q: Any, count: int) -> tuple[Any, Any]:
        """The first `count` columns of q, and a gradient for them alone that says the same as `g_q` for all."""
        if q.shape[-1] == count:
            return q, g_q
        left, right = (..., slice(0, count)), (..., slice(count, None))
        first = xp.getitem(q, left)
        if g_q is None:
            return first, None
        through = matmul(xp.getitem(q, right), matmul(adjoint(xp.getitem(g_q, right)), first))
        return first, xp.getitem(g_q, left) - through

    # Singular values: x = u diag(s) vh. What turns u and v together needs differences of singular values, what turns
    # them apart needs sums: so a function of u vh alone is right where singular values are equal.
    def svd_x(g: Any, u: Any, s: Any, vh: Any) -> Any:
        g_u, g_s, g_vh = g
        count = s.shape[-1]
        u, g_u = fold_completion(u, None if g_u is None else conj(g_u), count)
        v, g_v = fold_completion(adjoint(vh), None if g_vh is None else mT(g_vh), count)
        vh = adjoint(v)
        inside: Any = None if g_s is None else diagonal_matrix(g_s)
        outside: Any = None
        if g_u is not None:
            overlap = matmul(adjoint(u), g_u)
            skew = (overlap - adjoint(overlap)) / 2
            turn = skew * (reciprocal(gaps(s), s) + reciprocal(row(s) + column(s), s))
            inside = turn if inside is None else inside + turn
            outside = matmul((g_u - matmul(u, overlap)) * row(reciprocal(s, s)), vh)
        if g_v is not None:
            overlap = matmul(adjoint(v), g_v)
            skew = (overlap - adjoint(overlap)) / 2
            turn = skew * (reciprocal(gaps(s), s) - reciprocal(row(s) + column(s), s))
            inside = turn if inside is None else inside + turn
            beyond = matmul(u, adjoint((g_v - matmul(v, overlap)) * row(reciprocal(s, s))))
            outside = beyond if outside is None else outside + beyond
        total = matmul(u, matmul(inside, vh))
        return conj(total if outside is None else total + outside)

    op("svd", "x", "full_matrices", outputs="u s vh", x=svd_x)

    def svdvals_x(g: Any, x: Any) -> Any:
        u, _, vh = xp.svd(x, False)
        return conj(matmul(u * row(g), vh))

    op("svdvals", "x", x=svdvals_x)

    # Elimination with pivots: x = p l u. Nothing in it is conjugated, nor is its rule. What l has below its square part
    # and u to the right of it follow from that part.
    def lu_x(g: Any, x: Any, p: Any, l: Any, u: Any) -> Any:
        _, g_l, g_u = g
        rows, columns = x.shape[-2:]
        count = min(rows, columns)
        first, rest = slice(0, count), slice(count, None)
        whole = slice(None)
        square_l, square_u = xp.getitem(l, (..., first, whole)), xp.getitem(u, (..., whole, first))
        left: Any = None if g_l is None else matmul(mT(square_l), xp.getitem(g_l, (..., first, whole)))
        right: Any = None if g_u is None else matmul(xp.getitem(g_u, (..., whole, first)), mT(square_u))
        if g_l is not None and rows > count:
            below = xp.getitem(g_l, (..., rest, whole))
            through = matmul(mT(xp.getitem(l, (..., rest, whole))), below)
            right = -through if right is None else right - through
        if g_u is not None and columns > count:
            beside = xp.getitem(g_u, (..., whole, rest))
            through = matmul(beside, mT(xp.getitem(u, (..., whole, rest))))
            left = -through if left is None else left - through
        inside: Any = None if left is None else xp.lower_triangle(left, 1)
        if right is not None:
            upper = mT(xp.lower_triangle(mT(right), 0))
            inside = upper if inside is None else inside + upper
        total = from_right(square_u, xp.solve_triangular(mT(square_l), inside, False, True))
        if rows > count:
            missing = xp.zeros((*x.shape[:-2], rows - count, count), total.dtype, total)
            total = xp.concat([total, missing if g_l is None else from_right(square_u, below)], -2)
        elif columns > count:
            missing = xp.zeros((*x.shape[:-2], count, columns - count), total.dtype, total)
            more = missing if g_u is None else xp.solve_triangular(mT(square_l), beside, False, True)
            total = xp.concat([total, more], -1)
        return matmul(p, total)

    def from_right(upper: Any, y: Any) -> Any:
        """y times the inverse of the transpose of `upper`"""
        return mT(xp.solve_triangular(upper, mT(y), False, False))

    op("lu", "x", outputs="p l u", standard="", x=lu_x)

    # Orthogonal and triangular: x = q r
    def qr_x(g: Any, x: Any, q: Any, r: Any) -> Any:
        g_q, g_r = g
        rows, columns = x.shape[-2:]
        count = min(rows, columns)
        q, g_q = fold_completion(q, None if g_q is None else conj(g_q), count)
        top = (..., slice(0, count), slice(None))
        r = xp.getitem(r, top)
        g_r = None if g_r is None else conj(xp.getitem(g_r, top))
        if rows >= columns:
            return conj(qr_tall(g_q, g_r, q, r))
        sizes = (rows, columns - rows)
        r, _ = xp.split(r, sizes, -1)
        if g_r is None:
            g_wide = None
        else:  # the columns on the right are q times those of r
            g_r, g_right = xp.split(g_r, sizes, -1)
            g_wide = matmul(q, g_right)
            through = matmul(xp.split(x, sizes, -1)[1], adjoint(g_right))
            g_q = through if g_q is None else g_q + through
        g_square = qr_tall(g_q, g_r, q, r)
        if g_wide is None:
            g_wide = xp.zeros((*x.shape[:-1], columns - rows), g_square.dtype, g_square)
        return conj(xp.concat([g_square, g_wide], -1))

    def qr_tall(g_q: Any, g_r: Any, q: Any, r: Any) -> Any:
        triangular: Any = None if g_r is None else matmul(g_r, adjoint(r))
        turning: Any = None
        outside: Any = None
        if g_q is not None:
            overlap = matmul(adjoint(q), g_q)
            outside = g_q - matmul(q, overlap)
            turning = overlap if triangular is None else overlap - triangular
        else:
            turning = -triangular
        inside = xp.lower_triangle(turning - adjoint(turning), 1)
        if is_complex(q):
            inside = inside + diagonal_matrix(1j * xp.imag(xp.diagonal(turning, 0)))
        if triangular is not None:
            inside = inside + triangular
        total = matmul(q, inside)
        if outside is not None:
            total = total + outside
        return adjoint(xp.solve(r, adjoint(total)))

    op("qr", "x", "mode", outputs="q r", x=qr_x)


def _rounding(x: Any) -> float:
    """How far apart, relative to all of them, two computed values can be that are equal."""
    return 8 * (1.2e-7 if str(x.dtype).endswith(("float32", "complex64")) else 2.3e-16)
