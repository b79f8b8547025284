"""Places that keep changing: a program for each value would be made, and never used again."""

from __future__ import annotations

from typing import Any

from ...errors import TraceError
from ...tensors.tensor import Tensor
from ..guards.places import Attribute, Cell, Entry, OfClass
from ..guards.values import Array, Captured, Change, Given

_MOST_CHANGES = 3  # before what can be an input becomes one
_MOST_PROGRAMS = 6  # for the values of what cannot
_WITHIN_CALLS = 16
_PROMOTABLE = (Attribute, Cell, Entry, OfClass)


def _of_class(place: Any) -> Any:
    """The place in a class of what seems to be an attribute of an object, if the object has none of that name."""
    if isinstance(place, Attribute):
        for base in type(place.owner).__mro__:
            if place.name in base.__dict__:
                is_own = place.get() is not base.__dict__[place.name]
                return place if is_own else OfClass(base, place.name)
    return place


class Stability:
    """Why a function was traced again, and when. Numbers, arrays and tensors that keep changing become inputs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changes: dict[str, list[int]] = {}
        self._refused: dict[str, str] = {}  # what cannot be an input, and why
        self.places: dict[str, Any] = {}  # of what is an input, by its name
        self.paths: dict[str, str] = {}  # of such numbers among the arguments

    def note(self, change: Change, call: int) -> str | None:
        """A change makes a new trace. What has changed too often in a few calls becomes an input, or is an error.

        Returns the name of what has just become an input.
        """
        guard, name = change.guard, change.guard.name
        if isinstance(guard, Given) or not guard.site or name.startswith("argument "):
            return None  # what is given, and the library's own state: a warning says that there are many of those
        is_number = type(guard.value) in (int, float) and type(change.now) in (int, float)
        can_be_input = is_number or (isinstance(guard, Array) and guard.is_input)
        can_be_input = can_be_input or (isinstance(guard, Captured) and type(change.now) is Tensor)
        times = self._count(name, call)
        if times >= _MOST_CHANGES and can_be_input and name not in self._refused:
            place = _of_class(change.place)
            if isinstance(place, _PROMOTABLE):
                if place not in self.places.values():
                    self.places[name] = place
                return name
        if times > _MOST_PROGRAMS:
            self.refuse(change)
        return None

    def note_argument(self, path: str, name: str, call: int) -> str | None:
        """A number among the arguments makes a new trace; as `note`."""
        name = f"argument {name}"
        if self._count(name, call) >= _MOST_CHANGES and name not in self._refused:
            self.paths[name] = path
            return name
        return None

    def give_up(self, name: str, why: str) -> None:
        """A number could not be made an input."""
        self.places.pop(name, None)
        self.paths.pop(name, None)
        self._refused[name] = why

    def _count(self, name: str, call: int) -> int:
        """How often it has changed in the last few calls, now included."""
        recent = [at for at in self._changes.get(name, ()) if call - at < _WITHIN_CALLS]
        self._changes[name] = [*recent, call]
        return len(recent) + 1

    def refuse(self, change: Change) -> None:
        """Say what has changed too often, if it has."""
        name, times = change.guard.name, len(self._changes.get(change.guard.name, ()))
        if times <= _MOST_PROGRAMS:
            return
        why = self._refused.get(name)
        raise TraceError(
            f"{change.guard.site}: {self._name} reads `{name}`, which keeps changing ({times} times within "
            f"{_WITHIN_CALLS} calls), and each change makes another program"
            + (f"; it cannot be made an input: {why.rstrip('.')}" if why else "")
            + ". Pass it as an argument, keep what changes in a tensor, or leave it out of the guards with "
            "`pb.compile(ignore=[...])` and its name."
        )
