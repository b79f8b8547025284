"""Places that keep changing: a program for each value would be made, and never used again."""

from __future__ import annotations

from ...errors import TraceError
from ..guards.values import Change, Given, Plain

_MOST_CHANGES = 6
_WITHIN_CALLS = 16


class Stability:
    """Why a function was traced again, and when."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changes: dict[str, list[int]] = {}

    def note(self, change: Change, call: int) -> None:
        """A change makes a new trace. What has changed too often in a few calls, and is no number, is an error."""
        guard = change.guard
        if isinstance(guard, Given) or not guard.site or guard.name.startswith("argument "):
            return  # what is given, and the library's own state: a warning says that there are many of those
        recent = [at for at in self._changes.get(guard.name, ()) if call - at < _WITHIN_CALLS]
        self._changes[guard.name] = [*recent, call]
        if len(recent) < _MOST_CHANGES or _is_number(guard):
            return
        raise TraceError(
            f"{guard.site}: {self._name} reads `{guard.name}`, which has changed {len(recent) + 1} times within "
            f"{_WITHIN_CALLS} calls, and each change makes another program. Pass it as an argument, keep what changes "
            "in a tensor, or leave it out of the guards with `pb.compile(ignore=[...])` and its name."
        )


def _is_number(guard: object) -> bool:
    return isinstance(guard, Plain) and isinstance(guard.value, (int, float, complex))
