"""Products with packed weights, which are constants and expanded again for the gradient: their parts alone are kept."""

from __future__ import annotations

from typing import Any

from ...backends.portable.core import raw_dtype
from ...backends.portable.packed import Packed, expanded


def rules(xp: Any, op: Any) -> None:
    def packed_linear_xs(g: Any, xs: Any, form: Any, needs: Any) -> list[Any]:
        x, _, *parts = xs
        grad_x = xp.matmul(g, expanded(xp, Packed(tuple(parts), form), raw_dtype(x))) if needs[0] else None
        grad_bias = xp.sum(g, tuple(range(-len(g.shape), -1)), False) if needs[1] else None
        return [grad_x, grad_bias, *[None] * len(parts)]

    # x, the bias or None, and the parts of the weight
    op(
        "packed_linear", "*xs", "form", autocast="half", converts=lambda form: 2, real=True, expands="always",
        xs=packed_linear_xs,
    )  # fmt: skip
