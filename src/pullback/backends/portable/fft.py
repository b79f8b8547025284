"""Portable kernels: discrete Fourier transforms."""

from __future__ import annotations

from typing import Any


def weigh_middle(xp: Any, x: Any, n: int, axis: int, weight: float) -> Any:
    """Half a spectrum of length n // 2 + 1 with all frequencies that stand for two multiplied by `weight`."""
    sizes = (1, (n - 1) // 2, 1 - n % 2)
    first, middle, last = xp.split(x, sizes, axis)
    return xp.concat([first, middle * weight, last], axis)
