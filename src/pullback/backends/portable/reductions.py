"""Portable kernels: reductions and running totals."""

from __future__ import annotations

from typing import Any


def _along(axis: Any, start: int | None, stop: int | None) -> Any:
    """The index of a stretch along one (negative) axis."""
    return (Ellipsis, slice(start, stop)) + (slice(None),) * (-axis[0] - 1)


def _constant(xp: Any, value: int, x: Any, axis: Any, length: int) -> Any:
    shape = list(x.shape)
    shape[axis[0]] = length
    return xp.full(tuple(shape), value, x.dtype, x)


def shift(xp: Any, x: Any, axis: Any, offset: int) -> Any:
    """Move elements along an axis; zeros come in where nothing was."""
    length = x.shape[axis[0]]
    empty = _constant(xp, 0, x, axis, min(abs(offset), length))
    if offset >= 0:
        return xp.concat([empty, xp.getitem(x, _along(axis, None, max(length - offset, 0)))], axis[0])
    return xp.concat([xp.getitem(x, _along(axis, min(-offset, length), None)), empty], axis[0])


def cumulative_prod(xp: Any, x: Any, axis: Any, reverse: bool = False, exclusive: bool = False) -> Any:
    """By doubling: a logarithmic number of products of whole arrays."""
    length, step = x.shape[axis[0]], 1
    direction = -1 if reverse else 1
    if exclusive:
        x = _shifted_with_ones(xp, x, axis, direction)
    while step < length:
        x = x * _shifted_with_ones(xp, x, axis, direction * step)
        step *= 2
    return x


def _shifted_with_ones(xp: Any, x: Any, axis: Any, offset: int) -> Any:
    length = x.shape[axis[0]]
    ones = _constant(xp, 1, x, axis, min(abs(offset), length))
    if offset >= 0:
        return xp.concat([ones, xp.getitem(x, _along(axis, None, max(length - offset, 0)))], axis[0])
    return xp.concat([xp.getitem(x, _along(axis, min(-offset, length), None)), ones], axis[0])


def recurrence(xp: Any, x: Any, factor: Any, axis: Any, reverse: bool = False) -> Any:
    """out[i] = x[i] + factor[i] * out[i-1] along an axis, or from its end; by doubling."""
    length, step = x.shape[axis[0]], 1
    direction = -1 if reverse else 1
    while step < length:
        x = x + factor * shift(xp, x, axis, direction * step)
        factor = factor * shift(xp, factor, axis, direction * step)
        step *= 2
    return x
