"""What a guard is: what was found at a place, and how to tell whether what is there now means the same.

A guard has two renderings. `changes` explains, in Python: what is different, where, and how to put it back. `emit`
writes the rows of a native check (see `rows.py`); those that have none raise `UnwrittenError`, and `changes` checks.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from ... import backends
from ...autodiff.graph import Leaf
from ...tensors.tensor import Tensor
from ..host import host_dtype
from ..tracing.symbol import Symbol
from .places import Place
from .reading import MISSING


class UnwrittenError(Exception):
    """A guard has no native form."""


class Change(NamedTuple):
    """Something that is not as it was."""

    guard: Guard
    place: Place  # where it is
    now: Any
    text: str


class Look:
    """One look at everything: what each guard has found, so that what was one thing must be one thing again."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[Guard, Any] = {}


class Guard:
    """What was found when a place was first looked at. `name` and `site` say what and where for messages."""

    __slots__ = ("name", "site", "value")

    def __init__(self, value: Any, name: str, site: str) -> None:
        self.value = value
        self.name = name
        self.site = site

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        """What is different about the value that is at `place` now."""
        if self in look.found:
            if look.found[self] is not now:
                yield self._change(place, now)
            return
        look.found[self] = now
        yield from self._changes(now, place, look)

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        raise NotImplementedError

    def _change(self, place: Place, now: Any, text: str | None = None) -> Change:
        return Change(self, place, now, f"`{self.name}` {text or difference(self.value, now)}")

    def parts(self) -> Iterator[Guard]:
        """The guards of what is in it."""
        return iter(())

    def let_go(self) -> None:
        """Hold nothing that is needed only right after the trace."""

    def put_back(self, place: Place) -> None:
        """Undo what a trace has done to the value at `place`."""
        if place.get() is not self.value:
            place.put(self.value)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Write rows that check the value in `register`, which `path` finds in Python."""
        raise UnwrittenError


def reached(*begin: Guard) -> Iterator[Guard]:
    """Guards and what is in them: each once."""
    seen: set[Guard] = set()
    waiting = list(reversed(begin))
    while waiting:
        guard = waiting.pop()
        if guard not in seen:
            seen.add(guard)
            yield guard
            waiting.extend(guard.parts())


# -- in words ------------------------------------------------------------------------------------------


def form_of(x: Any) -> tuple[Any, ...]:
    """Type, shape, dtype, and whether a gradient is wanted; of anything else the type."""
    if isinstance(x, Tensor):
        raw, backend = x._raw, backends.NUMPY
        shape, dtype = raw.shape, raw.dtype
        if type(raw) is Symbol:
            backend = raw.recorder.library or raw.recorder.memory
        elif type(raw) is not np.ndarray:
            backend = backends.of(raw)
            shape, dtype = tuple(shape), host_dtype(dtype)
        return type(x), shape, dtype, backend, None if x._node is None else isinstance(x._node, Leaf)
    if isinstance(x, np.ndarray):
        return type(x), x.shape, x.dtype, x.flags.c_contiguous, x.flags.writeable
    return (type(x),)


def difference_of_forms(old: tuple[Any, ...], new: tuple[Any, ...]) -> str:
    if old[0] is not new[0]:
        return f"was of type {old[0].__name__} and is of type {new[0].__name__}"
    if old[1] != new[1]:
        return f"had shape {old[1]} and has {new[1]}"
    if old[2] != new[2]:
        return f"was {old[2]} and is {new[2]}"
    if issubclass(old[0], Tensor) and old[4] != new[4]:
        return f"requires {'no' if new[4] is None else 'a'} gradient now"
    return "has another layout now"


def difference(old: Any, new: Any) -> str:
    plain = (int, float, complex, str, bytes, type(None), np.generic, tuple, list, dict, set)
    if old is MISSING or new is MISSING:
        return "was not there before" if old is MISSING else "is gone"
    if isinstance(old, plain) and isinstance(new, plain):
        was, now = f"{old!r:.60}", f"{new!r:.60}"
        number = isinstance(old, (int, float)) and isinstance(new, (int, float)) and not isinstance(new, bool)
        if was != now:
            return f"was {was} and is {now}" + ("; pass a number that changes as a tensor" if number else "")
    if type(old) is not type(new):
        return f"was a {type(old).__name__} and is a {type(new).__name__}"
    advice = "; pass it as an argument, or write to it" if isinstance(old, (Tensor, np.ndarray)) else ""
    return f"is another {type(old).__name__}{advice}"
