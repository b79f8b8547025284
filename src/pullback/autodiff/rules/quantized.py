"""Products with quantized constants, which are expanded when they are used, and gradients past rounding."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    op(
        "quantized_matmul", "x", "weight transposed=False", batch="first", linear="x", autocast="float32",
        x=lambda g, weight, transposed: xp.quantized_matmul(g, weight, not transposed),
    )  # fmt: skip

    # value, whose gradient goes to x as if it were x; nothing is kept
    op("straight_through", "x value", batch="leading", cheap=True, expands="always", x=lambda g: g)
