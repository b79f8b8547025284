"""Axes of a walk over several arrays: which can be walked as one, and in which order."""

from __future__ import annotations

from math import prod

Shape = tuple[int, ...]


def merged(shape: Shape, *strides: Shape) -> tuple[Shape, tuple[Shape, ...]]:
    """The same walk over several arrays with fewer axes: without those of length 1, and with neighbours joined."""
    axes: list[tuple[int, list[int]]] = []
    for size, steps in zip(shape, zip(*strides)):
        if size == 1:
            continue
        if axes and all(outer == size * inner for outer, inner in zip(axes[-1][1], steps)):
            axes[-1] = (axes[-1][0] * size, list(steps))
        else:
            axes.append((size, list(steps)))
    return tuple(size for size, _ in axes), tuple(tuple(steps[i] for _, steps in axes) for i in range(len(strides)))


def ordered(shape: Shape, *strides: Shape) -> tuple[Shape, tuple[Shape, ...]]:
    """Axes from the longest stride to the shortest of the last array, then merged: for work whose order is free."""
    shape, strides = by_stride(shape, *strides)
    return merged(shape, *strides)


def by_stride(shape: Shape, *strides: Shape) -> tuple[Shape, tuple[Shape, ...]]:
    """Axes from the longest stride to the shortest of the last array."""
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[-1][axis]))
    return tuple(shape[i] for i in order), tuple(tuple(steps[i] for i in order) for steps in strides)


def contiguous(shape: Shape) -> Shape:
    """The strides of an array whose elements are neighbours, in C order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
