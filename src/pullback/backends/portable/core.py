"""Portable kernels that the rules and the engine themselves use."""

from __future__ import annotations

from typing import Any


def sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes that broadcasting `shape` to `x.shape` added or stretched."""
    extra = len(x.shape) - len(shape)
    axes = tuple(
        i - len(x.shape) for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1)
    )
    if axes:
        x = xp.sum(x, axes, True)
    return xp.reshape(x, shape) if tuple(x.shape) != tuple(shape) else x
