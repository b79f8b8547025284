"""The guards of a traced function, all together: what they say right after the trace, and before each call."""

from __future__ import annotations

import array
import functools
import types
from typing import Any, Iterator, NamedTuple

import numpy as np

from ... import tree
from ...errors import TraceError
from ...tensors.tensor import Tensor
from ..tracing.symbol import Symbol
from . import values as guards
from .choosing import PLAIN
from .listening import Listener
from .notes import Root
from .places import Attribute, Cell, Entry, Fixed
from .reading import CHANCE, MISSING, attribute
from .recorder import Recorder

MOST = 20_000  # values that are looked at before each call: a model of a hundred layers has some thousand


class Carried(NamedTuple):
    """What a function leaves at a place: traced tensors, or the same plain values at every call."""

    place: Attribute | Entry | Cell
    value: Any
    before: guards.Guard  # of what was there
    is_read: bool  # whether that was read


class Guards:
    """Whether a function would read what it has read when it was traced."""

    def __init__(self, name: str, recorder: Recorder, listener: Listener, arguments: guards.Guard) -> None:
        self.name = name
        self.site = recorder.first_site  # where none better is known
        self.arguments = arguments
        self.recorder = recorder
        self.fresh = listener.fresh
        self.carried: list[Carried] = []
        for guard in list(recorder.guards.values()):
            if isinstance(guard, guards.Cache):
                recorder.note_results(guard, are_new=True)
        self.roots = list(_lasting_roots(recorder, listener.fresh))
        self._add_unreached(recorder, listener.fresh)

    def is_made(self, thing: Any) -> bool:
        """Whether the function has made something that can be changed."""
        if isinstance(thing, (type, types.FunctionType, types.MethodType, types.ModuleType)):
            return False
        return id(thing) in self.fresh or (isinstance(thing, _BUFFERS) and id(thing) not in self.recorder.guards)

    def keep_apart(self, given: tuple[Any, Any]) -> None:
        """Guard against two things becoming one."""
        by_identity = bool(self.recorder.names & {"is", "id"})
        pairs = guards.distinct_pairs(self.reached(), by_identity)
        look = guards.Look()
        self._look(given, look)
        found = look.found
        pairs = [(x, y) for x, y in pairs if x in found and y in found and found[x] is not found[y]]
        if pairs:
            roots = list(self.roots)
            everything = functools.partial(_look_at, self.arguments, roots)
            self.roots.append(Root(Fixed(None), guards.Distinct(pairs, everything)))

    def _look(self, given: tuple[Any, Any], look: guards.Look) -> guards.Change | None:
        return _look_at(self.arguments, self.roots, given, look)

    # -- right after the trace -------------------------------------------------------------------------

    def settle(self, given: tuple[Any, Any]) -> None:
        """Put back what the trace has changed. What cannot be carried from call to call is an error."""
        effects = [change for change in self._effects(given) if not self._keeps(change)]
        refusal = self.recorder.refusal
        try:
            if refusal is not None:
                raise refusal
            self._refuse_some()
            for change in effects:
                self._carry(change)
        finally:
            for change in reversed(effects):
                change.guard.put_back(change.place)

    def restore(self, given: tuple[Any, Any]) -> None:
        """Put back what a trace that failed has changed."""
        for change in reversed(list(self._effects(given))):
            change.guard.put_back(change.place)

    def close(self) -> None:
        """Hold nothing that only the trace has needed."""
        del self.recorder, self.fresh
        for guard in self.reached():
            if isinstance(guard, guards.Cache):
                guard.settle()
            if isinstance(guard, (guards.Instance, guards.Parts, guards.Array)):
                guard.let_go()
        for guard in self.reached(self.arguments):
            guard.let_go()

    def _effects(self, given: tuple[Any, Any]) -> Iterator[guards.Change]:
        look = guards.Look()
        yield from self.arguments.changes(given, Fixed(given), look)
        for place, guard in self.roots:
            if isinstance(guard, guards.Overwritten):
                for change in guards.changes_at(guard.before, place.get(), place, guards.Look()):
                    yield change._replace(guard=guard)
            else:
                yield from guards.changes_at(guard, place.get(), place, look)
        for guard in self.reached():
            if isinstance(guard, guards.Instance):
                for name, before in guard.written.items():
                    place = Attribute(guard.value, name)
                    yield from guards.changes_at(before, attribute(guard.value, name), place, guards.Look())
            elif isinstance(guard, guards.Stateful) and guard.is_disturbed:
                yield guards.Change(guard, Fixed(guard.value), guard.value, f"`{guard.name}` is in another state")

    def _refuse_some(self) -> None:
        for count, guard in enumerate(self.reached()):
            if isinstance(guard, guards.Refused):
                raise TraceError(
                    f"{guard.site or self.site}: {self.name} reads `{guard.name}`, which {guard.reason}.{_WAY_OUT}"
                )
            if count >= MOST:
                raise TraceError(
                    f"{guard.site}: {self.name} reads `{guard.name}`, one of more than {MOST:,} values that would have "
                    f"to be looked at before each call.{_WAY_OUT}"
                )

    def _keeps(self, change: guards.Change) -> bool:
        """Whether it is a property that was computed while tracing and is kept: the next call finds it."""
        place = change.place
        if not isinstance(change.guard.value, functools.cached_property) or _is_traced(change.now):
            return False
        if not isinstance(place, Attribute):
            return False
        owner: Any = self.recorder.guards[id(place.owner)]
        owner.reads[place.name] = self.recorder.note(change.now, change.guard.name)
        return True

    def _carry(self, change: guards.Change) -> None:
        place, now, guard = change.place, change.now, change.guard
        is_place = isinstance(place, (Attribute, Entry, Cell))
        is_read = not (isinstance(guard, guards.Overwritten) or self.recorder.is_written_only(place))
        if is_place and _can_be_left(guard, now, is_read, self.is_made(now)):
            self.carried.append(Carried(place, now, guard, is_read))  # type: ignore[arg-type]
            return
        site = guard.site or self.site
        if is_place and _is_traced(now) and _has_history(now):
            raise TraceError(
                f"{site}: {self.name} assigns `{guard.name}`, which it reads, a tensor with its history; that would "
                "grow from call to call. Write `.detach()`."
            )
        if isinstance(guard, guards.Stateful) and isinstance(guard.value, CHANCE):
            raise TraceError(
                f"{site}: {self.name} draws random numbers from `{guard.name}` while it is traced, and would get the "
                "same ones at every call. Draw them from `pb.random`, or outside and pass them as an argument."
            )
        if isinstance(place, Attribute):
            site = self.recorder.written.get((id(place.owner), place.name), site)
        raise TraceError(
            f"{site}: {self.name} changes what is outside of it while it is traced ({change.text.partition(';')[0]}), "
            f"which a program would do once.{_WAY_OUT_OF_EFFECTS}"
        )

    # -- before a call ---------------------------------------------------------------------------------

    def changes(self, given: tuple[Any, Any]) -> Iterator[guards.Change]:
        """What is not as it was."""
        look = guards.Look()
        yield from self.arguments.changes(given, Fixed(given), look)
        for place, guard in self.roots:
            yield from guard.changes(place.get(), place, look)

    # -- what is guarded ---------------------------------------------------------------------------------

    def _add_unreached(self, recorder: Recorder, fresh: set[int]) -> None:
        """Objects that were read, and found in a way that nobody saw: they are held."""
        reached = set(self.reached())
        for guard in list(recorder.guards.values()):
            is_own = isinstance(guard, (guards.Instance, guards.Function, guards.Stateful))
            if is_own and guard not in reached and id(guard.value) not in fresh:
                self.roots.append(Root(Fixed(guard.value), guard))

    def reached(self, *begin: guards.Guard) -> Iterator[guards.Guard]:
        """All guards: each once, those of the arguments first; or those from `begin` on."""
        return guards.reached(*(begin or (self.arguments, *(guard for _, guard in self.roots))))

    def __iter__(self) -> Iterator[str]:
        """What is looked at before each call, in words."""
        for guard in self.reached():
            is_told = guard.value is not MISSING and guard.name and not isinstance(guard, _UNTOLD)
            if is_told and next(guard.parts(), None) is None:
                yield f"{guard.name}: {guard.value!r:.60}"


def _look_at(
    arguments: guards.Guard, roots: list[Root], given: tuple[Any, Any], look: guards.Look
) -> guards.Change | None:
    """The first change there is, or None."""
    for change in arguments.changes(given, Fixed(given), look):
        return change
    for place, guard in roots:
        for change in guard.changes(place.get(), place, look):
            return change
    return None


_BUFFERS = np.ndarray, bytearray, array.array  # of which the garbage collector knows nothing
_UNTOLD = (guards.Given, guards.Items, guards.Namespace, guards.Overwritten, guards.Fresh)
_WAY_OUT = " Pass it as an argument, or leave it out of the guards with `pb.compile(ignore=[...])` and its name."
_WAY_OUT_OF_EFFECTS = (
    " Do it outside of the compiled function, return the value, or keep it in a tensor; what is known to be harmless "
    "can be left out with `pb.compile(ignore=[...])` and its name."
)


def _lasting_roots(recorder: Recorder, fresh: set[int]) -> Iterator[Root]:
    for root in recorder.roots.values():
        if root is None:
            continue
        place = root.place
        holder = getattr(place, "holder", None) or getattr(place, "cell", None) or getattr(place, "owner", None)
        if holder is None or id(holder) not in fresh:
            yield root


def _has_history(tensor: Tensor) -> bool:
    """Whether a gradient could still be asked for through a tensor."""
    return tensor._node is not None and tensor._node.saved is not None


def _is_traced(value: Any) -> bool:
    return isinstance(value, Tensor) and type(value._raw) is Symbol


def _is_plain(value: Any) -> bool:
    return type(value) in PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _can_be_left(guard: guards.Guard, now: Any, is_read: bool, is_fresh: bool) -> bool:
    """Whether calls of a program can leave at a place what the trace has left there."""
    if now is MISSING:
        return False
    if _is_traced(now):
        before = guard.value
        if not (is_read and isinstance(before, Tensor)):
            return True
        return (before.shape, before.dtype) == (now.shape, now.dtype) and not _has_history(now)
    if not is_read:
        return not is_fresh or all(_is_traced(leaf) or _is_plain(leaf) for leaf in tree.leaves(now))
    if isinstance(guard, guards.Items) and type(now) is guard.kind and not _is_plain(now):
        return len(now) == len(guard.items) and all(
            isinstance(part, guards.Captured) and _is_traced(leaf) and _can_be_left(part, leaf, True, True)
            for part, leaf in zip(guard.items, now.values() if isinstance(now, dict) else now)
        )
    settles = type(now) in (bool, str, tuple) or guard.value is None or guard.value is MISSING
    return _is_plain(now) and settles
