"""Programs that eager code has had compiled, found by what decides about them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable

from ...backends.numpy import native
from ...targets.locking import lock
from ..calling.building import PROCESSOR

#: Programs for so many shapes are made of one kernel: who comes with ever new shapes should not wait for the compiler.
MOST_SHAPES = 256
#: What is remembered at most, programs or that there is none.
MOST_KEYS = 1 << 13
#: Bytes of memory that all programs together may hold for themselves; beyond, the oldest are let go.
MOST_BYTES = 1 << 28


class Programs:
    """What was compiled, and what was found to have no native code: None."""

    def __init__(self) -> None:
        self._made: OrderedDict[Any, Any] = OrderedDict()
        self._counts: dict[Any, int] = {}
        self._held = 0
        #: `find(key)`; raises KeyError for what was not asked for yet.
        self.find: Callable[[Any], Any] = self._made.__getitem__

    def made(self) -> list[tuple[Any, Any]]:
        """All keys, each with its program or None."""
        return list(self._made.items())

    def make(self, key: Any, what: Any, compiled: Callable[[], Any]) -> Any:
        """What `compiled()` gives, under `key`: a program with its `nbytes`, or None. `what` it is of is counted."""
        with lock, native.native_kernels(False):
            if key in self._made:
                return self._made[key]
            made = None
            if PROCESSOR.missing() is None and self._counts.get(what, 0) < MOST_SHAPES:
                made = compiled()
                self._counts[what] = self._counts.get(what, 0) + 1
            self._made[key] = made
            self._held += 0 if made is None else made.nbytes
            while (self._held > MOST_BYTES or len(self._made) > MOST_KEYS) and len(self._made) > 1:
                _, dropped = self._made.popitem(last=False)
                self._held -= 0 if dropped is None else dropped.nbytes
        return made


PROGRAMS = Programs()
