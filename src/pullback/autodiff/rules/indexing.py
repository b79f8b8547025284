"""Reading and writing parts of arrays.

`index` is what NumPy takes: integers, slices, None, Ellipsis, raw boolean or integer arrays, or a tuple of these.
Where a write names a position twice the last value stays, so the others have no gradient.
"""

from __future__ import annotations

import math
from typing import Any


def rules(xp: Any, op: Any) -> None:
    op(
        "getitem", "x", "index", linear="x", masking=True, cheap=True,
        x=lambda g, x_shape, index: xp.place(g, x_shape, index),
        accumulate=lambda total, g, index: xp.place_into(total, g, index),
    )  # fmt: skip
    op("place", "value", "shape index", linear="value", value=lambda g, index: xp.getitem(g, index))
    op(
        "setitem", "x value", "index", linear="*", masking=True, autocast="given",
        x=lambda g, index: xp.setitem(g, 0, index),
        value=lambda g, value_shape, index: xp.sum_to_value(xp.read_last(g, index), value_shape),
    )  # fmt: skip
    op(
        "index_add", "x value", "index", linear="*",
        x=lambda g: g,
        value=lambda g, value_shape, index: xp.sum_to_value(xp.getitem(g, index), value_shape),
    )  # fmt: skip
    op("overwritten", "x", "index")

    # Along one axis; `indices` is an input, so that a compiled program can be run with others.
    op(
        "take", "x indices", "axis", linear="x", masking=True,
        x=lambda g, indices, x_shape, axis: xp.take_transposed(g, indices, x_shape[axis], axis),
    )  # fmt: skip
    op(
        "take_transposed", "value indices", "size axis", linear="value",
        value=lambda g, indices, axis: xp.take(g, indices, axis),
    )  # fmt: skip
    op(
        "take_along_axis", "x indices", "axis", batch="along_axis", linear="x", masking=True,
        x=lambda g, indices, x_shape, axis: xp.sum_to(
            xp.take_along_axis_transposed(g, indices, x_shape[axis], axis), x_shape
        ),
    )  # fmt: skip
    op(
        "take_along_axis_transposed", "value indices", "size axis", batch="along_axis", linear="value",
        value=lambda g, indices, value_shape, axis: xp.sum_to(xp.take_along_axis(g, indices, axis), value_shape),
    )  # fmt: skip

    def put_along_axis_value(g: Any, indices: Any, value_shape: Any, axis: int) -> Any:
        read = xp.take_along_axis(g, indices, axis)
        order = xp.reshape(xp.arange(0, math.prod(read.shape), 1, indices.dtype, indices), read.shape)
        last = xp.put_along_axis(xp.zeros(g.shape, indices.dtype, indices), order, indices, axis)
        lost = xp.not_equal(xp.take_along_axis(last, indices, axis), order)
        return xp.sum_to(xp.where(lost, xp.zeros_like(read), read), value_shape)

    op(
        "put_along_axis", "x value indices", "axis", batch="along_axis", masking=True,
        x=lambda g, indices, x_shape, axis: xp.sum_to(xp.put_along_axis(g, 0, indices, axis), x_shape),
        value=put_along_axis_value,
    )  # fmt: skip

    def hits(indices: Any, like: Any, size: int, axis: int) -> Any:
        """How many of `indices` point to each place."""
        return xp.take_along_axis_transposed(xp.ones_like(like), indices, size, axis)

    def scatter_extremum_value(g: Any, value: Any, indices: Any, out: Any, axis: int) -> Any:
        chosen = xp.equal(value, xp.take_along_axis(out, indices, axis))
        zero = xp.zeros_like(value)
        ties = xp.take_along_axis_transposed(xp.where(chosen, xp.ones_like(value), zero), indices, g.shape[axis], axis)
        share = g / xp.where(xp.equal(ties, 0), xp.ones_like(ties), ties)
        return xp.where(chosen, xp.take_along_axis(share, indices, axis), zero)

    # The largest (smallest) of the values for a place, and x where there are none; all have the same other axes.
    op(
        "scatter_extremum", "x value indices", "axis largest",
        batch="leading", masking=True, real=True,
        x=lambda g, value, indices, axis: xp.where(
            xp.greater(hits(indices, value, g.shape[axis], axis), 0), xp.zeros_like(g), g
        ),
        value=scatter_extremum_value,
    )  # fmt: skip
