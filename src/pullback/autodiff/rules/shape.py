"""Operations that move elements. Axes are negative."""

from __future__ import annotations

from functools import cache, partial
from typing import Any


def rules(xp: Any, op: Any) -> None:
    moving = partial(op, moves=True)
    standard = partial(moving, standard="main")

    standard("reshape", "x", "shape", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape))
    standard(
        "expand_dims", "x", "axis", batch="leading", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape)
    )
    standard(
        "squeeze", "x", "axis", batch="leading", linear="x", cheap=True, x=lambda g, x_shape: xp.reshape(g, x_shape)
    )
    standard("matrix_transpose", "x", batch="leading", linear="x", cheap=True, x=lambda g: xp.matrix_transpose(g))
    moving("permute_dims", "x", "axes", linear="x", cheap=True, x=lambda g, axes: xp.permute_dims(g, _inverse(axes)))
    standard("broadcast_to", "x", "shape", linear="x", cheap=True, x=lambda g, x_shape: xp.sum_to(g, x_shape))
    standard("flip", "x", "axis", batch="every_axis", linear="x", cheap=True, x=lambda g, axis: xp.flip(g, axis))
    standard(
        "roll", "x", "shift axis", batch="leading", linear="x", cheap=True,
        x=lambda g, shift, axis: xp.roll(g, tuple(-s for s in shift), axis),
    )  # fmt: skip

    def repeat_x(g: Any, x_shape: Any, repeats: int, axis: int) -> Any:
        split_at = len(x_shape) + axis + 1
        copies = xp.reshape(g, (*x_shape[:split_at], repeats, *x_shape[split_at:]))
        return xp.sum(copies, (axis,), False)

    def tile_x(g: Any, x_shape: Any, repetitions: Any) -> Any:
        sizes = (1,) * (len(repetitions) - len(x_shape)) + tuple(x_shape)
        copies = xp.reshape(g, tuple(n for pair in zip(repetitions, sizes) for n in pair))
        return xp.reshape(xp.sum(copies, tuple(range(-2 * len(sizes), 0, 2)), False), x_shape)

    moving("repeat", "x", "repeats axis", batch="leading", linear="x", x=repeat_x)
    moving("tile", "x", "repetitions", linear="x", x=tile_x)
    op(
        "pad", "x", "widths value",
        x=lambda g, x_shape, widths: xp.getitem(g, _middle(x_shape, widths)),
    )  # fmt: skip

    op(
        "concat", "*xs", "axis", batch="lists", linear="*",
        xs=lambda g, xs_shape, axis: xp.split(g, tuple(shape[axis] for shape in xs_shape), axis),
    )  # fmt: skip
    op("stack", "*xs", "axis", batch="lists", linear="*", xs=lambda g, axis: xp.unstack(g, axis))

    def unstack_x(g: Any, axis: int) -> Any:
        nothing = xp.zeros_like(next(part for part in g if part is not None))
        return xp.stack([nothing if part is None else part for part in g], axis)

    def split_x(g: Any, x_shape: Any, sizes: Any, axis: int) -> Any:
        like = next(part for part in g if part is not None)

        def nothing(size: int) -> Any:
            shape = list(x_shape)
            shape[axis] = size
            return xp.zeros(tuple(shape), like.dtype, like)

        return xp.concat([nothing(n) if part is None else part for n, part in zip(sizes, g)], axis)

    op("unstack", "x", "axis", batch="leading", outputs="*outs", linear="x", masking=True, standard="main", x=unstack_x)
    op("split", "x", "sizes axis", batch="leading", outputs="*outs", linear="x", masking=True, x=split_x)


@cache
def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation (of negative axes) that undoes `axes`."""
    ndim = len(axes)
    inverse = [0] * ndim
    for position, axis in enumerate(axes):
        inverse[axis] = position - ndim
    return tuple(inverse)


def _middle(shape: tuple[int, ...], widths: Any) -> tuple[slice, ...]:
    return tuple(slice(before, before + n) for n, (before, _) in zip(shape, widths))
