"""NumPy arrays that a traced function gives to operations, and writes to between two of them.

A trace takes an array by reference: calls find it where it is, with what is in it then. That is right for an array from
outside. One that the function makes and fills anew, as a buffer in a loop, has at the end of the trace what was last
written to it, while each operation needs what was in it at its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autodiff.borrowing import LARGEST_COPY, sample
from ...errors import TraceError
from ..program import Value


class GivenArrays:
    """The arrays of a trace by identity, each with what was in it when an operation took it last."""

    def __init__(self) -> None:
        self._arrays: dict[int, tuple[Any, Any]] = {}  # the array, and what was in it at first
        self._now: dict[int, Any] = {}  # what stands for it now: itself, or a copy of what was written to it

    def current(self, array: Any) -> Any:
        """What an operation takes: the array itself as long as nobody has written to it."""
        key = id(array)
        if key not in self._arrays:
            self._arrays[key] = array, _contents(array)
            self._now[key] = array
        elif _contents(array) != self._contents_now(key):
            self._refuse_large(array)
            self._now[key] = np.array(array)
        return self._now[key]

    def settle(self, lifted: dict[int, tuple[Value, Any]]) -> None:
        """At the end: where the first operation's array was written to later, what was in it then takes its place."""
        for key, (array, before) in self._arrays.items():
            if key in lifted and _contents(array) != before:
                self._refuse_large(array)
                value, _ = lifted[key]
                lifted[key] = value, np.frombuffer(before, array.dtype).reshape(array.shape).copy()
        self._arrays.clear()
        self._now.clear()

    def _contents_now(self, key: int) -> bytes:
        array, before = self._arrays[key]
        now = self._now[key]
        return before if now is array else _contents(now)

    def _refuse_large(self, array: Any) -> None:
        if array.nbytes > LARGEST_COPY:
            raise TraceError(
                f"an array of shape {array.shape} was written in place after an operation had taken it. Write into a "
                "new array every time, or pass `pb.tensor(array)`, which copies."
            )


def _contents(array: Any) -> bytes:
    return bytes(array.tobytes()) if array.nbytes <= LARGEST_COPY else sample(array)
