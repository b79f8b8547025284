"""Portable kernels: matrix products."""

from __future__ import annotations

import math
from typing import Any


def linear(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    out = xp.matmul(x, xp.matrix_transpose(weight))
    return out if bias is None else out + bias


def rows(xp: Any, x: Any) -> Any:
    """Stacked rows as one matrix, so that a sum over the stack is part of one product."""
    return xp.reshape(x, (-1, x.shape[-1])) if len(x.shape) > 2 and math.prod(x.shape) else x


def conjugate(xp: Any, x: Any) -> Any:
    """`conj`, which costs nothing for real numbers."""
    return xp.conj(x) if xp.is_complex(x) else x


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
