"""Products with quantized constants, which are expanded when they are used: nothing else is kept of them."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    op(
        "quantized_matmul", "x", "weight transposed=False", linear="x", autocast="float32",
        x=lambda g, weight, transposed: xp.quantized_matmul(g, weight, not transposed),
    )  # fmt: skip
