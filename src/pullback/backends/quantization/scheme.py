"""What a storage format is, and which there are."""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import BY_NAME, DType

#: Values that have one scale, in the formats of four bits.
GROUP = 64


class Scheme:
    """How values are stored: as parts, which are arrays of any backend."""

    name: str
    dtype: DType  # of the quantized array, kind "quantized"
    part_names: tuple[str, ...]
    has_axis = False  # whether there is a scale for each index of an axis; else for groups of values, or for all

    def encode(self, xp: Any, values: Any, axis: int | None) -> tuple[Any, ...]:
        """The parts of values, which are finite and not none at all."""
        raise NotImplementedError

    def decode(self, xp: Any, parts: tuple[Any, ...], axis: int | None, shape: tuple[int, ...]) -> Any:
        """The values of the parts, in the dtype of the scales."""
        raise NotImplementedError

    def layout(self, shape: tuple[int, ...], axis: int | None) -> tuple[tuple[tuple[int, ...], str], ...]:
        """The shape and dtype of each part of float32 values of this shape."""
        raise NotImplementedError


SCHEMES: dict[str, Scheme] = {}


def register_scheme(scheme: Scheme) -> None:
    """Make a storage format known under its name."""
    SCHEMES[scheme.name] = scheme


def named_dtype(x: Any, name: str) -> Any:
    """What the backend of an array, or of a tensor's, calls the dtype of this name."""
    from .. import of

    backend: Any = of(getattr(x, "_raw", x))
    return backend.raw_dtype(BY_NAME[name])


def largest_over(xp: Any, values: Any, axis: int | None) -> Any:
    """The largest size of a value for each index of an axis, or of all values; the axes stay."""
    others = tuple([a for a in range(-len(values.shape), 0) if a != axis])
    size = xp.abs(values)
    return xp.max(size, others, True) if others else size


def scales_for(xp: Any, largest: Any, top: float) -> Any:
    """Scales by which the largest values become `top`: 1 where all are zero, or so small that the scale would be."""
    scales = largest / top
    return xp.where(scales > 0, scales, xp.ones_like(scales))


def along(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    """The shape of an array with one value for each index of an axis, or one in all."""
    return tuple([n if i - len(shape) == axis else 1 for i, n in enumerate(shape)])


def grouped(xp: Any, values: Any, size: int) -> Any:
    """Values in rows of `size` in their order, the last one filled up with zeros."""
    flat = xp.reshape(values, (-1,))
    missing = -flat.shape[0] % size
    return xp.reshape(xp.pad(flat, ((0, missing),), 0) if missing else flat, (-1, size))


def ungrouped(xp: Any, rows: Any, shape: tuple[int, ...]) -> Any:
    """Undo `grouped`."""
    count = math.prod(shape)
    if count == math.prod(rows.shape):
        return xp.reshape(rows, shape)
    flat = xp.reshape(rows, (-1,))
    return xp.reshape(xp.split(flat, (count, flat.shape[0] - count), 0)[0], shape)


def group_count(shape: tuple[int, ...], size: int) -> int:
    return -(-math.prod(shape) // size)
