"""Whether an array can be written without anybody noticing, read off the counts of its references."""

from __future__ import annotations

import sys
from sys import getrefcount
from typing import Any

import numpy as np

_ndarray = np.ndarray

#: How often a count is measured before it is believed: more often than the interpreter runs an instruction before it
#: puts a faster one in its place, and that one might borrow a reference where the first one took it.
_MEASUREMENTS = 64


def is_sole_owner(holder: Any, attribute: str) -> bool:
    """Whether `getattr(holder, attribute)` is a writable array whose memory nobody else can see."""
    if getrefcount(getattr(holder, attribute)) != SOLE:  # as `_count_references` has it, without a call
        return False
    raw = getattr(holder, attribute)
    flags = raw.flags
    if raw.base is None:
        return flags.owndata and flags.writeable
    return flags.writeable and _owns_base(raw)


def is_sole_holder(holder: Any, attribute: str) -> bool:
    """Whether nothing else in Python refers to `getattr(holder, attribute)`, an array of any library."""
    return getrefcount(getattr(holder, attribute)) == SOLE


def counts_are_exact() -> bool:
    """Whether the count of an object's references says who holds it: not without the global lock."""
    return sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


def _count_references(holder: Any, attribute: str) -> int:
    return getrefcount(getattr(holder, attribute))


def _count_of_sole_holder(holder: Any, attribute: str) -> int:
    """What `_count_references` gives when nobody but `holder` holds the array, or -1, which it never gives.

    That number differs between versions of Python. Where one more holder does not always show as one more reference,
    the answer is -1 too: then every array counts as shared and is copied before it is written.
    """
    if not counts_are_exact():
        return -1
    alone = {_count_references(holder, attribute) for _ in range(_MEASUREMENTS)}
    second = getattr(holder, attribute)
    shared = {_count_references(holder, attribute) for _ in range(_MEASUREMENTS)}
    del second
    count = min(alone)
    return count if alone == {count} and shared == {count + 1} else -1


def _owns_base(raw: Any) -> bool:
    """Whether a view has its memory for itself: that of an array which nobody else holds."""
    if type(raw.base) is not _ndarray or not raw.base.flags.owndata:
        return False
    return _count_references(raw, "base") == _SOLE_BASE


class _Holder:
    def __init__(self, array: Any) -> None:
        self.array = array


SOLE = _count_of_sole_holder(_Holder(np.empty(1)), "array")
_SOLE_BASE = _count_of_sole_holder(np.empty(2)[:1], "base")
