"""Matrix products."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    mT = xp.matrix_transpose

    def matmul_x(g: Any, y: Any, x_shape: Any) -> Any:
        """The gradient of x @ y for x, for matrices, vectors and broadcast stacks."""
        if y.ndim == 1:  # (..., n) @ (n,) -> (...)
            grad = xp.expand_dims(g, (-1,)) * y
        elif len(x_shape) == 1:  # (n,) @ (..., n, m) -> (..., m)
            grad = xp.matmul(y, xp.expand_dims(g, (-1,)))[..., 0]
        else:
            grad = xp.matmul(g, mT(y))
        return grad if grad.shape == x_shape else xp.sum_to(grad, x_shape)

    def matmul_y(g: Any, x: Any, y_shape: Any) -> Any:
        if x.ndim == 1:
            grad = xp.expand_dims(x, (-1,)) * xp.expand_dims(g, (-2,)) if len(y_shape) > 1 else x * g
        elif len(y_shape) == 1:
            grad = xp.matmul(mT(x), xp.expand_dims(g, (-1,)))[..., 0]
        else:
            grad = xp.matmul(mT(x), g)
        return grad if grad.shape == y_shape else xp.sum_to(grad, y_shape)

    op("matmul", "x y", linear="x y", x=matmul_x, y=matmul_y)
