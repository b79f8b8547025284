"""Guards of things that have parts: containers, objects, functions, and what is taken apart."""

from __future__ import annotations

import gc
from collections import defaultdict, deque
from types import FunctionType
from typing import Any, Callable, ClassVar, Iterable, Iterator

from . import places
from .guard import Change, Guard, Look, UnwrittenError
from .places import Place
from .plain import Captured, Fresh, Identity, Plain
from .reading import MISSING, attribute, contents, everything, is_same


class Items(Guard):
    """A container: known by its type, its order and what is in it."""

    __slots__ = ("keys", "items", "kind", "more")

    MORE: ClassVar = {defaultdict: "default_factory", deque: "maxlen"}  # what some have beside what is in them

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.keys: list[Any] | None = None  # of a mapping
        self.items: Any = None  # guards, when all are noted
        self.more: dict[str, Guard] = {}

    def parts(self) -> Iterator[Guard]:
        yield from self.items or ()
        yield from self.more.values()

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if self.items is None:
            return  # the trace was interrupted
        if type(now) is not self.kind:
            yield self._change(place, now)
            return
        for name, guard in self.more.items():
            yield from guard.changes(getattr(now, name), places.Fixed(now), look)
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

    __slots__ = ("reads", "is_whole", "is_noted", "written", "contained", "is_fixed", "kind", "names")

    def __init__(self, value: Any, name: str, site: str) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.names: list[str] = []  # of all that is in its dict, where all was read
        self.reads: dict[str, Guard] = {}
        self.written: dict[str, Guard] = {}  # attributes that were written before they were read, with what was there
        self.is_whole = False
        self.is_noted = False  # whether all of it is: a trace may be interrupted in the middle of that
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
        if self.is_whole and self.is_noted:
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
            yield from changes_at(guard, field(now, name), places.Attribute(now, name), look)
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

    __slots__ = ("split", "pieces", "kind", "put", "before")

    def __init__(
        self,
        value: Any,
        name: str,
        site: str,
        split: Callable[[Any], tuple[Any, ...]],
        take: Any = None,
        put: Any = None,
    ) -> None:
        super().__init__(value, name, site)
        self.kind = type(value)
        self.split = split
        self.pieces: list[Guard] = []
        self.put = put  # gives a value back what `take` has taken of it
        self.before = None if take is None else take(value)

    def parts(self) -> Iterator[Guard]:
        return iter(self.pieces)

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        if type(now) is not self.kind:
            yield self._change(place, now)
            return
        pieces = self.split(now)
        if len(pieces) != len(self.pieces):
            yield self._change(place, now, "has other parts now")
            return
        for guard, piece in zip(self.pieces, pieces):
            for change in guard.changes(piece, places.Fixed(piece), look):
                yield change if self.put is None else change._replace(guard=self, place=place, now=now)

    def let_go(self) -> None:
        self.before = None

    def put_back(self, place: Place) -> None:
        super().put_back(place)
        if self.put is not None:
            self.put(self.value, self.before)

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.parts(self, register, path)


class Cache(Parts):
    """A function with a cache: emptied, it would compute again. What it returns again may change meanwhile."""

    __slots__ = ("misses", "results")

    def __init__(self, value: Any, name: str, site: str, split: Callable[[Any], tuple[Any, ...]]) -> None:
        super().__init__(value, name, site, split)
        self.misses = 0
        self.results: list[tuple[Any, Guard]] = []

    def parts(self) -> Iterator[Guard]:
        yield from self.pieces
        for _, guard in self.results:
            yield guard

    def settle(self) -> None:
        """Note how often it had to compute by now."""
        self.misses = self.value.cache_info().misses

    def _changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        yield from super()._changes(now, place, look)
        if type(now) is self.kind and now.cache_info().misses < self.misses:
            yield self._change(place, now, "has an empty cache now")
            return
        found = {id(result) for result in results_of(now)}
        for result, guard in self.results:
            if id(result) not in found:
                yield self._change(place, now, "returns something else now")
                return
            yield from guard.changes(result, places.Fixed(result), look)


def results_of(cache: Any) -> list[Any]:
    """What a cache holds: its results, and with them the keys of one that has a limit."""
    held = gc.get_referents(cache)  # the type, what is in a list of limited length, then a dict and the function
    at = next((i for i, thing in enumerate(held) if thing is cache.__wrapped__), 0) - 1
    if at < 0 or type(held[at]) is not dict:
        return []
    return held[1:at] if cache.cache_info().maxsize is not None else list(held[at].values())


class Distinct(Guard):
    """Things that were different ones, and could be one now as far as their own guards see: code may ask `is`, or `in`.

    The others are looked at first; `everything` looks at all of them, where native code could not.
    """

    __slots__ = ("pairs", "everything")

    def __init__(self, pairs: list[tuple[Guard, Guard]], everything: Callable[[Any, Look], Any]) -> None:
        super().__init__(None, "things", "")
        self.pairs = pairs
        self.everything = everything

    def changes(self, now: Any, place: Place, look: Look) -> Iterator[Change]:
        found = look.found
        if any(one not in found or other not in found for one, other in self.pairs):
            look = Look()
            self.everything(now, look)
            found = look.found
        for one, other in self.pairs:
            if one in found and other in found and found[one] is found[other]:
                yield Change(one, place, found[one], f"`{one.name}` is the same as `{other.name}` now")
                return

    def emit(self, rows: Any, register: int, path: Any) -> None:
        rows.distinct(self)


def distinct_pairs(every: Iterable[Guard], by_identity: bool) -> list[tuple[Guard, Guard]]:
    """Guards that one thing could satisfy, of things that are different ones. `by_identity`: containers too."""
    groups: dict[Any, list[Any]] = {}
    for guard in every:
        if isinstance(guard, Instance) or (by_identity and isinstance(guard, Items) and guard.kind is not tuple):
            groups.setdefault((type(guard), guard.kind), []).append(guard)
    return [
        (one, other)
        for group in groups.values()
        for i, one in enumerate(group)
        for other in group[:i]
        if one.value is not other.value and not _exclude(one, other, 3)
    ]


def _exclude(one: Guard, other: Guard, depth: int) -> bool:
    """Whether nothing can satisfy both guards."""
    if one is other or depth == 0 or isinstance(one, Fresh) or isinstance(other, Fresh):
        return False
    if type(one) is not type(other):
        return isinstance(one, _FIRM) and isinstance(other, _FIRM)
    if isinstance(one, Plain):
        return not is_same(one.value, other.value)
    if isinstance(one, Identity) or (isinstance(one, Captured) and not one.is_carried and not other.is_carried):  # type: ignore[attr-defined]
        return one.value is not other.value
    if isinstance(one, Instance) and isinstance(other, Instance):
        if one.kind is not other.kind or (one.is_fixed and other.is_fixed and one.value is not other.value):
            return True
        return any(_exclude(one.reads[name], other.reads[name], depth - 1) for name in one.reads.keys() & other.reads)
    if isinstance(one, Items) and isinstance(other, Items):
        if one.kind is not other.kind or one.keys != other.keys or len(one.items or ()) != len(other.items or ()):
            return True
        return any(_exclude(x, y, depth - 1) for x, y in zip(one.items or (), other.items or ()))
    return False


_FIRM = Plain, Identity, Captured, Items, Instance, Function


def changes_at(guard: Guard, now: Any, place: Place, look: Look) -> Iterator[Change]:
    """What is different at a place; a container that is another one as a whole, not item by item."""
    for change in guard.changes(now, place, look):
        if isinstance(guard, Items) and guard.value is not None and now is not guard.value:
            yield change._replace(guard=guard, place=place, now=now)
            return
        yield change


def _are_same(xs: list[Any], ys: list[Any] | None) -> bool:
    return ys is not None and len(xs) == len(ys) and all(map(is_same_key, xs, ys))


def is_same_key(x: Any, y: Any) -> bool:
    return x is y or is_same(x, y)


def _listed(keys: list[Any] | None) -> str:
    return "keys " + ", ".join(map(repr, keys or ()))[:80]


CONTAINERS = (list, tuple, dict, set, frozenset, deque)
