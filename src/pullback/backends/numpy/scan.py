"""NumPy kernels: linear recurrences.

Each step works on whole slices, with results written in place: two calls of NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from .precision import computed_in as _computed_in


def _common_dtype(*parts: Any) -> Any:
    return _np.result_type(*(part.dtype for part in parts if part is not None))


def _copy(x: Any, axis: int, dtype: Any) -> Any:
    """A copy of `x` in which the slice of each step lies together in memory: steps over gaps take twice as long."""
    return _np.moveaxis(_np.array(_np.moveaxis(x, axis, 0), dtype=dtype, order="C"), 0, axis)


def _steps(part: Any, shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
    """`part` broadcast to `shape`, with steps along the first axis in the order in which they are taken."""
    if part.shape != shape:
        part = _np.broadcast_to(part, shape)
    steps = _np.moveaxis(part, axis, 0)
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
    out = _copy(x, axis, _computed_in(_common_dtype(x, a, h0)))
    if x.shape[axis]:
        states, factors = (_steps(part, x.shape, axis, reverse) for part in (out, a))
        if h0 is not None:
            states[0] += factors[0] * h0
        _accumulate(states, factors[1:])
    return out.astype(_common_dtype(x, a, h0), copy=False)


def ssm_scan_gradient(
    g: Any, a: Any, h0: Any, out: Any, a_shape: Any, h0_shape: Any, axis: int, reverse: bool, needs: tuple[bool, ...]
) -> tuple[Any, ...]:
    """Gradients of x, a and h0: the same recurrence against time, then products of whole arrays."""
    grad_x = _copy(g, axis, _computed_in(_common_dtype(g, a, h0)))
    cotangents, factors, states = (_steps(part, g.shape, axis, reverse) for part in (grad_x, a, out))
    if len(cotangents):
        _accumulate(cotangents[::-1], factors[::-1])
    grad_a = grad_h0 = None
    if needs[1]:
        grad_a = _np.empty_like(grad_x)
        products = _steps(grad_a, g.shape, axis, reverse)
        _np.multiply(cotangents[1:], states[:-1], out=products[1:])
        if len(products):
            products[0] = 0 if h0 is None else cotangents[0] * h0
        grad_a = _sum_to(grad_a, a_shape)
    if needs[2]:
        first = cotangents[0] * factors[0] if len(cotangents) else _np.zeros(cotangents.shape[1:], grad_x.dtype)
        grad_h0 = _sum_to(_np.asarray(first), h0_shape)
    return tuple(None if grad is None else grad.astype(g.dtype, copy=False) for grad in (grad_x, grad_a, grad_h0))


def _sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the axes that broadcasting `shape` to `x.shape` added or stretched."""
    extra = x.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1))
    return _np.add.reduce(x, axes, keepdims=True).reshape(shape) if axes else x
