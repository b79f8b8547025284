"""What changes from call to call without being a tensor: an optimizer's numbers, and generators' places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...random import default_generator
from .symbol import Symbol


class Numbers:
    """The numbers of an optimizer's formula (see `Optimizer.constants`) as one input array."""

    __slots__ = ("optimizer", "group", "slot", "slots", "ahead", "array", "last", "symbols")

    def __init__(
        self, optimizer: Any, group: dict[str, Any], slot: Any, working: Any, ahead: int, recorder: Any
    ) -> None:
        self.optimizer = optimizer
        self.group = group
        self.slot = slot  # whose count of steps is that of all that share these numbers
        self.slots: list[Any] = []  # these
        self.ahead = ahead  # which step of a call it is: the first is 1
        values = optimizer.constants(group, slot.step + ahead)
        self.array = np.zeros(len(values), working)
        self.last: Any = None
        whole = Symbol(recorder.lift_array(self.array), recorder)
        self.symbols = tuple([recorder.record("getitem", (whole, i)) for i in range(len(values))])

    def refresh(self) -> None:
        """Write the numbers of the next step."""
        values = self.optimizer.constants(self.group, self.slot.step + self.ahead)
        if values != self.last:
            self.array[:] = values
            self.last = values


class Places:
    """Where in a stream of random words numbers are drawn, as symbols."""

    __slots__ = ("recorder", "taken", "_key", "_offset")

    def __init__(self, recorder: Any, key: Any, offset: Any) -> None:
        self.recorder = recorder
        self.taken = 0  # words of a call
        self._key = key
        self._offset = offset

    def reserve(self, count: int) -> tuple[Any, Any]:
        """The key, and the place of the next `count` words."""
        before = self.taken
        self.taken += count
        if not before:
            return self._key, self._offset
        if self.recorder.library is None:
            return self._key, self._offset + before
        return self._key, self.recorder.record("moved_on", (self._offset, before))


class SplitOff(Places):
    """The stream of a generator that the function splits off another one: every call draws its key."""

    __slots__ = ("generator", "array")

    def __init__(self, generator: Any, recorder: Any, key: Any) -> None:
        self.generator = generator  # which must not make place for another one while it is known by its address
        self.array = np.zeros((), np.uint64) if recorder.library is None else np.zeros(2, np.uint32)
        super().__init__(recorder, key, Symbol(recorder.lift_array(self.array), recorder))


class Draws(Places):
    """A generator's key and place in its stream as one input array, and how many words a call takes."""

    __slots__ = ("_generator", "array", "start", "_words")

    def __init__(self, generator: Any, recorder: Any, start: tuple[int, int] | None = None) -> None:
        self._generator = generator  # None for the default one, which may be another one in the next call
        self.start = start  # key and offset that every call starts from; None if calls go on where the last one ended
        # libraries without 64-bit integers take each of the two in halves, the lower one first
        self.array = np.zeros(2, np.uint64) if recorder.library is None else np.zeros((2, 2), np.uint32)
        self._words = self.array.view("<u8").reshape(2)
        whole = Symbol(recorder.lift_array(self.array), recorder)
        super().__init__(recorder, recorder.record("getitem", (whole, 0)), recorder.record("getitem", (whole, 1)))

    @property
    def generator(self) -> Any:
        return default_generator() if self._generator is None else self._generator

    def refresh(self) -> None:
        """Take this call's words, so that nobody else gets them."""
        if self.start is not None:
            self.generator.state = {"key": self.start[0], "offset": self.start[1]}
        key, offset = self.generator.next_key(self.taken)
        self._words[0], self._words[1] = key, offset & 0xFFFFFFFFFFFFFFFF


class Options(dict[str, Any]):
    """The options of an optimizer's group, which remember which of them were read."""

    __slots__ = ("optimizer", "group", "seen")

    def __init__(self, optimizer: Any, group: dict[str, Any]) -> None:
        super().__init__(group)
        self.optimizer = optimizer
        self.group = group
        self.seen: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = self.seen[name] = super().__getitem__(name)
        return value
