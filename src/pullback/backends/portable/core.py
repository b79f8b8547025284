"""Portable kernels that the rules and the engine themselves use."""

from __future__ import annotations

from typing import Any


def sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes that broadcasting `shape` to `x.shape` added or stretched."""
    before, after = tuple(x.shape), tuple(shape)
    extra = len(before) - len(after)
    if before[extra:] == after:  # the common case: axes were only added
        return xp.sum(x, tuple(range(-len(before), -len(after))), False) if extra else x
    axes = tuple(i - len(before) for i, n in enumerate(before) if i < extra or (after[i - extra] == 1 and n != 1))
    if axes:
        x = xp.sum(x, axes, True)
    return x if tuple(x.shape) == after else xp.reshape(x, after)
