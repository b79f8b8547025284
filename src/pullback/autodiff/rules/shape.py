"""Operations that move elements. Axes are negative."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    op("reshape", "x", "shape", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape))
    op("expand_dims", "x", "axis", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape))
    op("squeeze", "x", "axis", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape))
    op("matrix_transpose", "x", linear="x", cheap=True, x=lambda g: xp.matrix_transpose(g))
    op(
        "permute_dims", "x", "axes", linear="x", cheap=True,
        x=lambda g, axes: xp.permute_dims(g, _inverse(axes)),
    )  # fmt: skip
    op("broadcast_to", "x", "shape", linear="x", cheap=True, x=lambda g, x_shape: xp.sum_to(g, x_shape))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation (of negative axes) that undoes `axes`."""
    ndim = len(axes)
    inverse = [0] * ndim
    for position, axis in enumerate(axes):
        inverse[axis] = position - ndim
    return tuple(inverse)
