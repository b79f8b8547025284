"""Arithmetic of shapes that passes and lowering share."""

from __future__ import annotations


def broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of arrays of `shapes`, which are known to fit, broadcast together."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    length = max(map(len, shapes))
    sizes = [1] * length
    for shape in shapes:
        for axis, size in enumerate(shape, length - len(shape)):
            if size != 1:
                sizes[axis] = size
    return tuple(sizes)
