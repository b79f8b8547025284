"""The native table of a span of calls: records, the places of their arrays, and what is filled in at each run."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from ...kernels import Location
from . import dispatch as runtime
from .sharing import Shared, SharedLoop

#: Parts of a loop that all threads go through, however many they are.
_ALL = 1 << 30


class Table:
    """Records of calls at `address`, in `words` with all that they point to; `patches` are what a run fills in.

    `memory` gives a buffer's bytes where they stay the same, or the number of its address where they do not.
    """

    def __init__(
        self, calls: Sequence[Shared | SharedLoop], memory: Callable[[Location], np.ndarray | int], threads: int
    ) -> None:
        self._memory = memory
        self._threads = threads
        self._patches: list[tuple[int, int, int]] = []
        self._places = np.zeros(self._count(calls) + 1, np.int64)
        self._first = int(self._places.ctypes.data)
        self._used = 0
        self.words: list[np.ndarray] = [self._places]
        self.address = self._records(calls, [])
        self.patches = np.array(self._patches, np.int64).reshape(-1, runtime.PATCH_WORDS)

    def _count(self, calls: Sequence[Shared | SharedLoop]) -> int:
        """How many arrays calls have, those in loops once for each thread."""
        return sum([
            self._copies(one) * self._count(one.body)
            if isinstance(one, SharedLoop)
            else len(one.call.reads) + len(one.call.writes)
            for one in calls
        ])  # fmt: skip

    def _copies(self, one: SharedLoop) -> int:
        return self._threads if one.parts > 1 else 1

    def _records(self, calls: Sequence[Shared | SharedLoop], around: list[list[tuple[int, int]]]) -> int:
        """Write calls; `around` collects for each loop around them what moves: addresses, and bytes per step."""
        records = np.zeros((len(calls), runtime.CALL_WORDS), np.int64)
        self.words.append(records)
        for record, one in zip(records, calls):
            if isinstance(one, SharedLoop):
                parts = _ALL if one.parts > 1 else 1
                record[:] = (0, self._loop(one, around), 0, parts, 0, one.barrier)
            else:
                places = self._placed(one, around)
                record[:] = (one.native.address, places, one.native.emitted.units, one.parts, one.chunk, one.barrier)
        return int(records.ctypes.data)

    def _placed(self, one: Shared, around: list[list[tuple[int, int]]]) -> int:
        """Where the addresses of a call's arrays are, which are written."""
        begin = self._used
        for i, location in enumerate((*one.call.reads, *one.call.writes)):
            memory: Any = self._memory(location)
            place = self._first + 8 * self._used
            if isinstance(memory, int):
                self._patches.append((place, memory, location.offset))
            else:
                self._places[self._used] = memory.ctypes.data + location.offset
            for moves, distances in zip(around, one.moves):
                if distances[i]:
                    moves.append((place, distances[i]))
            self._used += 1
        return self._first + 8 * begin

    def _loop(self, one: SharedLoop, around: list[list[tuple[int, int]]]) -> int:
        """The records of a loop, one for each thread that goes through it."""
        loops = np.zeros((self._copies(one), runtime.LOOP_WORDS), np.int64)
        self.words.append(loops)
        for loop in loops:
            moves: list[tuple[int, int]] = []
            calls = self._records(one.body, [*around, moves])
            moved = np.array(moves, np.int64).reshape(-1, runtime.MOVE_WORDS)
            self.words.append(moved)
            loop[:] = (calls, len(one.body), one.steps, moved.ctypes.data, len(moved))
        return int(loops.ctypes.data)
