"""Convolutions: one bilinear operation and its two transposes, which are each other's rules.

`x` is (samples, channels, *size), `weight` (features, channels / groups, *kernel). `stride`, `dilation` and
`padding` have an entry per spatial axis; a padding is a pair (before, after), and a negative one cuts off.
"""

from __future__ import annotations

from functools import partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    op = partial(op, autocast="half")
    geometry = "stride padding dilation groups"

    def x_gradient(g: Any, weight: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
        return xp.convolution_input_gradient(g, weight, x_shape[2:], stride, padding, dilation, groups)

    def weight_gradient(
        g: Any, x: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: Any
    ) -> Any:
        return xp.convolution_weight_gradient(g, x, weight_shape[2:], stride, padding, dilation, groups)

    op("convolution", "x weight", geometry, linear="x weight", masking=True, x=x_gradient, weight=weight_gradient)
    op(
        "biased_convolution", "x weight bias", geometry, masking=True, x=x_gradient, weight=weight_gradient,
        bias=lambda g: xp.sum(g, (-len(g.shape), *range(2 - len(g.shape), 0)), False),
    )  # fmt: skip
    op(
        "convolution_input_gradient", "y weight", "size " + geometry, batch="convolution", linear="y weight",
        y=lambda g, weight, stride, padding, dilation, groups:
            xp.convolution(g, weight, stride, padding, dilation, groups),
        weight=lambda g, y, weight_shape, stride, padding, dilation, groups:
            xp.convolution_weight_gradient(y, g, weight_shape[2:], stride, padding, dilation, groups),
    )  # fmt: skip
    op(
        "convolution_weight_gradient", "y x", "size " + geometry, linear="y x",
        y=lambda g, x, stride, padding, dilation, groups: xp.convolution(x, g, stride, padding, dilation, groups),
        x=lambda g, y, x_shape, stride, padding, dilation, groups:
            xp.convolution_input_gradient(y, g, x_shape[2:], stride, padding, dilation, groups),
    )  # fmt: skip
