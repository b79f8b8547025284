"""JAX's own convolution and its two transposes, of any number of spatial axes.

On processors XLA has fast code for some of them only: the others are sums of matrix products there, the portable form.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import jax
import jax.numpy as jnp

_FEW_CHANNELS = 8


def convolution_kernels(general: Any, joined: Any) -> dict[str, Any]:
    """Convolutions; `general(name)` is the portable kernel, `joined(function, static)` a function as one call."""

    def convolution(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        return _chosen(
            lambda x, weight: _convolution(x, weight, stride, padding, dilation, groups),
            lambda x, weight: general("convolution")(x, weight, stride, padding, dilation, groups),
            (x, weight),
            padding,
            _is_fast_on_processors(weight.shape, groups),
        )

    def biased_convolution(
        x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        return general("biased_convolution")(x, weight, bias, stride, padding, dilation, groups)

    def convolution_input_gradient(
        g: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        def transposed(g: Any, weight: Any) -> Any:
            x = jax.ShapeDtypeStruct((g.shape[0], weight.shape[1] * groups, *size), g.dtype)
            return jax.linear_transpose(lambda x: _convolution(x, weight, stride, padding, dilation, groups), x)(g)[0]

        return _chosen(
            transposed,
            lambda g, weight: general("convolution_input_gradient")(
                g, weight, size, stride, padding, dilation, groups
            ),
            (g, weight),
            padding,
            _is_fast_on_processors(weight.shape, groups),
        )  # fmt: skip

    def convolution_weight_gradient(
        g: Any, x: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        shape = (g.shape[1], x.shape[1] // groups, *size)

        def transposed(g: Any, x: Any) -> Any:
            weight = jax.ShapeDtypeStruct(shape, g.dtype)
            return jax.linear_transpose(lambda w: _convolution(x, w, stride, padding, dilation, groups), weight)(g)[0]

        return _chosen(
            transposed,
            lambda g, x: general("convolution_weight_gradient")(g, x, size, stride, padding, dilation, groups),
            (g, x),
            padding,
            _is_fast_on_processors(shape, groups) and (len(size) == 1 or x.shape[1] < _FEW_CHANNELS),
        )

    return {
        "convolution": joined(convolution, (2, 3, 4, 5)),
        "biased_convolution": joined(biased_convolution, (3, 4, 5, 6)),
        "convolution_input_gradient": joined(convolution_input_gradient, (2, 3, 4, 5, 6)),
        "convolution_weight_gradient": joined(convolution_weight_gradient, (2, 3, 4, 5, 6)),
    }


def _chosen(
    own: Callable[..., Any], portable: Callable[..., Any], arrays: tuple[Any, Any], padding: Any, is_fast: bool
) -> Any:
    """JAX's own function of two arrays where it is for them, on processors only where it is fast."""
    x, y = arrays
    is_plain = (
        x.dtype == y.dtype
        and jnp.issubdtype(x.dtype, jnp.floating)
        and x.size > 0
        and y.size > 0
        and all(low >= 0 and high >= 0 for low, high in padding)
    )
    if not is_plain:
        return portable(x, y)
    return own(x, y) if is_fast else jax.lax.platform_dependent(x, y, cpu=portable, default=own)


def _is_fast_on_processors(shape: tuple[int, ...], groups: int) -> bool:
    """Whether a convolution with a weight of this shape is one that XLA has fast code for there."""
    return groups == 1 and len(shape) <= 4 and math.prod(shape[2:]) > 1


def _convolution(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return jax.lax.conv_general_dilated(x, weight, stride, padding, rhs_dilation=dilation, feature_group_count=groups)
