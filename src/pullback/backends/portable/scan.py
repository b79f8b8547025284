"""Portable kernels: linear recurrences."""

from __future__ import annotations

from typing import Any

from ..axis_slice import axis_slice


def _first_and_rest(length: int, axis: int, reverse: bool) -> tuple[Any, Any]:
    """The indices of the step taken first and of the others."""
    if reverse:
        return axis_slice(axis, length - 1, length), axis_slice(axis, 0, length - 1)
    return axis_slice(axis, 0, 1), axis_slice(axis, 1, length)


def _joined(xp: Any, first: Any, rest: Any, axis: int, reverse: bool) -> Any:
    return xp.concat([rest, first] if reverse else [first, rest], axis)


def _slice_shape(shape: Any, axis: int) -> tuple[int, ...]:
    """A shape with length 1 along `axis`."""
    return (*shape[:axis], 1, *shape[len(shape) + axis + 1 :])


def _state_before(xp: Any, h0: Any, shape: Any, axis: int) -> Any:
    """`h0` with an axis for time put in."""
    without_time = (*shape[:axis], *shape[len(shape) + axis + 1 :])
    return xp.reshape(xp.broadcast_to(h0, without_time), _slice_shape(shape, axis))


def ssm_scan(xp: Any, x: Any, a: Any, h0: Any, axis: int, reverse: bool) -> Any:
    shape, length = tuple(x.shape), x.shape[axis]
    factors = xp.broadcast_to(a, shape)
    if h0 is not None and length:
        first, rest = _first_and_rest(length, axis, reverse)
        start = xp.getitem(x, first) + xp.getitem(factors, first) * _state_before(xp, h0, shape, axis)
        x = _joined(xp, start, xp.getitem(x, rest), axis, reverse)
    return xp.recurrence(x, factors, (axis,), reverse)


def ssm_scan_gradient(
    xp: Any, g: Any, a: Any, h0: Any, out: Any, a_shape: Any, h0_shape: Any, axis: int, reverse: bool, needs: Any
) -> tuple[Any, ...]:
    shape, length = tuple(g.shape), g.shape[axis]
    factors = xp.broadcast_to(a, shape)
    cotangents = xp.ssm_scan(g, xp.shift(factors, (axis,), 1 if reverse else -1), None, axis, not reverse)
    grad_a = grad_h0 = None
    if needs[1]:
        previous = xp.shift(out, (axis,), -1 if reverse else 1)
        if h0 is not None and length:
            _, rest = _first_and_rest(length, axis, reverse)
            previous = _joined(xp, _state_before(xp, h0, shape, axis), xp.getitem(previous, rest), axis, reverse)
        grad_a = xp.sum_to(cotangents * previous, a_shape)
    if needs[2]:
        first, _ = _first_and_rest(length, axis, reverse)
        product = xp.sum(xp.getitem(cotangents, first) * xp.getitem(factors, first), (axis,), False)
        grad_h0 = xp.sum_to(product, h0_shape)
    return cotangents, grad_a, grad_h0
