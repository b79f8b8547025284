"""JAX's own solvers and decompositions beside those of the array API standard, as programs of it can hold them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .portable.linalg import exponential_of_scaled


def linear_algebra_kernels(xp: Any, joined: Any) -> dict[str, Any]:
    """Kernels by operation; `xp` has the others, `joined` makes one compiled call of a function."""

    def solve_triangular(x: Any, y: Any, lower: bool, unit: bool) -> Any:
        stack = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        dtype = jnp.promote_types(x.dtype, y.dtype)
        x, y = (jnp.broadcast_to(z, (*stack, *z.shape[-2:])).astype(dtype) for z in (x, y))
        return jax.lax.linalg.triangular_solve(x, y, left_side=True, lower=lower, unit_diagonal=unit)

    def lu(x: Any) -> Any:
        rows, columns = x.shape[-2:]
        count = min(rows, columns)
        if 0 in x.shape:
            order = jnp.broadcast_to(jnp.arange(rows), (*x.shape[:-2], rows))
            both = x
        else:
            both, _, order = jax.lax.linalg.lu(x)
        p = (order[..., None, :] == jnp.arange(rows)[:, None]).astype(x.dtype)
        l = jnp.tril(both[..., :count], -1) + jnp.eye(rows, count, dtype=x.dtype)
        return p, l, jnp.triu(both[..., :count, :])

    def matrix_exp(x: Any) -> Any:
        if 0 in x.shape:
            return x
        power, squarings = exponential_of_scaled(xp, x)

        def square(done: Any, power: Any) -> Any:
            return jnp.where(done < squarings, power @ power, power)

        return jax.lax.fori_loop(0, jnp.max(squarings).astype(int), square, power)

    def eigh(x: Any) -> Any:
        """Of what the lower triangle says; JAX's own takes the mean of both unless it is told."""
        w, v = jnp.linalg.eigh(x, UPLO="L", symmetrize_input=False)
        return w, v

    return {
        "eigh": eigh,
        "eigvalsh": lambda x: eigh(x)[0],
        "solve_triangular": joined(solve_triangular, (2, 3)),
        "matrix_exp": joined(matrix_exp, ()),
        "lu": joined(lu, ()),
    }
