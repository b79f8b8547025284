"""Reductions and running totals. `axis` is None or a tuple of negative integers; running ones have one axis."""

from __future__ import annotations

import math
from typing import Any


def rules(xp: Any, op: Any) -> None:
    def kept(value: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        """The value of a reduction with its axes kept, of length 1."""
        if keepdims:
            return value
        if axis is None:
            return xp.reshape(value, (1,) * len(shape))
        return xp.expand_dims(value, axis) if axis else value

    def spread(g: Any, shape: Any, axis: Any, keepdims: bool) -> Any:
        """Repeat a reduction's cotangent along the axes that were reduced."""
        if not keepdims and axis is not None and 0 < len(axis) < len(shape):
            g = xp.expand_dims(g, axis)
        return xp.broadcast_to(g, shape)

    def count(shape: Any, axis: Any) -> int:
        return math.prod(shape) if axis is None else math.prod(shape[a] for a in axis)

    # sums and means
    op(
        "sum", "x", "axis=None keepdims=False", linear="x", reduces=True, dtypes="numbers", standard="main",
        batch="reduction",
        autocast="float32",
        x=lambda g, x_shape, axis, keepdims: spread(g, x_shape, axis, keepdims),
    )  # fmt: skip
    op(
        "mean", "x", "axis=None keepdims=False", linear="x", dtypes="floating", standard="main", autocast="float32",
        batch="reduction",
        x=lambda g, x_shape, axis, keepdims: spread(g / max(count(x_shape, axis), 1), x_shape, axis, keepdims),
    )  # fmt: skip

    def deviation(x: Any, axis: Any, correction: float) -> Any:
        """The derivative of half the variance; not a number where there are too few elements for one."""
        free = count(x.shape, axis) - correction
        free = int(free) if free == int(free) else free  # next to bfloat16 only an integer keeps the dtype
        return xp.conj(x - xp.mean(x, axis, True)) / (free if free > 0 else math.nan)

    def std_x(g: Any, x: Any, out: Any, axis: Any, correction: float, keepdims: bool) -> Any:
        # 0 where all elements are equal: there the deviation from the mean is 0. Not g / out, which may be too small
        # to have digits.
        equal = xp.equal(out, 0)
        factor = kept(xp.where(equal, xp.zeros_like(g), g), x.shape, axis, keepdims)
        size = kept(xp.where(equal, xp.ones_like(out), out), x.shape, axis, keepdims)
        return factor * (deviation(x, axis, correction) / size)

    def var_x(g: Any, x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
        return 2 * kept(g, x.shape, axis, keepdims) * deviation(x, axis, correction)

    op("var", "x", "axis=None correction=0 keepdims=False", batch="reduction", autocast="float32", x=var_x)
    op("std", "x", "axis=None correction=0 keepdims=False", batch="reduction", autocast="float32", x=std_x)

    # the largest and the smallest: elements that are equal share the cotangent equally
    def extremum_x(g: Any, x: Any, x_dtype: Any, out: Any, axis: Any, keepdims: bool) -> Any:
        chosen = xp.equal(x, kept(out, x.shape, axis, keepdims))
        share = kept(g, x.shape, axis, keepdims) / xp.sum(xp.astype(chosen, x_dtype), axis, True)
        return xp.where(chosen, share, xp.zeros_like(share))

    for name in ("max", "min"):
        op(
            name, "x", "axis=None keepdims=False", masking=True, reduces=True, dtypes="ordered", standard="main",
            batch="reduction",
            x=extremum_x,
        )  # fmt: skip

    # products, exact where elements are zero: nothing is divided by
    def prod_x(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
        shape, ndim = x.shape, len(x.shape)
        axes = tuple(range(-ndim, 0)) if axis is None else axis
        g = kept(g, shape, axis, keepdims)
        if len(axes) == 1:
            return g * others_of(x, axes)
        order = tuple(a for a in range(-ndim, 0) if a not in axes) + axes
        moved = xp.permute_dims(x, order)
        rows = xp.reshape(moved, moved.shape[: ndim - len(axes)] + (count(shape, axes),))
        others = xp.reshape(others_of(rows, (-1,)), moved.shape)
        return g * xp.permute_dims(others, tuple(order.index(a) - ndim for a in range(-ndim, 0)))

    def others_of(x: Any, axis: Any) -> Any:
        """For each element the product of all the others along the axis."""
        return xp.cumulative_prod(x, axis, False, True) * xp.cumulative_prod(x, axis, True, True)

    op(
        "prod", "x", "axis=None keepdims=False", reduces=True, dtypes="numbers", standard="main", autocast="float32",
        batch="reduction",
        x=prod_x,
    )  # fmt: skip

    # running totals; `reverse` runs from the end, `exclusive` leaves out the element itself
    op(
        "cumulative_sum", "x", "axis reverse=False", batch="leading", linear="x", autocast="float32",
        x=lambda g, axis, reverse: xp.cumulative_sum(g, axis, not reverse),
    )  # fmt: skip

    def cumulative_prod_x(g: Any, x: Any, axis: Any, reverse: bool, exclusive: bool) -> Any:
        # out[j] for j >= i is (product before i) * x[i] * (product from i+1 to j), so the sum over j of the last
        # factor times g[j] follows the recurrence s[i] = g[i] + x[i+1] * s[i+1]
        step = -1 if reverse else 1
        if exclusive:
            g = xp.shift(g, axis, -step)
        return xp.cumulative_prod(x, axis, reverse, True) * xp.recurrence(
            g, xp.shift(x, axis, -step), axis, not reverse
        )

    op(
        "cumulative_prod",
        "x",
        "axis reverse=False exclusive=False",
        batch="leading",
        autocast="float32",
        x=cumulative_prod_x,
    )

    def recurrence_factor(g: Any, factor: Any, out: Any, axis: Any, reverse: bool) -> Any:
        step = -1 if reverse else 1
        return xp.recurrence(g, xp.shift(factor, axis, -step), axis, not reverse) * xp.shift(out, axis, step)

    op(
        "recurrence", "x factor", "axis reverse=False", autocast="float32",  # out[i] = x[i] + factor[i] * out[i-1]
        batch="leading",
        x=lambda g, factor, axis, reverse: xp.recurrence(
            g, xp.shift(factor, axis, 1 if reverse else -1), axis, not reverse
        ),
        factor=recurrence_factor,
    )  # fmt: skip
    # moves elements along an axis, zeros come in
    op(
        "shift", "x", "axis offset", batch="leading", linear="x", cheap=True, expands="always",
        x=lambda g, axis, offset: xp.shift(g, axis, -offset),
    )  # fmt: skip

    # no gradients
    for name in ("all", "any", "count_nonzero"):
        op(name, "x", "axis=None keepdims=False", reduces=True, batch="reduction", standard="main")
    for name in ("argmax", "argmin"):
        op(name, "x", "axis=None keepdims=False", reduces=True, batch="reduction")
