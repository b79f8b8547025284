"""A stream of random 32-bit words, and numbers of a kind made of them."""

from __future__ import annotations

import os
from _thread import allocate_lock as Lock  # `threading` would take half a millisecond to import
from typing import Any, TypedDict

import numpy as np

from .. import modes
from ..backends.numpy.random import high_part, joined, philox_uint32
from .arguments import integer, size_of

KEYS = 1 << 64
_CHUNK = 1 << 13  # numbers made at once: their intermediate arrays stay in the cache

_moving = Lock()  # held for the moment in which a generator moves on


def _in_child() -> None:
    global _moving
    _moving = Lock()  # a thread that had the other one is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class State(TypedDict):
    """Where a generator is: enough to go on from there, and made of integers, so that JSON can hold it."""

    key: int
    offset: int


class Stream:
    """A key, and a place among the words that it stands for."""

    __slots__ = ("_key", "_offset")

    def __init__(self, seed: int | None = None) -> None:
        self.seed(seed)

    def seed(self, seed: int | None = None) -> None:
        """Start anew from `seed`, an integer below 2**64; without one, from the operating system's entropy."""
        key = int.from_bytes(os.urandom(8), "little") if seed is None else integer("seed", seed, 0, KEYS)
        trace = modes.tracing()
        if trace is not None and trace.seed(self, key):
            return
        with _moving:
            self._key, self._offset = key, 0

    @property
    def state(self) -> State:
        """The key and the offset, as a dictionary of integers; assign it to go back to this point."""
        modes.refuse_in_trace(
            "Generator.state is where a generator is, which changes with every call. Read it outside."
        )
        with _moving:
            return {"key": self._key, "offset": self._offset}

    @state.setter
    def state(self, state: State) -> None:
        key = integer("state['key']", state["key"], 0, KEYS)
        offset = integer("state['offset']", state["offset"], 0, 4 * KEYS)
        trace = modes.tracing()
        if trace is not None and trace.seed(self, key, offset):
            return
        with _moving:
            self._key, self._offset = key, offset

    def next_key(self, count: int) -> tuple[int, int]:
        """Reserve the next `count` 32-bit words: (key, offset) to pass to a kernel. No other caller gets them.

        The offset is a multiple of four. Threads may call this at the same time.

        >>> import pullback as pb
        >>> generator = pb.random.Generator(5)
        >>> generator.next_key(6), generator.next_key(1)
        ((5, 0), (5, 8))
        """
        count = integer("count", count, 0, KEYS)
        mapping = modes.mapping()
        if mapping is not None:
            count = mapping.drawn_at_once(count)
        trace = modes.tracing()
        return self._reserved(count) if trace is None else trace.next_key(self, -(-count // 4) * 4)

    def _reserved(self, count: int) -> tuple[int, int]:
        with _moving:
            key, offset = self._key, self._offset
            self._offset = offset + -(-count // 4) * 4
        return key, offset

    def _moved(self, before: State, after: State) -> bool:
        """Go on at `after` if this generator still is at `before`, where another thread may have moved it on."""
        with _moving:
            if (self._key, self._offset) != (before["key"], before["offset"]):
                return False
            self._key, self._offset = after["key"], after["offset"]
            return True

    # -- from words to numbers ---------------------------------------------------------------------

    def _made(self, shape: tuple[int, ...], words: int, convert: Any, whole: int = 1) -> Any:
        """`convert` applied to rows of 32-bit words, `words` per number; it makes `whole` numbers at a time."""
        size = size_of(shape)
        length = -(-size // whole) * whole
        key, offset = self.next_key(length * words)
        values = None
        for start in range(0, length, _CHUNK):
            count = min(_CHUNK, length - start)
            raw = philox_uint32(key, offset + start * words, count * words)
            part = convert(raw.reshape(count, words).T)
            if count == length:
                values = part
            else:
                if values is None:  # all of it at once: where there is not enough, nothing is computed in vain
                    values = np.empty(length, part.dtype)
                values[start : start + count] = part
        if values is None:
            values = convert(np.empty((words, 0), np.uint32))
        return values[:size].reshape(shape)

    def _below(self, bound: int, shape: tuple[int, ...]) -> Any:
        """uint64 numbers below `bound`; the probabilities are equal up to 2**-32 or better."""
        if bound == KEYS:
            return self._made(shape, 2, joined)
        if bound <= 1 << 32:
            return self._made(shape, 2, lambda words: high_part(words, (bound,)))
        return self._made(shape, 4, lambda words: high_part(words, (bound & 0xFFFFFFFF, bound >> 32)))

    def _order(self, length: int) -> Any:
        """A random order of `length` things: that of random 64-bit numbers."""
        numbers = self._made((length,), 2, joined)
        order = np.argsort(numbers)  # several times as fast as the stable sort
        ordered = numbers[order]
        has_ties = np.any(ordered[1:] == ordered[:-1])  # which machines may leave in different orders
        return np.argsort(numbers, kind="stable") if has_ties else order
