"""NumPy kernels: linear recurrences.

Inside, time is the first axis. Each step works on whole slices, with results written in place: two calls of NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as _np


def _computed_in(*parts: Any) -> Any:
    """The dtype that the states are added up in."""
    dtype = _np.result_type(*(part.dtype for part in parts if part is not None))
    return _np.dtype(_np.float32) if dtype.itemsize == 2 else dtype


def _time_first(part: Any, shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
    """`part` broadcast to `shape`, with steps along the first axis in the order in which they are taken."""
    steps = _np.moveaxis(_np.broadcast_to(part, shape), axis, 0)
    return steps[::-1] if reverse else steps


def _accumulate(states: Any, factors: Any) -> None:
    """states[t] += factors[t-1] states[t-1] for t = 1, 2, ..., in place."""
    if states.ndim == 1:  # slices would be scalars, which cannot be written
        states, factors = states[:, None], factors[:, None]
    product = _np.empty(states.shape[1:], states.dtype)
    multiply, add = _np.multiply, _np.add
    previous = states[0]
    for state, factor in zip(states[1:], factors):
        multiply(factor, previous, product)
        add(state, product, state)
        previous = state


def ssm_scan(x: Any, a: Any, h0: Any, axis: int, reverse: bool) -> Any:
    """h[t] = a[t] h[t-1] + x[t] along `axis`, from its end if `reverse`; before the first step h is `h0` or zero."""
    dtype = _computed_in(x, a, h0)
    states = _np.array(_np.moveaxis(x, axis, 0), dtype=dtype, order="C")
    in_order = states[::-1] if reverse else states
    factors = _time_first(a, x.shape, axis, reverse)
    if len(states):
        if h0 is not None:
            in_order[0] += factors[0] * h0
        _accumulate(in_order, factors[1:])
    out_dtype = _np.result_type(*(part.dtype for part in (x, a, h0) if part is not None))
    return _np.moveaxis(states, 0, axis).astype(out_dtype, copy=False)


def ssm_scan_gradient(
    g: Any, a: Any, h0: Any, out: Any, a_shape: Any, h0_shape: Any, axis: int, reverse: bool, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """Gradients of x, a and h0: the same recurrence against time, then products of whole arrays."""
    cotangents = _np.array(_np.moveaxis(g, axis, 0), dtype=_computed_in(g, a, h0), order="C")
    in_order = cotangents[::-1] if reverse else cotangents
    factors = _time_first(a, g.shape, axis, reverse)
    if len(cotangents):
        _accumulate(in_order[::-1], factors[::-1])
    grad_a = grad_h0 = None
    if needs[1]:
        products = _np.empty_like(cotangents)
        products_in_order = products[::-1] if reverse else products
        states = _time_first(out, g.shape, axis, reverse)
        _np.multiply(in_order[1:], states[:-1], out=products_in_order[1:])
        if len(products):
            products_in_order[0] = 0 if h0 is None else in_order[0] * h0
        grad_a = _sum_to(_np.moveaxis(products, 0, axis), a_shape)
    if needs[2]:
        first = in_order[0] * factors[0] if len(cotangents) else _np.zeros(cotangents.shape[1:], cotangents.dtype)
        grad_h0 = _sum_to(first, h0_shape)
    grad_x = _np.moveaxis(cotangents, 0, axis) if needs[0] else None
    return tuple(None if grad is None else grad.astype(g.dtype, copy=False) for grad in (grad_x, grad_a, grad_h0))


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    extra = x.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1))
    return _np.add.reduce(x, axes, keepdims=True).reshape(shape) if axes else x
