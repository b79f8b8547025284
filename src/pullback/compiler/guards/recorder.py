"""Noting what a function is about to read, while it is traced."""

from __future__ import annotations

import abc
import enum
import functools
import operator
import os
import sys
import threading
import types
from collections.abc import Iterable, Mapping, Set
from typing import Any, Callable, NamedTuple

import numpy as np

from ...autodiff.graph import Leaf
from ...errors import TraceError
from ...tensor.core import Tensor
from ..tracing.blind import Blind
from ..tracing.number import Number
from ..tracing.symbol import Symbol
from . import values as guards
from .choosing import OF_BASES, PLAIN, guard_for, guard_of_array, is_bag, is_container
from .code_names import Names, names_of
from .ownership import is_users_class, is_users_code, is_users_module
from .places import Attribute, Cell, Computed, Entry, Fixed, OfClass, Place
from .reading import CHANCE, MISSING, attribute, attributes, contents, everything
from .told_names import (
    BY_CHANCE,
    COMPUTED,
    FUNCTIONS_BY_CHANCE,
    OF_CLASSES,
    OF_FUNCTIONS,
    REFUSED,
    SEARCHING,
    TO_CLASSES,
    WHOLE,
)


class Root(NamedTuple):
    """A place that guards begin from."""

    place: Place
    guard: guards.Guard


class Recorder:
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
        self._ran: dict[int, Names] = {}
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
            if type(value._data) is Symbol:
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

    # -- code that runs ------------------------------------------------------------------------------

    def started(self, function: Any, code: types.CodeType, scope: dict[str, Any]) -> None:
        """A function of the user's starts. What its lines look up is noted when they are reached."""
        names = self._ran.get(id(code))
        if not self.first_site:
            self.site = self.first_site = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        if names is None:
            names = self._ran[id(code)] = names_of(code)
            self.look_for(names.attributes, names.loaded, names.stored)
            if "__globals__" in names.attributes:
                self.refuse("reads `__globals__` of a function, of which anything may be read")
            if {"object", "__setattr__"} <= names.attributes or {"object", "__delattr__"} <= names.attributes:
                self._is_bypassed = True
                for guard in list(self.guards.values()):
                    if isinstance(guard, guards.Instance) and is_users_class(guard.kind):
                        self._note_all(guard, guard.value, guard.name)
            for name in names.modules & sys.modules.keys():
                if isinstance(sys.modules[name], types.ModuleType):
                    self.hold(sys.modules[name])
            for name in names.imports & sys.modules.keys():
                self._root(("import", name), Entry(sys.modules, name), name)
        if isinstance(function, types.FunctionType):
            self.note(function, function.__name__)
        for line in names.lines if self.is_thorough else (code.co_firstlineno,):  # no event tells of the `def`'s line
            self.reached(function, code, scope, line)

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

    def reached(self, function: Any, code: types.CodeType, scope: dict[str, Any], number: int) -> None:
        """A line is about to run."""
        line = self._ran[id(code)].lines.get(number)
        if line is None:
            return
        self.site = f"{os.path.basename(code.co_filename)}:{number}"
        self._refuse_chance(function, code, scope, line)
        for name in sorted(line.globals):
            if (id(scope), name) not in self.roots and name not in self.ignore:
                self._look_up(scope, name, line)
            elif name not in line.stored:
                self._read_again((id(scope), name))
        if line.free and function is not None:
            guard: Any = self.note(function, function.__name__)
            for i in sorted(line.free):
                if i not in line.stored:
                    self._read_again((id(function.__closure__[i]), "written"))
                if code.co_freevars[i] not in self.ignore:
                    self._look_in_cell(guard, i, function.__closure__[i], code.co_freevars[i], line)

    def _refuse_chance(self, function: Any, code: types.CodeType, scope: dict[str, Any], line: Any) -> None:
        """A line that asks for the time, or what is in a folder, gets another answer each time."""
        found = {name: scope.get(name) for name in line.globals - self.ignore}
        if line.free and function is not None:
            found.update({code.co_freevars[i]: contents(function.__closure__[i]) for i in line.free})
        for name, value in found.items():
            asked = line.attributes & BY_CHANCE.get(id(value), frozenset())
            if asked or id(value) in FUNCTIONS_BY_CHANCE:
                what = f"{name}.{min(asked)}" if asked else name
                self.refuse(
                    f"calls {what}, which says something else each time, and a program would ask once. Ask outside and "
                    "pass the answer as an argument"
                )

    def _look_up(self, scope: dict[str, Any], name: str, line: Any) -> None:
        found = scope.get(name, MISSING)
        if name in line.keys and type(found) is dict:
            at = (id(scope), name, "entries")
            for key in line.keys[name]:
                root = self.roots.get(at)
                guard = self._note_entry(None if root is None else root.guard, found, name, key)
                if guard is not None:
                    self.roots[at] = Root(Entry(scope, name), guard)
            return
        if found is MISSING and name in REFUSED:
            self.refuse(
                f"calls {name}(), which a program would do once, when it is traced. To see values, return the tensor "
                "and look at it outside"
            )
        self._root((id(scope), name), Entry(scope, name), name, is_stored=name in line.stored)

    def _read_again(self, key: Any) -> None:
        """What seemed to be written before it is read may not have been, as in `if flag: last = x`."""
        root = self.roots.get(key)
        if root is not None and isinstance(root.guard, guards.Overwritten):
            if root.place.get() is root.guard.value:
                self.roots[key] = Root(root.place, root.guard.before)

    def _note_entry(self, known: guards.Guard | None, found: Any, name: str, key: str) -> guards.Guard | None:
        """The guard of a dict of which one more entry is read, and nothing else; None if all of it is read already."""
        if known is not None and (not isinstance(known, guards.Selected) or known.value is not found):
            return None
        selected: Any = known or guards.Selected(found, name, self.site)
        if key not in selected.entries:
            selected.entries[key] = self.note(found.get(key, MISSING), f"{name}[{key!r}]")
        return selected

    def _look_in_cell(self, guard: Any, i: int, cell: Any, name: str, line: Any) -> None:
        place, known = Cell(cell), guard.cells.get(i)
        if known is not None and not isinstance(known, guards.Selected):
            return
        if i in line.stored:
            self._root((id(cell), "written"), place, name, is_stored=True)
        elif (id(cell), "written") not in self.roots:
            found = contents(cell)
            if i in line.keys and type(found) is dict:
                for key in line.keys[i]:
                    guard.cells[i] = self._note_entry(guard.cells.get(i), found, name, key) or guard.cells[i]
                return
            guard.cells[i] = guards.Fresh(None, name, self.site)  # while it is being noted
            guard.cells[i] = self.note(found, name)

    def _root(
        self, key: Any, place: Place, name: str, guard: guards.Guard | None = None, is_stored: bool = False
    ) -> None:
        if key not in self.roots:
            self.roots[key] = None  # while it is being noted
            made = guard or self.note(place.get(), name)
            self.roots[key] = Root(place, guards.Overwritten(made) if is_stored else made)

    # -- objects ---------------------------------------------------------------------------------------

    def read(self, thing: Any, name: str, caller: types.CodeType, offset: int = -1) -> None:
        """An attribute of a user's object is about to be read, by the instruction at `offset`."""
        guard: Any = self.note(thing, type(thing).__name__)
        if not isinstance(guard, guards.Instance):
            return
        if name in WHOLE:
            members = getattr(type(thing), "_guarded_members", None)
            if members is not None and not is_users_code(caller):  # the library looks for tensors and modules alone
                self._root(("members", id(thing)), Fixed(thing), guard.name, self._members(thing, members))
            elif caller.co_filename != functools.__file__:  # a cached property looks for its own
                self._note_all(guard, thing, guard.name)
        elif not self._is_passed_over(thing, name):
            self._read(guard, thing, name, caller, offset)

    def _read(self, guard: guards.Instance, thing: Any, name: str, caller: types.CodeType, offset: int) -> None:
        known = guard.reads.get(name)
        if known is None or isinstance(known, guards.Selected):
            written = guard.written.get(name)
            if written is not None:
                if attribute(thing, name) is written.value:  # it was not, after all
                    guard.reads[name] = guard.written.pop(name)
                return
            found = attribute(thing, name)
            if type(found) is types.FunctionType and not is_users_code(caller) and not is_users_code(found.__code__):
                return  # a method of the library's, called by the library
            names = self._ran.get(id(caller))
            key = None if names is None else names.entries.get(offset)
            if key is not None and type(found) is dict:
                guard.reads[name] = self._note_entry(known, found, f"{guard.name}.{name}", key) or guard.reads[name]
                return
            guard.reads[name] = guards.Fresh(None, name, self.site)
            guard.reads[name] = self.note(found, f"{guard.name}.{name}")

    def _is_passed_over(self, thing: Any, name: str) -> bool:
        return name[:2] == "__" or name in self.ignore or name in getattr(type(thing), "_unguarded", ())

    def _members(self, thing: Any, members: Any) -> guards.Guard:
        made = guards.Parts(thing, type(thing).__name__, self.site, members)
        made.pieces = [self.note(part, made.name) for part in members(thing)]
        return made

    def write(self, thing: Any, name: str, site: str) -> None:
        """An attribute of a user's object is about to be written."""
        guard: Any = self.note(thing, type(thing).__name__)
        self.written[id(thing), name] = site
        if isinstance(guard, guards.Instance) and name not in guard.reads and name not in guard.written:
            if not self._is_passed_over(thing, name):
                guard.written[name] = self.note(attribute(thing, name), f"{guard.name}.{name}")

    def is_written_only(self, place: Place) -> bool:
        """Whether an attribute was written before it was read. Of objects that nobody listens to, code tells."""
        owner = self.guards.get(id(place.owner)) if isinstance(place, Attribute) else None
        if not isinstance(owner, guards.Instance):
            return False
        name = place.name  # type: ignore[union-attr]
        is_told = is_bag(owner.kind) or owner.kind is threading.local
        if name in owner.reads and is_told and not (self.loaded & {name, *COMPUTED, *WHOLE}):
            owner.written[name] = owner.reads.pop(name)
        return name in owner.written

    def read_wholly(self, thing: Any) -> None:
        """All attributes of a thing are about to be looked at, in a way that nobody hears."""
        guard: Any = self.note(thing, type(thing).__name__)
        if isinstance(guard, guards.Instance):
            self._note_all(guard, thing, guard.name)

    def guard_wholly(self, cls: type) -> None:
        """Note all attributes of a class's objects, from now on."""
        self.unheard.add(cls)
        for guard in list(self.guards.values()):
            if isinstance(guard, guards.Instance) and issubclass(guard.kind, cls):
                self._note_all(guard, guard.value, guard.name)

    def refuse(self, what: str) -> None:
        """The function is about to do something that a program cannot repeat: it does not come to that."""
        error = TraceError(f"{self.site}: {self.name} {what}.")
        if self.refusal is None:
            self.refusal = error
        raise error


def _of_class(cls: type, name: str) -> Any:
    return cls.__subclasses__() if name == "__subclasses__" else getattr(cls, name)


def _names_in(cls: type) -> list[str]:
    """What a class has in its own dict."""
    return [name for name, value in vars(cls).items() if not hasattr(value, "_own")]
