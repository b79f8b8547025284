"""Linear algebra: solvers, determinants, norms. The decompositions are in `decompositions`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    mT = xp.matrix_transpose
    is_complex = xp.is_complex
    conj = xp.conjugate
    adjoint = xp.adjoint
    matmul = xp.matmul
    where = xp.where
    zero = xp.zeros_like

    def on_matrices(x: Any) -> Any:
        """A number per matrix, made to multiply the matrices."""
        return xp.expand_dims(x, (-2, -1))

    # solvers
    precise = partial(op, autocast="float32")
    standard = partial(precise, dtypes="floating", standard="linalg")

    standard("inv", "x", batch="leading", x=lambda g, out: -matmul(mT(out), matmul(g, mT(out))))

    def solve_y(g: Any, x: Any, y_shape: Any) -> Any:
        if len(y_shape) == 1:
            return xp.sum_to(xp.squeeze(xp.solve(mT(x), xp.expand_dims(g, (-1,))), (-1,)), y_shape)
        return xp.sum_to(xp.solve(mT(x), g), y_shape)

    def solve_x(g: Any, x: Any, out: Any, y_shape: Any) -> Any:
        if len(y_shape) == 1:
            g, out = xp.expand_dims(g, (-1,)), xp.expand_dims(out, (-1,))
        return xp.sum_to(-matmul(xp.solve(mT(x), g), mT(out)), x.shape)

    standard("solve", "x y", x=solve_x, y=solve_y)

    # Only the triangle that is named is read, and below ones on the diagonal (`unit`) that, too, is left out.
    def triangle(x: Any, lower: bool, unit: bool) -> Any:
        return xp.lower_triangle(x, int(unit)) if lower else mT(xp.lower_triangle(mT(x), int(unit)))

    def solve_triangular_x(g: Any, x: Any, out: Any, lower: bool, unit: bool) -> Any:
        back = xp.solve_triangular(mT(x), g, not lower, unit)
        return xp.sum_to(triangle(-matmul(back, mT(out)), lower, unit), x.shape)

    precise(
        "solve_triangular", "x y", "lower unit", batch="solve", expands="always",
        x=solve_triangular_x,
        y=lambda g, x, y_shape, lower, unit: xp.sum_to(xp.solve_triangular(mT(x), g, not lower, unit), y_shape),
    )  # fmt: skip

    def pinv_x(g: Any, x: Any, out: Any) -> Any:
        g = conj(g)
        out_h, g_h = adjoint(out), adjoint(g)
        left = matmul(g_h, out) - matmul(x, matmul(out, matmul(g_h, out)))  # (I - x out) g^H out
        right = matmul(out, g_h) - matmul(matmul(matmul(out, g_h), out), x)  # out g^H (I - out x)
        grad = matmul(left, out_h) + matmul(out_h, right) - matmul(out_h, matmul(g, out_h))
        return conj(grad)

    precise("pinv", "x", "rtol atol", batch="leading", x=pinv_x)
    precise("matrix_rank", "x", "rtol", batch="leading")

    def matrix_exp_x(g: Any, x: Any) -> Any:
        """The corner of the exponential of a matrix of twice the size, for a cotangent of about the size of one."""
        size = xp.max(xp.abs(g), (-2, -1), True)
        size = where(xp.equal(size, 0), xp.ones_like(size), size)
        upper = xp.concat([mT(x), g / size], -1)
        both = xp.matrix_exp(xp.concat([upper, xp.concat([zero(g), mT(x)], -1)], -2))
        n = x.shape[-1]
        return size * xp.getitem(both, (..., slice(0, n), slice(n, None)))

    precise("matrix_exp", "x", batch="leading", x=matrix_exp_x)

    # determinants
    standard("det", "x", batch="leading", x=lambda g, x: on_matrices(g) * xp.cofactor(x))
    precise("cofactor", "x", batch="leading", x=lambda g, x: xp.cofactor_product(g, x))

    def cofactor_product_x(g: Any, direction: Any, x: Any) -> Any:
        """The third derivative of det, applied to two matrices; for invertible x."""

        def inner(a: Any, b: Any) -> Any:
            return xp.sum(a * b, (-2, -1), True)

        b = mT(xp.inv(x))
        first = matmul(b, matmul(mT(g), b))
        second = matmul(b, matmul(mT(direction), b))
        s, t = inner(g, b), inner(direction, b)
        mixed = matmul(first, matmul(mT(direction), b)) + matmul(second, matmul(mT(g), b))
        total = (s * t - inner(g, second)) * b - t * first - s * second + mixed
        return on_matrices(xp.det(x)) * total

    precise(
        "cofactor_product", "direction x", batch="leading",
        direction=lambda g, x: xp.cofactor_product(g, x),
        x=cofactor_product_x,
    )  # fmt: skip

    def slogdet_x(g: Any, x: Any, sign: Any, logabsdet: Any) -> Any:
        g_sign, g_log = g
        factor: Any = zero(sign) if g_log is None else g_log
        if g_sign is not None and is_complex(x):  # the phase moves with the imaginary part
            factor = factor + 1j * xp.imag(g_sign * sign)
        # Where x is singular and nothing depends on it, the gradient is zero, else not a number.
        singular = on_matrices(xp.isinf(logabsdet))
        inverse = mT(xp.inv(where(singular, xp.identity_like(x), x)))
        lost = xp.logical_and(singular, on_matrices(xp.not_equal(factor, 0)))
        return on_matrices(factor) * where(lost, inverse * math.nan, inverse)

    standard("slogdet", "x", batch="leading", outputs="sign logabsdet", x=slogdet_x)

    # norms
    def vector_norm_x(g: Any, x: Any, out: Any, axis: Any, keepdims: bool, ord: Any) -> Any:
        if not keepdims and axis is not None:
            g, out = (xp.expand_dims(g, axis), xp.expand_dims(out, axis)) if axis else (g, out)
        if ord == 2:
            nothing = xp.equal(out, 0)
            # not g / out, which may be too small to have digits
            return where(nothing, zero(g), g) * (conj(x) / where(nothing, xp.ones_like(out), out))
        if ord == 0:
            return zero(x)
        size = xp.abs(x)
        if is_complex(x):
            direction = conj(x) / where(xp.equal(size, 0), xp.ones_like(size), size)
        else:
            direction = xp.sign(x)
        if ord == 1:
            return g * direction
        if math.isinf(ord):
            # Not compared with `out`: another loop over the same numbers may have rounded differently.
            found = xp.max(size, axis, True) if ord > 0 else xp.min(size, axis, True)
            extreme = xp.astype(xp.equal(size, found), size.dtype)
            return g * direction * (extreme / xp.sum(extreme, axis, True))
        nothing = xp.logical_or(xp.equal(size, 0), xp.equal(out, 0))
        ratio = where(nothing, xp.ones_like(size), size) / where(nothing, xp.ones_like(size), out + zero(size))
        return g * direction * where(nothing, zero(size), xp.pow(ratio, ord - 1))

    precise("vector_norm", "x", "axis keepdims ord", batch="reduction", masking=True, x=vector_norm_x)

    op(
        "cross", "x y", "axis", batch="aligned", linear="x y", standard="linalg",
        x=lambda g, y, x_shape, axis: xp.sum_to(xp.cross(y, g, axis), x_shape),
        y=lambda g, x, y_shape, axis: xp.sum_to(xp.cross(g, x, axis), y_shape),
    )  # fmt: skip
