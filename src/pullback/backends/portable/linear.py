"""Portable kernels: matrix products."""

from __future__ import annotations

from typing import Any


def linear(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    out = xp.matmul(x, xp.matrix_transpose(weight))
    return out if bias is None else out + bias


def outer(xp: Any, x: Any, y: Any) -> Any:
    """Every element along the last axis of one with every one of the other's: (..., n), (..., m) -> (..., n, m)."""
    return xp.expand_dims(x, (-1,)) * xp.expand_dims(y, (-2,))


def place_diagonal(xp: Any, value: Any, shape: tuple[int, ...], offset: int) -> Any:
    rows, columns = shape[-2:]
    count = value.shape[-1]
    above = max(-offset, 0)
    widths = ((0, 0),) * (len(value.shape) - 1) + ((above, rows - above - count),)
    spread = xp.expand_dims(xp.pad(value, widths, 0), (-1,))
    real = xp.real(value).dtype if xp.is_complex(value) else value.dtype
    i = xp.expand_dims(xp.arange(0, rows, 1, real, value), (-1,))
    j = xp.arange(0, columns, 1, real, value)
    return xp.where(xp.equal(j, i + offset), spread, xp.zeros_like(spread))
