"""Numbers out of a saved state, which is as the run left it, or whatever somebody wrote into the file."""

from __future__ import annotations

import math
from typing import Any, Mapping

from ..errors import FileFormatError

_MOST = 1 << 62  # above every count there can be


def count(state: Mapping[str, Any], name: str, least: int = 0) -> int:
    """The whole number under a name.

    >>> from pullback.train.figures import count
    >>> count({"step": 3}, "step")
    3
    """
    value = state[name]
    if type(value) is not int or not least <= value < _MOST:
        raise FileFormatError(f"the saved {name} is {value!r:.40}; it must be a whole number, {least} or more.")
    return value


def number(state: Mapping[str, Any], name: str, *, finite: bool = False) -> float:
    """The number under a name.

    >>> from pullback.train.figures import number
    >>> number({"seconds": 0.5}, "seconds", finite=True)
    0.5
    """
    value = state[name]
    if type(value) not in (int, float) or (abs(value) >= _MOST and type(value) is int):
        raise FileFormatError(f"the saved {name} is {value!r:.40}; it must be a number.")
    if finite and not math.isfinite(value):
        raise FileFormatError(f"the saved {name} is {value!r}; it must be finite.")
    return value
