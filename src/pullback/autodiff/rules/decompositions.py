"""Matrix decompositions.

The rules are written for gradients (the conjugates of cotangents), as the literature has them, so they conjugate at
entry and exit. They are right for functions of the factors that do not depend on what the decomposition leaves open
(signs, phases, bases of eigenspaces), and assume that a Hermitian input stays Hermitian. Where two eigenvalues or
singular values are equal to rounding, or a singular value is zero, the term that would be infinite is left out.
"""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    mT = xp.matrix_transpose
    matmul = xp.matmul
    where = xp.where

    def is_complex(x: Any) -> bool:
        return "complex" in str(x.dtype)

    def conj(x: Any) -> Any:
        return None if x is None else xp.conj(x) if is_complex(x) else x

    def adjoint(x: Any) -> Any:
        return conj(mT(x))

    def row(x: Any) -> Any:
        """Numbers that multiply the columns of matrices."""
        return xp.expand_dims(x, (-2,))

    def column(x: Any) -> Any:
        return xp.expand_dims(x, (-1,))

    def diagonal_matrix(x: Any) -> Any:
        return xp.place_diagonal(x, (*x.shape, x.shape[-1]), 0)

    def hermitian_part(x: Any) -> Any:
        return (x + adjoint(x)) / 2

    def reciprocal_gaps(values: Any, scale: Any) -> Any:
        """1 / (values[j] - values[i]), and 0 where the two are equal to rounding."""
        gaps = row(values) - column(values)
        equal = xp.less_equal(xp.abs(gaps), column(column(scale)) * _rounding(values))
        return where(equal, xp.zeros_like(gaps), 1 / where(equal, xp.ones_like(gaps), gaps))

    def largest(values: Any) -> Any:
        return xp.max(xp.abs(values), (-1,), False) if values.shape[-1] else xp.sum(xp.abs(values), (-1,), False)

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
            inside = matmul(adjoint(v), conj(g_v)) * reciprocal_gaps(w, largest(w))
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
            inside = (overlap - matmul(adjoint(v), v) * row(along)) * conj(reciprocal_gaps(w, largest(w)))
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
        first, rest = xp.split(q, (count, q.shape[-1] - count), -1)
        if g_q is None:
            return first, None
        g_first, g_rest = xp.split(g_q, (count, q.shape[-1] - count), -1)
        return first, g_first - matmul(rest, matmul(adjoint(g_rest), first))

    # Singular values: x = u diag(s) vh
    def svd_x(g: Any, u: Any, s: Any, vh: Any) -> Any:
        g_u, g_s, g_vh = g
        count = s.shape[-1]
        v, g_v = adjoint(vh), None if g_vh is None else mT(g_vh)
        u, g_u = fold_completion(u, conj(g_u), count)
        v, g_v = fold_completion(v, g_v, count)
        vh = adjoint(v)
        inside: Any = None if g_s is None else diagonal_matrix(g_s)
        if g_u is None and g_v is None:
            return conj(matmul(u, matmul(inside, vh)))
        top = largest(s)
        gaps = reciprocal_gaps(s, top) * reciprocal_sums(s, top)
        none = xp.less_equal(s, column(top) * _rounding(s))
        reciprocal = where(none, xp.zeros_like(s), 1 / where(none, xp.ones_like(s), s))
        total: Any = None

        def add(term: Any) -> None:
            nonlocal total
            total = term if total is None else total + term

        phase: Any = None
        if g_u is not None:
            overlap = matmul(adjoint(u), g_u)
            skew = overlap - adjoint(overlap)
            add(matmul(u, matmul(skew * gaps * row(s), vh)))
            add(matmul((g_u - matmul(u, overlap)) * row(reciprocal), vh))
            phase = xp.diagonal(skew, 0)
        if g_v is not None:
            overlap = matmul(adjoint(v), g_v)
            skew = overlap - adjoint(overlap)
            add(matmul(u, matmul(skew * gaps * column(s), vh)))
            add(matmul(u, adjoint((g_v - matmul(v, overlap)) * row(reciprocal))))
            phase = -xp.diagonal(skew, 0) if phase is None else phase - xp.diagonal(skew, 0)
        if is_complex(u):
            inside_phase = diagonal_matrix(phase * (reciprocal / 4))
            inside = inside_phase if inside is None else inside + inside_phase
        if inside is not None:
            add(matmul(u, matmul(inside, vh)))
        return conj(total)

    def reciprocal_sums(values: Any, scale: Any) -> Any:
        sums = row(values) + column(values)
        none = xp.less_equal(sums, column(column(scale)) * _rounding(values))
        return where(none, xp.zeros_like(sums), 1 / where(none, xp.ones_like(sums), sums))

    op("svd", "x", "full_matrices", outputs="u s vh", x=svd_x)

    def svdvals_x(g: Any, x: Any) -> Any:
        u, _, vh = xp.svd(x, False)
        return conj(matmul(u * row(g), vh))

    op("svdvals", "x", x=svdvals_x)

    # Orthogonal and triangular: x = q r
    def qr_x(g: Any, x: Any, q: Any, r: Any) -> Any:
        g_q, g_r = g
        rows, columns = x.shape[-2:]
        count = min(rows, columns)
        q, g_q = fold_completion(q, conj(g_q), count)
        if r.shape[-2] > count:
            extra = r.shape[-2] - count
            r = xp.split(r, (count, extra), -2)[0]
            g_r = None if g_r is None else xp.split(g_r, (count, extra), -2)[0]
        g_r = conj(g_r)
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
        triangular = None if g_r is None else matmul(g_r, adjoint(r))
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
    """How far apart, relative to the largest, two computed values can be that are equal."""
    single = str(x.dtype).endswith(("float32", "complex64"))
    return 8 * max(x.shape[-1], 1) * (1.2e-7 if single else 2.3e-16)
