"""What changes from call to call without being a tensor: an optimizer's numbers, and generators' places."""

from __future__ import annotations

from typing import Any

import numpy as np

from .symbol import Symbol


class Numbers:
    """The numbers of an optimizer's formula (see `Optimizer.constants`) as one input array."""

    __slots__ = ("optimizer", "group", "slot", "array", "last", "symbols")

    def __init__(self, optimizer: Any, group: dict[str, Any], slot: Any, recorder: Any) -> None:
        self.optimizer = optimizer
        self.group = group
        self.slot = slot  # whose count of steps is that of all that share these numbers
        values = optimizer.constants(group, slot.step + 1)
        self.array = np.zeros(len(values), slot.working)
        self.last: Any = None
        whole = Symbol(recorder.lift_array(self.array), recorder)
        self.symbols = tuple([recorder.record("getitem", (whole, i)) for i in range(len(values))])

    def refresh(self) -> None:
        """Write the numbers of the next step."""
        values = self.optimizer.constants(self.group, self.slot.step + 1)
        if values != self.last:
            self.array[:] = values
            self.last = values


class Draws:
    """A generator's key and place in its stream as one input array, and how many words a call takes."""

    __slots__ = ("generator", "array", "taken", "recorder", "seed", "_key", "_offset")

    def __init__(self, generator: Any, recorder: Any, seed: int | None = None) -> None:
        self.generator = generator
        self.seed = seed  # the key that every call starts anew from; None if calls go on where the last one ended
        self.array = np.zeros(2, np.uint64)
        self.taken = 0
        self.recorder = recorder
        whole = Symbol(recorder.lift_array(self.array), recorder)
        self._key = recorder.record("getitem", (whole, 0))
        self._offset = recorder.record("getitem", (whole, 1))

    def reserve(self, count: int) -> tuple[Any, Any]:
        """The key, and the place of the next `count` words."""
        before = self.taken
        self.taken += count
        return self._key, self._offset + before if before else self._offset

    def refresh(self) -> None:
        """Take this call's words, so that nobody else gets them."""
        if self.seed is not None:
            self.generator.state = {"key": self.seed, "offset": 0}
        key, offset = self.generator.next_key(self.taken)
        self.array[0], self.array[1] = key, offset & 0xFFFFFFFFFFFFFFFF


class GroupWatch:
    """A parameter group, and which of its options the formula has looked at."""

    __slots__ = ("optimizer", "group", "options")

    def __init__(self, optimizer: Any, group: dict[str, Any]) -> None:
        self.optimizer = optimizer
        self.group = group
        self.options = _Watched(group)

    def changed(self) -> str | None:
        """How an option differs from what the formula saw, or None."""
        for name, seen in self.options.seen.items():
            now = self.group.get(name)
            if now != seen:
                return f"option {name!r} of {type(self.optimizer).__name__} was {seen!r} and is {now!r}"
        return None


class _Watched(dict[str, Any]):
    """Options that remember which of them were read."""

    __slots__ = ("seen",)

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self.seen: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = self.seen[name] = super().__getitem__(name)
        return value
