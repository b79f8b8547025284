"""From numbers to places: which axes can be walked as one, and where the element of a given number lies."""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

from .code import I64

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
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[-1][axis]))
    return merged(tuple(shape[i] for i in order), *(tuple(steps[i] for i in order) for steps in strides))


def packed(shape: Shape) -> Shape:
    """Strides of a contiguous array."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def offsets(b: Any, number: Any, shape: Shape, strides: Sequence[Shape]) -> list[Any]:
    """Where element `number`, counted with the last axis fastest, lies in each of several arrays."""
    places: list[Any] = [I64(0)] * len(strides)
    rest = number
    for axis in reversed(range(len(shape))):
        if axis == 0:
            index = rest
        else:
            index = b.urem(rest, I64(shape[axis]))
            rest = b.udiv(rest, I64(shape[axis]))
        for i, steps in enumerate(strides):
            if steps[axis]:
                places[i] = b.add(places[i], b.mul(index, I64(steps[axis])))
    return places
