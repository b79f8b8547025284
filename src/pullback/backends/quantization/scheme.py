"""What a storage format is, and which there are."""

from __future__ import annotations

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


def largest_of_rows(xp: Any, values: Any) -> Any:
    """The largest size of a value in each row; the axes stay."""
    return xp.max(xp.abs(values), (-1,), True)


def grouped(xp: Any, values: Any, size: int) -> Any:
    """Values in groups along the last axis, which gets two of it; the last group of a row is filled up with zeros."""
    *rest, length = values.shape or (1,)
    missing = -length % size
    if missing:
        values = xp.pad(xp.reshape(values, (*rest, length)), (*[(0, 0)] * len(rest), (0, missing)), 0)
    return xp.reshape(values, (*rest, (length + missing) // size, size))


def ungrouped(xp: Any, groups: Any, shape: tuple[int, ...]) -> Any:
    """Undo `grouped`."""
    *rest, length = shape or (1,)
    whole = groups.shape[-2] * groups.shape[-1]
    rows = xp.reshape(groups, (*rest, whole))
    return xp.reshape(xp.split(rows, (length, whole - length), -1)[0] if whole > length else rows, shape)


def groups_of(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The axes of groups of values of this shape."""
    *rest, length = shape or (1,)
    return (*rest, -(-length // size))
