"""Portable kernels: reductions and running totals."""

from __future__ import annotations

from typing import Any

from ..axis_slice import axis_slice


def shift(xp: Any, x: Any, axis: Any, offset: int) -> Any:
    """Move elements along an axis; zeros come in where nothing was."""
    return _shifted(xp, x, axis[0], offset, 0)


def _shifted(xp: Any, x: Any, axis: int, offset: int, coming_in: int) -> Any:
    length = x.shape[axis]
    lost = min(abs(offset), length)
    shape = list(x.shape)
    shape[axis] = lost
    new = xp.full(tuple(shape), coming_in, x.dtype, x)
    if offset >= 0:
        return xp.concat([new, xp.getitem(x, axis_slice(axis, None, length - lost))], axis)
    return xp.concat([xp.getitem(x, axis_slice(axis, lost, None)), new], axis)


def cumulative_prod(xp: Any, x: Any, axis: Any, reverse: bool = False, exclusive: bool = False) -> Any:
    """By doubling: a logarithmic number of products of whole arrays."""
    length, step = x.shape[axis[0]], 1
    direction = -1 if reverse else 1
    if exclusive:
        x = _shifted(xp, x, axis[0], direction, 1)
    while step < length:
        x = x * _shifted(xp, x, axis[0], direction * step, 1)
        step *= 2
    return x


def recurrence(xp: Any, x: Any, factor: Any, axis: Any, reverse: bool = False) -> Any:
    """out[i] = x[i] + factor[i] * out[i-1] along an axis, or from its end; by doubling.

    A product of factors may be beyond all numbers where what is multiplied by it is zero, and stays so.
    """
    length, step = x.shape[axis[0]], 1
    direction = -1 if reverse else 1
    while step < length:
        before, factor_before = (shift(xp, part, axis, direction * step) for part in (x, factor))
        moved = factor * before
        x = x + (moved if step == 1 else xp.where(before == 0, before, moved))
        if 2 * step < length:
            product = factor * factor_before
            is_none = (factor == 0) | (factor_before == 0)
            factor = product if step == 1 else xp.where(is_none, 0, product)
        step *= 2
    return x


def sum_of_squares(xp: Any, x: Any) -> Any:
    return xp.sum(x * x)
