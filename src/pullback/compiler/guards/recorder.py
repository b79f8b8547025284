"""Noting what a function is about to read, while it is traced."""

from __future__ import annotations

import abc
import array
import contextvars
import ctypes
import datetime
import decimal
import enum
import functools
import io
import logging
import operator
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping, MappingView, Set
from typing import Any, Callable, NamedTuple

import numpy as np

from ... import backends
from ...autodiff.graph import Leaf
from ...errors import TraceError
from ...random import Generator
from ...tensor.core import Tensor
from ..tracing.blind import Blind
from ..tracing.number import Number
from ..tracing.symbol import Symbol
from . import values as guards
from .code_names import Names, names_of
from .ownership import is_users_class, is_users_code, is_users_function, is_users_module
from .places import Attribute, Cell, Computed, Entry, Fixed, OfClass, Place
from .reading import CHANCE, MISSING, NATIVE, attribute, attributes, contents, everything, set_state, state_of

PLAIN = frozenset(
    (int, float, complex, bool, str, bytes, type(None), slice, range, type(...), type(NotImplemented), type(MISSING))
)
_LOCKS = type(threading.Lock()), type(threading.RLock())
_ATOMS = (
    *_LOCKS, types.CodeType, np.ufunc, Generator, *NATIVE, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, type(sys), types.FrameType, types.TracebackType,
    types.GenericAlias, types.UnionType,
)  # fmt: skip
#: Reading one of these reads all attributes of an object.
_WHOLE = frozenset(("__dict__", "__reduce_ex__", "__reduce__", "__getstate__", "__copy__", "__deepcopy__", "__dir__"))
_COMPUTED = frozenset(
    ("getattr", "hasattr", "vars", "dir", "setattr", "delattr", "attrgetter", "getmembers", "getattr_static")
)
_SEARCHING = _COMPUTED | {
    "__dict__", "AttributeError", "Exception", "BaseException", "suppress", "copy", "deepcopy", "str", "repr", "format",
    "hash", "dumps", "__eq__", "__contains__", "__format__", "__repr__", "__str__",
}  # fmt: skip
#: Functions that have another name where they are used.
_ALIASES = {id(function): function.__name__ for function in (getattr, hasattr, vars, dir, setattr, delattr)}
#: How code comes from an object to its class, and from there to its bases.
_TO_CLASSES = frozenset(("super", "type", "__class__", "__mro__", "mro", "__bases__", "__base__"))
#: What code may ask of a function beside what it does.
_OF_FUNCTIONS = frozenset(("__doc__", "__annotations__", "__name__", "__qualname__", "__module__"))
#: Objects from here are known by who they are: they hold caches, and nothing that functions depend on.
_INNER = ("typing", "pullback.autodiff", "pullback.backends", "pullback.compiler", "pullback.dtypes")
_CONSUMED = Iterator, io.IOBase, types.CoroutineType
_REFUSED = ("print", "input", "globals", "open", "breakpoint")
_PATHS = frozenset(("exists", "isfile", "isdir", "islink", "getsize", "getmtime", "getatime", "getctime"))
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_DAYS = frozenset(("now", "utcnow", "today"))
#: What libraries say is something else each time, or depends on the world outside: by module or class.
_BY_CHANCE: dict[int, frozenset[str]] = {
    id(time): frozenset((*_CLOCKS, *(f"{clock}_ns" for clock in _CLOCKS), "localtime", "gmtime", "ctime")),
    id(os): _PATHS | {"urandom", "getrandom", "getcwd", "getcwdb", "stat", "lstat", "access", "times"},
    id(os.path): _PATHS,
    id(datetime): _DAYS,
    id(datetime.datetime): _DAYS,
    id(datetime.date): _DAYS,
}
_FUNCTIONS_BY_CHANCE = frozenset(
    id(getattr(module, name))
    for module in (time, os, os.path)
    for name in _BY_CHANCE[id(module)]
    if hasattr(module, name) and callable(getattr(module, name))
)
_DEEPEST = 100  # containers in each other
_MOST = 1000  # values in a container
#: What code may ask of a class beside its attributes.
_OF_CLASSES = frozenset(("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__subclasses__"))

_PASS_IT = "Pass it as an argument, or leave it out of the guards with `pb.compile(ignore=[...])` and its name"

#: Values of C, whose bytes are all there is. Pointers are not.
_OF_C = ctypes._SimpleCData, ctypes.Array, ctypes.Structure, ctypes.Union
#: How other things come apart: their type, and the parts that are looked at instead.
_PARTS: list[tuple[Any, Any]] = [
    (types.MethodType, lambda m: (m.__func__, m.__self__)),
    (property, lambda p: (p.fget,)),
    (functools.partial, lambda p: (p.func, p.args, p.keywords, vars(p))),
    (functools.partialmethod, lambda p: (p.func, p.args, p.keywords)),
    ((staticmethod, classmethod), lambda m: (m.__func__,)),
    (functools.cached_property, lambda p: (p.func,)),
    (functools.singledispatchmethod, lambda m: (m.dispatcher, m.func)),
    (contextvars.ContextVar, lambda v: (v.get(MISSING),)),
    (weakref.ref, lambda r: (r(),)),
    ((types.BuiltinMethodType, types.MethodWrapperType), lambda m: (m.__name__, m.__self__)),
    (MappingView, lambda v: (list(v),)),
    ((bytearray, *_OF_C), lambda b: (bytes(b),)),
    (memoryview, lambda m: (m.format, m.shape, bytes(m))),
    (array.array, lambda a: (a.typecode, bytes(a))),
    (types.MappingProxyType, lambda m: (dict(m),)),
    (types.CellType, lambda c: (contents(c),)),
    (BaseException, lambda e: (e.args, vars(e))),
    (np.void, lambda v: (v.dtype, v.tobytes())),
]
#: What an object of a user's class has beside its attributes, by the base that keeps it.
_OF_BASES: list[tuple[Any, Any]] = [
    *((base, base.__repr__) for base in (str, bytes, int, float, complex, decimal.Decimal)),
    *((base, base.__repr__) for base in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)),
    *((base, bytes) for base in (bytearray, array.array, *_OF_C)),
    (functools.partial, lambda p: (p.func, p.args, p.keywords)),
    (weakref.ref, weakref.ref.__call__),
    (BaseException, operator.attrgetter("args")),
]
#: How to give such things their contents back: how to take them, and how to put them.
_PUTS: list[tuple[Any, Any, Any]] = [
    ((bytearray, array.array), lambda b: b[:], lambda b, was: b.__setitem__(slice(None), was)),
    (contextvars.ContextVar, lambda v: v.get(MISSING), lambda v, was: None if was is MISSING else v.set(was)),
    (types.CellType, contents, lambda c, was: Cell(c).put(was)),
]


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
        self._depth = 0
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
            made = self._new(value, kind, name)
        self.guards[id(value)] = made
        self._depth += 1
        try:
            self._note_parts(made, value, kind, name, given)
        finally:
            self._depth -= 1
        return made

    def _new(self, value: Any, kind: type, name: str) -> guards.Guard:
        site = self.site
        if (issubclass(kind, _CONSUMED) and kind not in weakref.ProxyTypes) or value is sys.stdout:
            if any(value is young for young in self.young()):
                return guards.Fresh(value, name, site)
            self.refuse(f"reads `{name}`, a {kind.__name__}: what is read from it is gone at the next call. {_PASS_IT}")
        if self._depth > _DEEPEST:
            return guards.Refused(value, name, site, f"is in more than {_DEEPEST} containers")
        if issubclass(kind, np.ndarray) and not is_users_class(kind):
            return _of_array(value, kind, name, site)
        if issubclass(kind, CHANCE):
            return guards.Stateful(value, name, site, state_of, set_state)
        if hasattr(kind, "_traced_options"):
            return guards.Stateful(value, name, site, kind._traced_options, kind._restore_options)  # type: ignore[attr-defined]
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return guards.Items(value, name, site)
        if is_users_class(kind) and not issubclass(kind, type):
            return guards.Instance(value, name, site)
        if _is_container(kind):
            if len(value) > _MOST:
                return guards.Refused(value, name, site, f"holds {len(value):,} values, more than {_MOST:,}")
            return guards.Items(value, name, site)
        if issubclass(kind, (type, types.ModuleType)):
            return guards.Identity(value, name, site)
        if kind is type(functools.cache(len)):
            return guards.Cache(value, name, site, lambda c: (c.__wrapped__,))
        if issubclass(kind, logging.Logger):
            return guards.Parts(
                value, name, site, lambda log: (log.getEffectiveLevel(), log.disabled, log.manager.disable)
            )
        if kind is types.FunctionType and "registry" in value.__dict__ and "dispatch" in value.__dict__:
            return guards.Parts(value, name, site, lambda f: (dict(f.registry),))
        if kind is types.FunctionType:
            users = is_users_function(value.__code__, value.__globals__)
            if value is os.getenv:
                self._note_held(os, "environ")
            return (guards.Function if users else guards.Identity)(value, name, site)
        if issubclass(kind, _ATOMS) or kind.__module__.startswith(_INNER) or _is_library_function(value):
            if id(value) in _ALIASES:
                self._look_for(frozenset((_ALIASES[id(value)],)))
            return guards.Identity(value, name, site)
        if kind in (operator.attrgetter, operator.methodcaller):
            return guards.Parts(value, name, site, lambda g: g.__reduce__()[1:])
        if hasattr(kind, "_guarded_parts"):
            return guards.Parts(value, name, site, kind._guarded_parts)
        for types_, split in _PARTS:
            if issubclass(kind, types_):
                take, put = next(((take, put) for t, take, put in _PUTS if issubclass(kind, t)), (None, None))
                return guards.Parts(value, name, site, split, take, put)
        if backends.of(value) is not None:
            reason = f"is a {kind.__module__}.{kind.__name__} from outside: pass it as an argument"
            return guards.Refused(value, name, site, reason)
        if kind in weakref.ProxyTypes:
            return guards.Refused(value, name, site, "is a proxy, which cannot be looked behind")
        has_attributes = hasattr(value, "__dict__") or "__slots__" in kind.__dict__
        is_hashable = kind.__hash__ not in (None, object.__hash__)
        if is_hashable and not hasattr(value, "__dict__"):
            return guards.Plain(value, name, site)  # a library's value: a date, a fraction, a path
        return (guards.Instance if has_attributes else guards.Identity)(value, name, site)

    def _note_parts(self, made: guards.Guard, value: Any, kind: type, name: str, given: bool) -> None:
        if isinstance(made, guards.Items):
            self._note_items(made, value, name, given)
        elif isinstance(made, guards.Parts):
            made.pieces = [self.note(part, name, given) for part in made.split(value)]
            if kind in (operator.attrgetter, operator.methodcaller):
                self._look_for(
                    frozenset(
                        part for path in value.__reduce__()[1] if isinstance(path, str) for part in path.split(".")
                    )
                )
            if isinstance(made, guards.Cache):
                self.note_results(made)
                if isinstance(value.__wrapped__, types.FunctionType):
                    self._note_cached(value.__wrapped__)
        elif isinstance(made, guards.Function):
            for field in (*made.FIELDS, *(_OF_FUNCTIONS & self.names)):
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
            if self.names & _TO_CLASSES:
                self._hold_bases(kind)
        if issubclass(kind, np.ndarray):
            made.contained = _of_array(value, kind, name, self.site)
            self._note_parts(made.contained, value, kind, name, given)
        elif _is_container(kind):
            made.contained = items = guards.Items(value, name, self.site)
            self._note_items(items, value, name, given)
        else:
            take = next((take for base, take in _OF_BASES if issubclass(kind, base)), None)
            if take is not None:
                made.contained = guards.Parts(value, name, self.site, lambda v: (take(v),))
                made.contained.pieces = [self.note(take(value), name)]
        is_unheard = any(base in self.unheard for base in kind.__mro__)
        own_access = users and any("__getattribute__" in base.__dict__ for base in kind.__mro__ if is_users_class(base))
        is_dataclass = given and hasattr(kind, "__dataclass_fields__")
        is_asked = "__getattribute__" in self.names or self._is_bypassed or issubclass(kind, enum.Enum)
        if _is_bag(kind) and not self._is_searched():
            self.bags.append(made)
            self._look_into(made, self.loaded, self.stored, given)
        elif not users or self.is_thorough or own_access or is_dataclass or is_asked or is_unheard:
            self._note_all(made, value, name, given)

    def _is_searched(self) -> bool:
        """Whether code that ran may look for attributes that are not there, or in other ways than by name."""
        return self.is_thorough or bool(self.names & _SEARCHING)

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
            is_object = is_users_class(kind) or _is_bag(kind) or (_is_container(kind) and kind is not tuple)
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
                if self.names & _TO_CLASSES:
                    self._hold_bases(holder)
            for name in list(self.names):
                self._note_held(holder, name)
            if isinstance(holder, enum.EnumMeta):
                self._note_held(holder, "_member_map_")
            self._note_public(holder, self.names)

    def _hold_bases(self, cls: type) -> None:
        for base in cls.__mro__:
            if is_users_class(base):
                self.hold(base)

    def _note_held(self, holder: Any, name: str) -> None:
        if name in self.ignore or (id(holder), name) in self.roots:
            return
        if name == "getenv" and holder is os:
            self._note_held(os, "environ")
        if name.startswith("__"):
            if name in _OF_CLASSES and isinstance(holder, type):
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
        if not (names & _COMPUTED or (isinstance(holder, type) and "__dict__" in names)):
            return
        if isinstance(holder, type) and "__dict__" in names:
            self._root((id(holder), "__dict__"), Computed(functools.partial(_names_in, holder)), holder.__name__)
        is_users: Any = is_users_class if isinstance(holder, type) else is_users_module
        if isinstance(holder, (type, types.ModuleType)) and is_users(holder):
            for name in [name for name in dir(holder) if not name.startswith("__")]:
                self._note_held(holder, name)

    # -- code that runs ------------------------------------------------------------------------------

    def started(self, function: Any, code: types.CodeType, scope: dict[str, Any]) -> None:
        """A function of the user's starts. What its lines look up is noted when they are reached."""
        names = self._ran.get(id(code))
        if not self.first_site:
            self.site = self.first_site = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        if names is None:
            names = self._ran[id(code)] = names_of(code)
            self._look_for(names.attributes, names.loaded, names.stored)
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

    def _look_for(self, names: frozenset[str], loaded: frozenset[str] | None = None, stored: Any = frozenset()) -> None:
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
                self._note_held(holder, name)
            self._note_public(holder, new)
            if new & _TO_CLASSES and isinstance(holder, type):
                self._hold_bases(holder)
        if not new & {"__getattribute__", "__closure__", *_TO_CLASSES, *_OF_FUNCTIONS}:
            return
        for guard in list(self.guards.values()):
            if isinstance(guard, guards.Instance) and is_users_class(guard.kind):
                if "__getattribute__" in new:
                    self._note_all(guard, guard.value, guard.name)
                if new & {"__getattribute__", *_TO_CLASSES}:
                    self._hold_bases(guard.kind)
            elif isinstance(guard, guards.Function):
                for field in new & _OF_FUNCTIONS:
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
        for name in line.globals:
            if (id(scope), name) not in self.roots and name not in self.ignore:
                self._look_up(scope, name, line)
            elif name not in line.stored:
                self._read_again((id(scope), name))
        if line.free and function is not None:
            guard: Any = self.note(function, function.__name__)
            for i in line.free:
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
            asked = line.attributes & _BY_CHANCE.get(id(value), frozenset())
            if asked or id(value) in _FUNCTIONS_BY_CHANCE:
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
        if found is MISSING and name in _REFUSED:
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
        if name in _WHOLE:
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
        is_told = _is_bag(owner.kind) or owner.kind is threading.local
        if name in owner.reads and is_told and not (self.loaded & {name, *_COMPUTED, *_WHOLE}):
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


def _is_bag(kind: type) -> bool:
    """Whether objects of a type have attributes and nothing else, so that only code that names them reads them."""
    return kind is types.SimpleNamespace or (kind.__module__, kind.__qualname__) == ("argparse", "Namespace")


def _of_class(cls: type, name: str) -> Any:
    return cls.__subclasses__() if name == "__subclasses__" else getattr(cls, name)


def _names_in(cls: type) -> list[str]:
    """What a class has in its own dict."""
    return [name for name, value in vars(cls).items() if not hasattr(value, "_own")]


def _of_array(value: Any, kind: type, name: str, site: str) -> guards.Guard:
    if value.dtype == object:
        return guards.Parts(value, name, site, lambda a: (a.shape, a.tolist()), np.copy, np.copyto)
    if issubclass(kind, np.ma.MaskedArray) and value.nbytes <= guards.Array.MOST:
        split = lambda a: (a.shape, a.dtype, np.ma.getdata(a).tobytes(), np.ma.getmaskarray(a).tobytes(), a.fill_value)
        return guards.Parts(value, name, site, split, np.ma.copy, _put_masked)
    return guards.Array(value, name, site)


def _put_masked(array: Any, was: Any) -> None:
    np.ma.getdata(array)[...] = np.ma.getdata(was)
    array.mask = np.ma.getmask(was)


def _is_container(kind: type) -> bool:
    if issubclass(kind, guards.CONTAINERS):
        return True
    is_kept = not is_users_class(kind) and kind.__dictoffset__ != 0  # what is in it is among its attributes
    return (
        issubclass(kind, (Mapping, Set)) and not issubclass(kind, (MappingView, types.MappingProxyType)) and not is_kept
    )


def _is_library_function(value: Any) -> bool:
    return type(value) is types.BuiltinMethodType and isinstance(value.__self__, (types.ModuleType, type(None)))
