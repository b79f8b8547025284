"""Slices along one axis, as indices."""

from __future__ import annotations

from typing import Any


def axis_slice(axis: int, start: int | None, stop: int | None) -> tuple[Any, ...]:
    """The index of what is from `start` to `stop` along one (negative) axis, and everything along the others."""
    return (Ellipsis, slice(start, stop), *(slice(None),) * (-1 - axis))
