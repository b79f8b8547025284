"""Reductions. `axis` is None or a tuple of negative integers."""

from __future__ import annotations

import math
from typing import Any


def rules(xp: Any, op: Any) -> None:
    def spread(g: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        """Repeat a reduction's cotangent along the axes that were reduced."""
        if not keepdims and axis is not None and len(axis) < len(shape):
            g = xp.expand_dims(g, axis)
        return xp.broadcast_to(g, shape)

    def count(shape: Any, axis: Any) -> int:
        return math.prod(shape) if axis is None else math.prod(shape[a] for a in axis)

    op(
        "sum", "x", "axis=None keepdims=False", linear="x",
        x=lambda g, x_shape, axis, keepdims: spread(g, x_shape, axis, keepdims),
    )  # fmt: skip
    op(
        "mean", "x", "axis=None keepdims=False", linear="x",
        x=lambda g, x_shape, axis, keepdims: spread(g / count(x_shape, axis), x_shape, axis, keepdims),
    )  # fmt: skip
