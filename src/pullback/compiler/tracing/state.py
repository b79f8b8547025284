"""What changes from call to call without being a tensor: an optimizer's numbers, and generators' places."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autodiff.hooks import changes as hook_changes, hooks
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

    def changed(self) -> str | None:
        """Whether the parameters that share the numbers have taken different counts of steps meanwhile."""
        if any(slot.step != self.slot.step for slot in self.slots):
            return f"parameters of {type(self.optimizer).__name__} have taken different numbers of steps"
        return None


class AttributeWatch:
    """A number of the library's own that belongs to the program, such as a loss scaler's scale."""

    __slots__ = ("thing", "name", "seen")

    def __init__(self, thing: Any, name: str) -> None:
        self.thing = thing
        self.name = name
        self.seen = getattr(thing, name)

    def changed(self) -> str | None:
        now = getattr(self.thing, self.name)
        if now == self.seen:
            return None
        return f"{self.name.lstrip('_')} of {type(self.thing).__name__} was {self.seen!r} and is {now!r}"


class ValuesWatch:
    """The values of a tensor or array from outside that decided what was traced, watched as an attribute is."""

    __slots__ = ("holder", "seen")
    name = "content"

    def __init__(self, holder: Any, seen: bytes) -> None:
        self.holder = holder
        self.seen = seen

    @property
    def thing(self) -> ValuesWatch:
        return self

    @property
    def content(self) -> Any:
        """The bytes that are there now."""
        array = getattr(self.holder, "_data", self.holder)
        return array.tobytes() if isinstance(array, np.ndarray) else None

    def changed(self) -> str | None:
        if self.content == self.seen:
            return None
        return f"a tensor or array of shape {tuple(self.holder.shape)} from outside, which decides, has other values"


class HookWatch:
    """The hooks on variables from outside: a walk inside the function calls them while it is traced."""

    __slots__ = ("nodes", "seen", "count")

    def __init__(self, nodes: list[Any]) -> None:
        self.nodes = nodes
        self.count = hook_changes[0]
        self.seen = self._hooks()

    def _hooks(self) -> list[Any]:
        return [list(hooks.get(node, ())) for node in self.nodes]

    def changed(self) -> str | None:
        if self.count == hook_changes[0]:
            return None
        count = hook_changes[0]
        if self._hooks() != self.seen:
            return "a variable from outside has other hooks now"
        self.count = count  # they were put elsewhere
        return None


class OptimizerWatch:
    """An optimizer's parameters, and the buffers of those that were updated."""

    __slots__ = ("optimizer", "sizes", "buffers")

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.sizes = [len(slots) for slots in optimizer._slots]
        self.buffers: list[tuple[Any, list[Any]]] = []  # loading a state gives a slot another list

    def changed(self) -> str | None:
        if [len(slots) for slots in self.optimizer._slots] != self.sizes:
            return f"{type(self.optimizer).__name__} has other parameters now"
        if any(slot.buffers is not buffers for slot, buffers in self.buffers):
            return f"{type(self.optimizer).__name__} has another state now"
        return None


class Draws:
    """A generator's key and place in its stream as one input array, and how many words a call takes."""

    __slots__ = ("_generator", "array", "taken", "recorder", "start", "_key", "_offset")

    def __init__(self, generator: Any, recorder: Any, start: tuple[int, int] | None = None) -> None:
        self._generator = generator  # None for the default one, which may be another one in the next call
        self.start = start  # key and offset that every call starts from; None if calls go on where the last one ended
        self.array = np.zeros(2, np.uint64)
        self.taken = 0
        self.recorder = recorder
        whole = Symbol(recorder.lift_array(self.array), recorder)
        self._key = recorder.record("getitem", (whole, 0))
        self._offset = recorder.record("getitem", (whole, 1))

    @property
    def generator(self) -> Any:
        return default_generator() if self._generator is None else self._generator

    def reserve(self, count: int) -> tuple[Any, Any]:
        """The key, and the place of the next `count` words."""
        before = self.taken
        self.taken += count
        return self._key, self._offset + before if before else self._offset

    def refresh(self) -> None:
        """Take this call's words, so that nobody else gets them."""
        if self.start is not None:
            self.generator.state = {"key": self.start[0], "offset": self.start[1]}
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
