"""Reading and writing parts of arrays."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    op(
        "getitem", "x", "index", linear="x",
        x=lambda g, x_shape, index: xp.index_add(xp.zeros(x_shape, g.dtype, g), g, index),
    )  # fmt: skip
    op(
        "setitem", "x value", "index", masking=True,
        x=lambda g, index: xp.setitem(g, 0, index),
        value=lambda g, value_shape, index: xp.sum_to(xp.getitem(g, index), value_shape),
    )  # fmt: skip
    op(
        "index_add", "x value", "index",
        x=lambda g: g,
        value=lambda g, value_shape, index: xp.sum_to(xp.getitem(g, index), value_shape),
    )  # fmt: skip
