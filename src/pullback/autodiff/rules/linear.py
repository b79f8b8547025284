"""Matrix products."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...operations import product_shape


def rules(xp: Any, op: Any) -> None:
    mT = xp.matrix_transpose
    conj = xp.conjugate
    rows = xp.rows

    def column(x: Any) -> Any:
        return xp.expand_dims(x, (-1,))

    def matmul_x(g: Any, y: Any, x_shape: Any) -> Any:
        """The gradient of x @ y for x, for matrices, vectors and broadcast stacks."""
        if len(y.shape) == 1:  # (..., n) @ (n,) -> (...)
            grad = xp.outer(g, y) if len(x_shape) > 1 else g * y
        elif len(x_shape) == 1:  # (n,) @ (..., n, m) -> (..., m)
            grad = xp.matmul(y, g) if len(y.shape) == 2 else xp.squeeze(xp.matmul(y, column(g)), (-1,))
        else:
            grad = xp.matmul(g, mT(y))
        return grad if grad.shape == x_shape else xp.sum_to(grad, x_shape)

    def matmul_y(g: Any, x: Any, y_shape: Any) -> Any:
        if len(x.shape) == 1:
            grad = xp.outer(x, g) if len(y_shape) > 1 else x * g
        elif len(y_shape) == 1:
            grad = xp.squeeze(xp.matmul(mT(x), column(g)), (-1,))
        elif len(y_shape) == 2 and math.prod(g.shape) and math.prod(x.shape):
            grad = xp.matmul(mT(rows(x)), rows(g))
        else:
            grad = xp.matmul(mT(x), g)
        return grad if grad.shape == y_shape else xp.sum_to(grad, y_shape)

    product = partial(op, linear="x y", dtypes="promoted", standard="main")
    product("matmul", "x y", autocast="half", shape=product_shape, x=matmul_x, y=matmul_y)

    def linear_weight(g: Any, x: Any, weight_shape: Any) -> Any:
        if len(x.shape) == 1:
            return xp.outer(g, x)
        if not math.prod(g.shape) or not math.prod(x.shape):
            return xp.zeros(weight_shape, g.dtype, g)
        return xp.matmul(mT(rows(g)), rows(x))

    op(
        "linear", "x weight bias", autocast="half", expands="always",
        x=lambda g, weight: xp.matmul(g, weight),
        weight=linear_weight,
        bias=lambda g, bias_shape: xp.sum_to(g, bias_shape),
    )  # fmt: skip
    product(
        "vecdot", "x y", "axis", batch="aligned", autocast="float32",
        x=lambda g, y, x_shape, axis: xp.sum_to(conj(xp.expand_dims(g, (axis,)) * y), x_shape),
        y=lambda g, x, y_shape, axis: xp.sum_to(xp.expand_dims(g, (axis,)) * conj(x), y_shape),
    )  # fmt: skip

    def tensordot_x(g: Any, y: Any, x_shape: Any, axes: Any) -> Any:
        return _tensordot_transposed(xp, g, y, len(x_shape), axes[0], axes[1], True)

    def tensordot_y(g: Any, x: Any, y_shape: Any, axes: Any) -> Any:
        return _tensordot_transposed(xp, g, x, len(y_shape), axes[1], axes[0], False)

    product("tensordot", "x y", "axes", autocast="half", expands="always", x=tensordot_x, y=tensordot_y)

    def einsum_xs(g: Any, xs: Any, subscripts: str, needs: Any) -> Any:
        inputs, output = subscripts.split("->")
        terms = inputs.split(",")
        gradients: list[Any] = [None] * len(terms)
        for i, wanted in enumerate(needs):
            if wanted:
                others = [j for j in range(len(terms)) if j != i]
                pattern = ",".join((output, *(terms[j] for j in others))) + "->" + terms[i]
                gradients[i] = xp.einsum([g, *(xs[j] for j in others)], pattern)
        return gradients

    op("einsum", "*xs", "subscripts", linear="xs", autocast="half", expands="always", xs=einsum_xs)

    op(
        "diagonal", "x", "offset", batch="leading", linear="x", masking=True, cheap=True, moves=True, standard="linalg",
        x=lambda g, x_shape, offset: xp.place_diagonal(g, x_shape, offset),
    )  # fmt: skip
    op("place_diagonal", "value", "shape offset", linear="value", value=lambda g, offset: xp.diagonal(g, offset))


def _tensordot_transposed(xp: Any, g: Any, other: Any, ndim: int, own_axes: Any, other_axes: Any, is_left: bool) -> Any:
    """The gradient of a tensordot for one factor: contract `g` with the other factor's free axes, restore the order."""
    other_ndim = len(other.shape)
    other_free = [a for a in range(-other_ndim, 0) if a not in other_axes]
    own_free = [a for a in range(-ndim, 0) if a not in own_axes]
    g_ndim = len(own_free) + len(other_free)
    g_axes = range(-len(other_free), 0) if is_left else range(-g_ndim, len(other_free) - g_ndim)
    product = xp.tensordot(g, other, (tuple(g_axes), tuple(other_free)))
    # Its axes are now our free ones, then the contracted ones in the other factor's order.
    partner = dict(zip(other_axes, own_axes))
    order = own_free + [partner[a] for a in range(-other_ndim, 0) if a in partner]
    return xp.permute_dims(product, tuple(order.index(a) - ndim for a in range(-ndim, 0))) if ndim > 1 else product
