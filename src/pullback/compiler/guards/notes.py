"""Noting values: the guard that each gets, and the guards of what is in it."""

from __future__ import annotations

import abc
import enum
import functools
import operator
import os
import types
from collections.abc import Iterable, Mapping, Set
from typing import Any, Callable, NamedTuple

import numpy as np

from ...autodiff.graph import Leaf
from ...errors import TraceError
from ...tensors.tensor import Tensor
from ..tracing.blind import Blind
from ..tracing.number import Number
from ..tracing.symbol import Symbol
from . import values as guards
from .choosing import OF_BASES, PLAIN, guard_for, guard_of_array, is_bag, is_container
from .ownership import is_users_class, is_users_module
from .places import Attribute, Computed, Entry, Fixed, OfClass, Place
from .reading import CHANCE, MISSING, attributes, contents, everything
from .told_names import (
    COMPUTED,
    OF_CLASSES,
    OF_FUNCTIONS,
    SEARCHING,
    TO_CLASSES,
)


class Root(NamedTuple):
    """A place that guards begin from."""

    place: Place
    guard: guards.Guard


class Notes(abc.ABC):
    """The notes so far. `roots` are the places that code has looked at."""

    def __init__(self, name: str, ignore: tuple[str, ...] = ()) -> None:
        self.name = name
        self.ignore = frozenset(ignore)
        self.roots: dict[Any, Root | None] = {}
        self.guards: dict[int, guards.Guard] = {}  # by identity of what they guard
        self.names: set[str] = set()  # that code which ran may look up in objects
        self.loaded: set[str] = set()  # attributes that code which ran may read
        self.holders: dict[int, Any] = {}  # classes, modules and optimizers, of which attributes are noted by name
        self.refusal: TraceError | None = None  # also if the function has caught it
        self.written: dict[tuple[int, str], str] = {}  # sites of the last writes, by owner and name
        self.classes: list[type] = []  # of users' objects: to be listened to
        self.stored: set[str] = set()  # attributes that code which ran may write
        self.bags: list[guards.Instance] = []  # plain objects of Python's own, of which attributes are noted by name
        self.unheard: set[type] = set()  # classes that nobody listens to: all attributes of their objects are noted
        self.site = self.first_site = ""
        self.young: Callable[[], list[Any]] = list  # what was made since the function was called
        self.is_thorough = False  # whether all that could be read counts as read
        self.depth = 0
        self._is_bypassed = False  # whether code writes attributes in a way that nobody hears

    # -- values ------------------------------------------------------------------------------------

    def note(self, value: Any, name: str, given: bool = False) -> guards.Guard:
        """The guard of a value. `given`: it is an argument, so tensors and arrays in it are inputs."""
        kind = type(value)
        if kind in PLAIN or (issubclass(kind, (np.generic, np.dtype)) and kind is not np.void):
            return guards.Plain(value, name, self.site)
        if given and (kind is np.ndarray or (kind is Tensor and type(value._node) is not Leaf)):
            return guards.Given(value, name, self.site)
        known = self.guards.get(id(value))
        if known is not None:
            return known
        if kind is Number:
            return guards.Promoted(value._about[1], name, self.site)
        if kind is Blind:
            hidden = guards.Array(value._real, name, self.site)
            hidden.content, hidden.is_input = None, True
            return hidden
        if issubclass(kind, Tensor):
            if type(value._raw) is Symbol:
                return guards.Fresh(None, name, self.site)
            made: guards.Guard = guards.Captured(value, name, self.site)
        else:
            made = guard_for(self, value, kind, name)
        self.guards[id(value)] = made
        self.depth += 1
        try:
            self._note_parts(made, value, kind, name, given)
        finally:
            self.depth -= 1
        return made

    def _note_parts(self, made: guards.Guard, value: Any, kind: type, name: str, given: bool) -> None:
        if isinstance(made, guards.Items):
            self._note_items(made, value, name, given)
        elif isinstance(made, guards.Parts):
            made.pieces = [self.note(part, name, given) for part in made.split(value)]
            if kind in (operator.attrgetter, operator.methodcaller):
                self.look_for(
                    frozenset(
                        part for path in value.__reduce__()[1] if isinstance(path, str) for part in path.split(".")
                    )
                )
            if isinstance(made, guards.Cache):
                self.note_results(made)
                if isinstance(value.__wrapped__, types.FunctionType):
                    self._note_cached(value.__wrapped__)
        elif isinstance(made, guards.Function):
            for field in (*made.FIELDS, *(OF_FUNCTIONS & self.names)):
                made.fields[field] = self.note(guards.field(value, field), f"{name}.{field}")
            if "__closure__" in self.names:
                self._note_cells(made)
            if self.is_thorough:
                self.started(value, value.__code__, value.__globals__)
        elif isinstance(made, guards.Instance):
            self._note_instance(made, value, kind, name, given)
        elif isinstance(made, guards.Stateful) and not issubclass(kind, CHANCE):
            self.hold(value)
        elif issubclass(kind, type):
            if is_users_class(value):
                self.hold(value)
            if issubclass(kind, abc.ABCMeta):
                self._root(("abc",), Computed(abc.get_cache_token), "the subclasses of an abstract class")
        elif issubclass(kind, types.ModuleType):
            self.hold(value)

    def _note_items(self, made: guards.Items, value: Any, name: str, given: bool) -> None:
        if is_users_class(made.kind):
            self._note_class(made.kind)
        for base, attribute_name in made.MORE.items():
            if issubclass(made.kind, base):
                made.more[attribute_name] = self.note(getattr(value, attribute_name), f"{name}.{attribute_name}")
        own = list(value) if issubclass(made.kind, Mapping) else None
        items = list(value if own is None else value.values())
        keys = range(len(items)) if own is None else own
        found = [self.note(item, f"{name}[{key!r}]", given) for key, item in zip(keys, items)]
        made.keys, made.items = own, found

    def _note_instance(self, made: guards.Instance, value: Any, kind: type, name: str, given: bool) -> None:
        users = is_users_class(kind)
        if users and kind not in self.classes:
            self._note_class(kind)
            self.classes.append(kind)
            if self.names & TO_CLASSES:
                self._hold_bases(kind)
        if issubclass(kind, np.ndarray):
            made.contained = guard_of_array(value, kind, name, self.site)
            self._note_parts(made.contained, value, kind, name, given)
        elif is_container(kind):
            made.contained = items = guards.Items(value, name, self.site)
            self._note_items(items, value, name, given)
        else:
            take = next((take for base, take in OF_BASES if issubclass(kind, base)), None)
            if take is not None:
                made.contained = guards.Parts(value, name, self.site, lambda v: (take(v),))
                made.contained.pieces = [self.note(take(value), name)]
        is_unheard = any(base in self.unheard for base in kind.__mro__)
        own_access = users and any("__getattribute__" in base.__dict__ for base in kind.__mro__ if is_users_class(base))
        is_dataclass = given and hasattr(kind, "__dataclass_fields__")
        is_asked = "__getattribute__" in self.names or self._is_bypassed or issubclass(kind, enum.Enum)
        if is_bag(kind) and not self._is_searched():
            self.bags.append(made)
            self._look_into(made, self.loaded, self.stored, given)
        elif not users or self.is_thorough or own_access or is_dataclass or is_asked or is_unheard:
            self._note_all(made, value, name, given)

    def _is_searched(self) -> bool:
        """Whether code that ran may look for attributes that are not there, or in other ways than by name."""
        return self.is_thorough or bool(self.names & SEARCHING)

    def _look_into(self, bag: guards.Instance, loaded: Iterable[str], stored: Iterable[str], given: bool) -> None:
        """Note attributes that code names."""
        own = attributes(bag.value)
        for key in loaded:
            if key in own and key not in bag.reads and key not in bag.written and key not in self.ignore:
                bag.reads[key] = self.note(own[key], f"{bag.name}.{key}", given)
        for key in stored:
            if key not in bag.reads and key not in bag.written and key not in self.ignore:
                bag.written[key] = self.note(own.get(key, MISSING), f"{bag.name}.{key}")

    def _note_class(self, cls: type) -> None:
        """Guard what can be called in a class, and its bases."""
        self._root(("class", id(cls)), Fixed(cls), cls.__name__, guards.Namespace(cls, cls.__name__, self.site))

    def _note_all(self, made: guards.Instance, value: Any, name: str, given: bool = False) -> None:
        if not made.is_whole:
            made.is_whole = True
            made.names = list(attributes(value))
            for key, part in everything(value).items():
                if key not in made.reads and key not in made.written and key not in self.ignore:
                    made.reads[key] = self.note(part, f"{name}.{key}", given)
            made.is_noted = True

    def _note_cached(self, function: types.FunctionType) -> None:
        """A hit of a cache runs nothing: all that the function could read counts as read."""
        before, self.is_thorough = self.is_thorough, True
        self.started(function, function.__code__, function.__globals__)
        self.is_thorough = before

    def note_results(self, cache: guards.Cache, are_new: bool = False) -> None:
        """What a cache returns again and again counts as read, if it may change; all of what it has got since."""
        known = {id(result) for result, _ in cache.results}
        for result in guards.results_of(cache.value):
            kind = type(result)
            is_object = is_users_class(kind) or is_bag(kind) or (is_container(kind) and kind is not tuple)
            if id(result) in known or not (is_object or issubclass(kind, np.ndarray)):
                continue
            guard = self.note(result, f"{cache.name}()")
            cache.results.append((result, guard))
            for part in list(guards.reached(guard)) if are_new else ():
                if isinstance(part, guards.Instance):
                    part.written.clear()  # by the function that made it
                    self._note_all(part, part.value, part.name)

    # -- classes, modules, optimizers: by the names in code that ran ----------------------------------

    def hold(self, holder: Any) -> None:
        """Guard attributes whose names occur in code that runs."""
        if id(holder) not in self.holders:
            self.holders[id(holder)] = holder
            if isinstance(holder, type):
                self._note_class(holder)
                if is_users_class(type(holder)):
                    self.hold(type(holder))
                if self.names & TO_CLASSES:
                    self._hold_bases(holder)
            for name in list(self.names):
                self.note_held(holder, name)
            if isinstance(holder, enum.EnumMeta):
                self.note_held(holder, "_member_map_")
            self._note_public(holder, self.names)

    def _hold_bases(self, cls: type) -> None:
        for base in cls.__mro__:
            if is_users_class(base):
                self.hold(base)

    def note_held(self, holder: Any, name: str) -> None:
        if name in self.ignore or (id(holder), name) in self.roots:
            return
        if name == "getenv" and holder is os:
            self.note_held(os, "environ")
        if name.startswith("__"):
            if name in OF_CLASSES and isinstance(holder, type):
                self._root((id(holder), name), Computed(functools.partial(_of_class, holder, name)), holder.__name__)
            return
        label = f"{getattr(holder, '__name__', type(holder).__name__)}.{name}"
        if isinstance(holder, type):
            self._root((id(holder), name), OfClass(holder, name), label)
        elif isinstance(holder, types.ModuleType):
            found = vars(holder).get(name, MISSING)
            is_code = callable(found) or isinstance(found, (types.ModuleType, *CHANCE))
            if is_users_module(holder) or not (found is MISSING or is_code):
                self._root((id(holder), name), Entry(vars(holder), name), label)
        elif name in attributes(holder):
            self._root((id(holder), name), Attribute(holder, name), label)

    def _note_public(self, holder: Any, names: Set[str]) -> None:
        """If code that ran computes names, all that it could find counts as read."""
        if not (names & COMPUTED or (isinstance(holder, type) and "__dict__" in names)):
            return
        if isinstance(holder, type) and "__dict__" in names:
            self._root((id(holder), "__dict__"), Computed(functools.partial(_names_in, holder)), holder.__name__)
        is_users: Any = is_users_class if isinstance(holder, type) else is_users_module
        if isinstance(holder, (type, types.ModuleType)) and is_users(holder):
            for name in [name for name in dir(holder) if not name.startswith("__")]:
                self.note_held(holder, name)

    def look_for(self, names: frozenset[str], loaded: frozenset[str] | None = None, stored: Any = frozenset()) -> None:
        """Code that runs may look for attributes of these names."""
        new = names - self.names
        loaded = names if loaded is None else loaded
        self.names |= new
        self.loaded |= loaded
        self.stored |= stored
        for bag in list(self.bags):
            if self._is_searched():
                self._note_all(bag, bag.value, bag.name)
            self._look_into(bag, loaded, stored, False)
        for holder in list(self.holders.values()):
            for name in new:
                self.note_held(holder, name)
            self._note_public(holder, new)
            if new & TO_CLASSES and isinstance(holder, type):
                self._hold_bases(holder)
        if not new & {"__getattribute__", "__closure__", *TO_CLASSES, *OF_FUNCTIONS}:
            return
        for guard in list(self.guards.values()):
            if isinstance(guard, guards.Instance) and is_users_class(guard.kind):
                if "__getattribute__" in new:
                    self._note_all(guard, guard.value, guard.name)
                if new & {"__getattribute__", *TO_CLASSES}:
                    self._hold_bases(guard.kind)
            elif isinstance(guard, guards.Function):
                for field in new & OF_FUNCTIONS:
                    guard.fields[field] = self.note(guards.field(guard.value, field), f"{guard.name}.{field}")
                if "__closure__" in new:
                    self._note_cells(guard)

    def _note_cells(self, guard: guards.Function) -> None:
        """Note all that a function has from the one around it."""
        for i, cell in enumerate(guard.value.__closure__ or ()):
            name = guard.value.__code__.co_freevars[i]
            if name not in self.ignore and i not in guard.cells:
                guard.cells[i] = guards.Fresh(None, name, self.site)  # while it is being noted
                guard.cells[i] = self.note(contents(cell), name)

    def _root(
        self, key: Any, place: Place, name: str, guard: guards.Guard | None = None, is_stored: bool = False
    ) -> None:
        if key not in self.roots:
            self.roots[key] = None  # while it is being noted
            made = guard or self.note(place.get(), name)
            self.roots[key] = Root(place, guards.Overwritten(made) if is_stored else made)

    @abc.abstractmethod
    def started(self, function: Any, code: types.CodeType, scope: dict[str, Any]) -> None:
        """A function of the user's starts."""


def _of_class(cls: type, name: str) -> Any:
    return cls.__subclasses__() if name == "__subclasses__" else getattr(cls, name)


def _names_in(cls: type) -> list[str]:
    """What a class has in its own dict."""
    return [name for name, value in vars(cls).items() if not hasattr(value, "_own")]
