"""The steps of a sequence, some at a time: what a backend makes for so many of them serves any length."""

from __future__ import annotations

_TOGETHER = 8


def spans_of(length: int, reverse: bool) -> list[slice]:
    """The steps in the order in which they are taken, some at a time."""
    spans = [slice(start, min(start + _TOGETHER, length)) for start in range(0, length, _TOGETHER)]
    return spans[::-1] if reverse else spans
