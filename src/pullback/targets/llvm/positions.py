"""From numbers to places: where the element of a given number lies."""

from __future__ import annotations

from typing import Any, Sequence

from ..axes import Shape
from .code import I64


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
