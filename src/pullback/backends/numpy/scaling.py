"""Sums of squares that overflow or vanish: computed again in units of a power of two near the largest element.

Kernels compute as usual and look at their result, which is small; only where it tells of an overflow is any of this
called.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np


def unit_of(x: Any, axis: Any) -> Any:
    """A power of two near the largest absolute value along `axis`, which is kept; 1 where that is zero or infinite."""
    largest = np.maximum.reduce(np.abs(x), axis, keepdims=True, initial=0)
    usable = np.isfinite(largest) & (largest > 0)
    exponent = np.frexp(np.where(usable, largest, 1))[1] - 1
    return np.where(usable, np.ldexp(np.ones_like(largest), exponent), np.ones_like(largest))


def all_between(values: Any, low: float) -> bool:
    """Whether all values are finite and above `low`."""
    return bool(
        values.size == 0 or (np.minimum.reduce(values, None) > low and np.maximum.reduce(values, None) < np.inf)
    )


@np.errstate(all="ignore")
def in_units(x: Any, axis: Any, keepdims: bool, statistic: Callable[[Any], Any], power: int) -> Any:
    """`statistic(x)`, which keeps the reduced axes and is of degree `power`, computed in units of each slice's own."""
    unit = unit_of(x, axis)
    result = statistic(x / unit)
    for _ in range(power):
        result = result * unit
    return result if keepdims else np.squeeze(result, tuple(range(x.ndim)) if axis is None else axis)
