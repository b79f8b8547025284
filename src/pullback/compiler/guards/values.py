"""Guards of values: what was found at a place, and how to tell whether what is there now means the same.

A guard has two renderings. `changes` explains, in Python: what is different, where, and how to put it back. `emit`
writes the rows of a native check (see `rows.py`); those that have none raise `UnwrittenError`, and `changes` checks.
"""

from __future__ import annotations

from collections import deque
from types import FunctionType
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np

from ... import backends
from ...autodiff.graph import Leaf
from ...tensor.core import Tensor
from ..tracing.symbol import Symbol
from . import places
from .places import Place
from .reading import MISSING, attribute, contents, everything, is_same, is_same_state, namespace


class UnwrittenError(Exception):
    """A guard has no native form."""


class Change(NamedTuple):
    """Something that is not as it was."""

    guard: Guard
    place: Place  # where it is
    now: Any
    text: str


class Look:
    """One look at everything: what each guard has found, so that what was one thing must be one thing again."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[Guard, Any] = {}


class Guard:
    """What was found when a place was first looked at. `name` and `site` say what and where for messages."""

    __slots__ = ("name", "site", "value")

    def __init__(self, value: Any, name: str, site: str) -> None:
        self.value = value
        self.name = name
        self.site = site

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        """What is different about the value that is at `place` now."""
        if self in look.found:
            if look.found[self] is not now:
                yield self._change(place, now)
            return
        look.found[self] = now
        yield from self._changes(now, place, look)

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        raise NotImplementedError

    def _change(self, place: Place, now: Any, text: str | None = None) -> Change:
        return Change(self, place, now, f"`{self.name}` {text or _difference(self.value, now)}")

    def parts(self) -> Iterator[Guard]:
        """The guards of what is in it."""
        return iter(())

    def let_go(self) -> None:
        """Hold nothing that is needed only right after the trace."""

    def put_back(self, place: Place) -> None:
        """Undo what a trace has done to the value at `place`."""
        if place.get() is not self.value:
            place.put(self.value)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Write rows that check the value in `register`, which `path` finds in Python."""
        raise UnwrittenError


def changes_at(guard: Guard, now: Any, place: Place, look: Look) -> Iterator[Change]:
    """What is different at a place; a container that is another one as a whole, not item by item."""
    for change in guard.changes(now, place, look):
        if isinstance(guard, Items) and guard.value is not None and now is not guard.value:
            yield change._replace(guard=guard, place=place, now=now)
            return
        yield change


class Plain(Guard):
    """A number, a string, None: known by type and value."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if not is_same(now, self.value):
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.equal(register, self.value)


class Promoted(Guard):
    """A number that is an input: only its type is known."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not type(self.value):
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.of_type(register, type(self.value))


class Identity(Guard):
    """Something that is known by who it is: a type, a library, a lock."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now is not self.value:
            yield self._change(place, now)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.identical(register, self.value)


class Stateful(Identity):
    """Something with a state that programs do not depend on, but that a function may not change while it is traced.

    `take` gives the state, `put` sets it: a generator of random numbers, or the options of an optimizer.
    """

    __slots__ = ("take", "put", "state")

    def __init__(self, value: Any, name: str, site: str, take: Any, put: Any) -> None:
        super().__init__(value, name, site)
        self.take, self.put = take, put
        self.state = take(value)

    @property
    def is_disturbed(self) -> bool:
        return not is_same_state(self.state, self.take(self.value))

    def put_back(self, place: Place) -> None:
        super().put_back(place)
        if self.is_disturbed:
            self.put(self.value, self.state)


class Namespace(Guard):
    """The functions and descriptors of a class and its bases: those of the user's."""

    __slots__ = ("found", "bases")

    def __init__(self, value: type, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.found = namespace(value)
        self.bases = value.__mro__

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now.__mro__ != self.bases:
            yield Change(self, place, now, f"`{self.name}` has other bases now")
        found = namespace(now)
        for key in {**self.found, **found}:
            if self.found.get(key) is not found.get(key):
                yield Change(self, place, now, f"`{key}` is another one now")
                return

    def put_back(self, place: Place) -> None:
        """What a function does to a class stays."""

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.version(self.value)


class Refused(Guard):
    """What a program cannot depend on; `reason` completes a sentence."""

    __slots__ = ("reason",)

    def __init__(self, value: Any, name: str, site: str, reason: str) -> None:
        super().__init__(value, name, site)
        self.reason = reason

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())


class Fresh(Guard):
    """What the trace itself has made."""

    __slots__ = ()

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Nothing to check."""


class Overwritten(Guard):
    """A place that was written before it was read: what was there, in `before`, does not matter."""

    __slots__ = ("before",)

    def __init__(self, before: Guard) -> None:
        super().__init__(before.value, before.name, before.site)
        self.before = before

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        return iter(())

    def put_back(self, place: Place) -> None:
        self.before.put_back(place)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Nothing to check."""


class Given(Guard):
    """A tensor or array among the arguments: an input, of which only the form is known."""

    __slots__ = ("form",)

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(None, name, site)
        self.form = form_of(value)

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if form_of(now) != self.form:
            yield Change(self, place, now, f"`{self.name}` {_difference_of_forms(self.form, form_of(now))}")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        """Inputs are looked at when they are gathered."""
        rows.of_type(register, self.form[0])


class Captured(Guard):
    """A tensor from outside: an input by reference, known by who it is."""

    __slots__ = ("form", "node", "is_carried")

    def __init__(self, value: Tensor, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.form = form_of(value)
        self.node = value._node
        self.is_carried = False  # whether calls put another tensor in its place: then only its form is known

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if now is not self.value and not self.is_carried:
            yield self._change(place, now)
        elif form_of(now) != self.form:
            yield self._change(place, now, _difference_of_forms(self.form, form_of(now)))
        elif now._node is not self.node:
            yield self._change(place, now, "is another variable now")

    def emit(self, rows: Any, register: int, path: Any) -> None:
        if self.is_carried:
            rows.of_type(register, Tensor)
        else:
            rows.identical(register, self.value)
            rows.tensor_form(self.value)


class Array(Guard):
    """A NumPy array from outside: small ones are known by their bytes, larger ones must be inputs."""

    __slots__ = ("content", "form", "is_input")

    MOST = 4096  # bytes

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.form = form_of(value)
        self.content = value.tobytes() if value.nbytes <= self.MOST else None
        self.is_input = False  # said by the trace, when it is done

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if form_of(now) != self.form:
            yield self._change(place, now, _difference_of_forms(self.form, form_of(now)))
        elif (self.content is None or self.is_input) and now is not self.value:
            yield self._change(place, now)
        elif self.content is not None and now.tobytes() != self.content:
            yield self._change(place, now, "has other values now; pass an array that changes as an argument")

    def put_back(self, place: Place) -> None:
        super().put_back(place)
        if self.content is not None and self.value.tobytes() != self.content:
            self.value[...] = np.frombuffer(self.content, self.value.dtype).reshape(self.value.shape)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        if self.content is None or self.is_input:
            rows.identical(register, self.value)
        if self.content is not None:
            if type(self.value) is not np.ndarray or not self.value.flags.c_contiguous:
                raise UnwrittenError
            rows.array(register, self.value.dtype, self.value.shape)
            rows.flags(register, self.value)
            rows.content(register, self.content)


class Items(Guard):
    """A container: known by its type, its order and what is in it."""

    __slots__ = ("keys", "items", "kind")

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.keys: list[Any] | None = None  # of a mapping
        self.items: Any = None  # guards, when all are noted

    def parts(self) -> Iterator[Guard]:
        return iter(self.items or ())

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if self.items is None:
            return  # the trace was interrupted
        if type(now) is not self.kind:
            yield self._change(place, now)
            return
        inside = places.Contents(now)
        keys = None if self.keys is None else list(now)
        if keys is not None and not _are_same(keys, self.keys):
            yield self._change(inside, now, f"had {_listed(self.keys)} and has {_listed(keys)}")
            return
        items = list(now if keys is None else now.values())
        if len(items) != len(self.items):
            yield self._change(inside, now, f"had {len(self.items)} items and has {len(items)}")
            return
        for guard, item in zip(self.items, items):
            for change in guard.changes(item, inside, look):
                yield change if change.place is not inside else change._replace(guard=self)

    def let_go(self) -> None:
        self.value = None

    def put_back(self, place: Place) -> None:
        if place.get() is not self.value and not isinstance(place, places.Contents):
            place.put(self.value)
            return
        values = [guard.value for guard in self.items]
        places.Contents(self.value).put(values if self.keys is None else zip(self.keys, values))

    def emit(self, rows: Any, register: int, path: Any) -> None:
        kind = self.kind
        if kind is dict and self.keys is not None:
            registers = rows.entries(register, self.keys)
            getters: Any = self.keys
        elif kind is list or kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
            registers = rows.items(register, kind, len(self.items))
            getters = range(len(self.items))
        else:
            raise UnwrittenError
        for guard, at, key in zip(self.items, registers, getters):
            rows.emit(guard, at, path.item(key))


class Selected(Guard):
    """A dict of which only these entries are read."""

    __slots__ = ("entries",)

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.entries: dict[Any, Guard] = {}

    def parts(self) -> Iterator[Guard]:
        return iter(self.entries.values())

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not dict:
            yield self._change(place, now)
            return
        for key, guard in self.entries.items():
            yield from guard.changes(now.get(key, MISSING), places.Entry(now, key), look)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.of_type(register, dict)
        for key, guard in self.entries.items():
            if guard.value is MISSING:
                rows.absent(register, key)
            else:
                rows.emit(guard, rows.entry(register, key), path.item(key))


class Instance(Guard):
    """An object of which single attributes were read, or all of them."""

    __slots__ = ("reads", "is_whole", "written", "contained", "is_fixed", "kind", "names")

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.names: list[str] = []  # of all that is in its dict, where all was read
        self.reads: dict[str, Guard] = {}
        self.written: dict[str, Guard] = {}  # attributes that were written before they were read, with what was there
        self.is_whole = False
        self.is_fixed = False  # whether calls write to this very object
        self.contained: Guard | None = None  # of an object that is a container too, or a number

    def parts(self) -> Iterator[Guard]:
        yield from self.reads.values()
        if self.contained is not None:
            yield self.contained

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not self.kind or (self.is_fixed and now is not self.value):
            yield self._change(place, now)
            return
        if self.contained is not None:
            yield from self.contained.changes(now, place, look)
        for name, guard in list(self.reads.items()):
            yield from changes_at(guard, attribute(now, name), places.Attribute(now, name), look)
        if self.is_whole:
            for name in everything(now).keys() - self.reads.keys() - self.written.keys():
                guard = Plain(MISSING, f"{self.name}.{name}", self.site)
                yield Change(guard, places.Attribute(now, name), attribute(now, name), f"`{guard.name}` is there now")

    def let_go(self) -> None:
        if not self.is_fixed:
            self.value = None

    def emit(self, rows: Any, register: int, path: Any) -> None:
        if self.is_fixed:
            rows.identical(register, self.value)
        rows.of_type(register, self.kind)
        rows.version(self.kind)
        if self.contained is not None:
            rows.by_python(self.contained, path)
        if self.is_whole:
            rows.whole(self, register, path)
            return
        for name, guard in self.reads.items():
            rows.read(self.kind, name, guard, register, path)


class Function(Guard):
    """A function of the user's: its code, its defaults, and those of its variables outside that were looked at."""

    __slots__ = ("fields", "cells")

    FIELDS = ("__code__", "__defaults__", "__kwdefaults__", "__dict__")

    def __init__(self, value: FunctionType, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.fields: dict[str, Guard] = {}
        self.cells: dict[int, Guard] = {}

    def parts(self) -> Iterator[Guard]:
        yield from self.fields.values()
        yield from self.cells.values()

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        code = self.fields.get("__code__")
        if code is None:
            return  # the trace was interrupted
        if type(now) is not FunctionType or now.__code__ is not code.value:
            yield self._change(place, now, "is another function now")
            return
        for name, guard in self.fields.items():
            yield from guard.changes(field(now, name), places.Attribute(now, name), look)
        for number, guard in list(self.cells.items()):
            cell = now.__closure__[number]  # type: ignore[index]
            yield from changes_at(guard, contents(cell), places.Cell(cell), look)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.function(self, register, path)


def field(function: FunctionType, name: str) -> Any:
    """A field of a function; no defaults are none at all."""
    found = getattr(function, name)
    return found if name == "__dict__" else found or None


class Parts(Guard):
    """Something that is taken apart by `split`, and known by its parts: a method, a partial, a weak reference."""

    __slots__ = ("split", "pieces", "kind")

    def __init__(self, value: Any, name: str, site: str, split: Callable[[Any], tuple[Any, ...]]) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.split = split
        self.pieces: list[Guard] = []

    def parts(self) -> Iterator[Guard]:
        return iter(self.pieces)

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not self.kind:
            yield self._change(place, now)
            return
        pieces = self.split(now)
        for guard, piece in zip(self.pieces, pieces):
            yield from guard.changes(piece, places.Fixed(piece), look)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.parts(self, register, path)


class Cache(Parts):
    """A function with a cache: emptied, it would compute again."""

    __slots__ = ("misses",)

    def __init__(self, value: Any, name: str, site: str, split: Callable[[Any], tuple[Any, ...]]) -> None:
        super().__init__(value, name, site, split)
        self.misses = 0

    def settle(self) -> None:
        """Note how often it had to compute by now."""
        self.misses = self.value.cache_info().misses

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        yield from super()._changes(now, place, look)
        if type(now) is self.kind and now.cache_info().misses < self.misses:
            yield self._change(place, now, "has an empty cache now")


# -- in words ------------------------------------------------------------------------------------------


def form_of(x: Any) -> tuple[Any, ...]:
    """Type, shape, dtype, and whether a gradient is wanted; of anything else the type."""
    if isinstance(x, Tensor):
        raw = x._data
        backend = backends.NUMPY if type(raw) is Symbol else backends.of(raw)
        return type(x), raw.shape, raw.dtype, backend, None if x._node is None else isinstance(x._node, Leaf)
    if isinstance(x, np.ndarray):
        return type(x), x.shape, x.dtype, x.flags.c_contiguous, x.flags.writeable
    return (type(x),)


def _difference_of_forms(old: tuple[Any, ...], new: tuple[Any, ...]) -> str:
    if old[0] is not new[0]:
        return f"was of type {old[0].__name__} and is of type {new[0].__name__}"
    if old[1] != new[1]:
        return f"had shape {old[1]} and has {new[1]}"
    if old[2] != new[2]:
        return f"was {old[2]} and is {new[2]}"
    if issubclass(old[0], Tensor) and old[4] != new[4]:
        return f"requires {'no' if new[4] is None else 'a'} gradient now"
    return "has another layout now"


def _difference(old: Any, new: Any) -> str:
    plain = (int, float, complex, str, bytes, type(None), np.generic, tuple, list, dict, set)
    if old is MISSING or new is MISSING:
        return "was not there before" if old is MISSING else "is gone"
    if isinstance(old, plain) and isinstance(new, plain):
        was, now = f"{old!r:.60}", f"{new!r:.60}"
        number = isinstance(old, (int, float)) and isinstance(new, (int, float)) and not isinstance(new, bool)
        if was != now:
            return f"was {was} and is {now}" + ("; pass a number that changes as a tensor" if number else "")
    if type(old) is not type(new):
        return f"was a {type(old).__name__} and is a {type(new).__name__}"
    advice = "; pass it as an argument, or write to it" if isinstance(old, (Tensor, np.ndarray)) else ""
    return f"is another {type(old).__name__}{advice}"


def _are_same(xs: list[Any], ys: list[Any] | None) -> bool:
    return ys is not None and len(xs) == len(ys) and all(map(is_same_key, xs, ys))


def is_same_key(x: Any, y: Any) -> bool:
    return x is y or is_same(x, y)


def _listed(keys: list[Any] | None) -> str:
    return "keys " + ", ".join(map(repr, keys or ()))[:80]


CONTAINERS = (list, tuple, dict, set, frozenset, deque)
