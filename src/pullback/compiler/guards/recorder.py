"""Noting what a function is about to read, while it is traced."""

from __future__ import annotations

import abc
import array
import contextvars
import enum
import functools
import io
import logging
import os
import sys
import threading
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
    types.ClassMethodDescriptorType, type(sys), types.FrameType, types.CellType, types.TracebackType, types.GenericAlias, types.UnionType,
)  # fmt: skip
#: Reading one of these reads all attributes of an object.
_WHOLE = frozenset(("__dict__", "__reduce_ex__", "__reduce__", "__getstate__", "__copy__", "__deepcopy__", "__dir__"))
_COMPUTED = frozenset(("getattr", "hasattr", "vars", "dir", "setattr", "delattr", "attrgetter"))
_SEARCHING = _COMPUTED | {"__dict__", "AttributeError", "Exception", "BaseException", "suppress", "copy", "deepcopy"}
#: Objects from here are known by who they are: they hold caches, and nothing that functions depend on.
_INNER = ("typing", "pullback.autodiff", "pullback.backends", "pullback.compiler", "pullback.dtypes")
_CONSUMED = Iterator, io.IOBase, types.CoroutineType
_REFUSED = ("print", "input", "globals", "open", "breakpoint")
_MOST = 1000  # values in a container
#: What code may ask of a class beside its attributes.
_OF_CLASSES = frozenset(("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__subclasses__"))

_PASS_IT = "Pass it as an argument, or leave it out of the guards with `pb.compile(ignore=[...])` and its name"

#: How other things come apart: their type, and the parts that are looked at instead.
_PARTS: list[tuple[Any, Any]] = [
    (types.MethodType, lambda m: (m.__func__, m.__self__)),
    (property, lambda p: (p.fget,)),
    (functools.partial, lambda p: (p.func, p.args, p.keywords)),
    (functools.partialmethod, lambda p: (p.func, p.args, p.keywords)),
    ((staticmethod, classmethod), lambda m: (m.__func__,)),
    (functools.cached_property, lambda p: (p.func,)),
    (contextvars.ContextVar, lambda v: (v.get(MISSING),)),
    (weakref.ref, lambda r: (r(),)),
    ((types.BuiltinMethodType, types.MethodWrapperType), lambda m: (m.__name__, m.__self__)),
    (MappingView, lambda v: (list(v),)),
    ((bytearray, memoryview, array.array), lambda b: (bytes(b),)),
    (types.MappingProxyType, lambda m: (dict(m),)),
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

    # -- values ------------------------------------------------------------------------------------

    def note(self, value: Any, name: str, given: bool = False) -> guards.Guard:
        """The guard of a value. `given`: it is an argument, so tensors and arrays in it are inputs."""
        kind = type(value)
        if kind in PLAIN or issubclass(kind, (np.generic, np.dtype)):
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
        self._note_parts(made, value, kind, name, given)
        return made

    def _new(self, value: Any, kind: type, name: str) -> guards.Guard:
        site = self.site
        if issubclass(kind, _CONSUMED) and kind not in weakref.ProxyTypes:
            if any(value is young for young in self.young()):
                return guards.Fresh(value, name, site)
            self.refuse(f"reads `{name}`, a {kind.__name__}: what is read from it is gone at the next call. {_PASS_IT}")
        if issubclass(kind, np.ndarray):
            if value.dtype == object:
                return guards.Parts(value, name, site, lambda a: (a.shape, a.tolist()))
            return guards.Array(value, name, site)
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
            return (guards.Function if users else guards.Identity)(value, name, site)
        if issubclass(kind, _ATOMS) or kind.__module__.startswith(_INNER) or _is_library_function(value):
            return guards.Identity(value, name, site)
        if hasattr(kind, "_guarded_parts"):
            return guards.Parts(value, name, site, kind._guarded_parts)
        for types_, split in _PARTS:
            if issubclass(kind, types_):
                return guards.Parts(value, name, site, split)
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
            if isinstance(made, guards.Cache) and isinstance(value.__wrapped__, types.FunctionType):
                self._note_cached(value.__wrapped__)
        elif isinstance(made, guards.Function):
            for field in made.FIELDS:
                made.fields[field] = self.note(guards.field(value, field), f"{name}.{field}")
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
            if "super" in self.names:
                self._hold_bases(kind)
        if _is_container(kind):
            made.contained = items = guards.Items(value, name, self.site)
            self._note_items(items, value, name, given)
        else:
            base = next((b for b in (str, bytes, int, float, complex) if issubclass(kind, b)), None)
            if base is not None:
                made.contained = guards.Parts(value, name, self.site, lambda v: (base.__repr__(v),))
                made.contained.pieces = [guards.Plain(base.__repr__(value), name, self.site)]
        is_unheard = any(base in self.unheard for base in kind.__mro__)
        own_access = users and any("__getattribute__" in base.__dict__ for base in kind.__mro__ if is_users_class(base))
        is_dataclass = given and hasattr(kind, "__dataclass_fields__")
        is_asked = "__getattribute__" in self.names or issubclass(kind, enum.Enum)
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

    # -- classes, modules, optimizers: by the names in code that ran ----------------------------------

    def hold(self, holder: Any) -> None:
        """Guard attributes whose names occur in code that runs."""
        if id(holder) not in self.holders:
            self.holders[id(holder)] = holder
            if isinstance(holder, type):
                self._note_class(holder)
                if is_users_class(type(holder)):
                    self.hold(type(holder))
            for name in list(self.names):
                self._note_held(holder, name)
            if isinstance(holder, enum.EnumMeta):
                self._note_held(holder, "_member_map_")
            if self.names & _COMPUTED:
                self._note_public(holder)

    def _hold_bases(self, cls: type) -> None:
        for base in cls.__mro__:
            if is_users_class(base):
                self.hold(base)

    def _note_held(self, holder: Any, name: str) -> None:
        if name in self.ignore or (id(holder), name) in self.roots:
            return
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

    def _note_public(self, holder: Any) -> None:
        """Code that ran computes names: all that it could find counts as read."""
        if is_users_class(holder) if isinstance(holder, type) else is_users_module_or_other(holder):
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
            new = names.attributes - self.names
            self.names |= new
            self.loaded |= names.loaded
            self.stored |= names.stored
            for bag in self.bags:
                if self._is_searched():
                    self._note_all(bag, bag.value, bag.name)
                self._look_into(bag, names.loaded, names.stored, False)
            for holder in list(self.holders.values()):
                for name in new:
                    self._note_held(holder, name)
                if new & _COMPUTED:
                    self._note_public(holder)
            if new & {"super", "__getattribute__"}:
                for guard in list(self.guards.values()):
                    if isinstance(guard, guards.Instance) and is_users_class(guard.kind):
                        if "__getattribute__" in new:
                            self._note_all(guard, guard.value, guard.name)
                        self._hold_bases(guard.kind)
            for name in names.imports & sys.modules.keys():
                self._root(("import", name), Entry(sys.modules, name), name)
        if isinstance(function, types.FunctionType):
            self.note(function, function.__name__)
        for line in names.lines if self.is_thorough else (code.co_firstlineno,):  # no event tells of the `def`'s line
            self.reached(function, code, scope, line)

    def reached(self, function: Any, code: types.CodeType, scope: dict[str, Any], number: int) -> None:
        """A line is about to run."""
        line = self._ran[id(code)].lines.get(number)
        if line is None:
            return
        self.site = f"{os.path.basename(code.co_filename)}:{number}"
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
        if name in owner.reads and not is_users_class(owner.kind) and not (self.loaded & {name, *_COMPUTED, *_WHOLE}):
            owner.written[name] = owner.reads.pop(name)
        return name in owner.written

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


def is_users_module_or_other(holder: Any) -> bool:
    return not isinstance(holder, types.ModuleType) or is_users_module(holder)


def _is_bag(kind: type) -> bool:
    """Whether objects of a type have attributes and nothing else, so that only code that names them reads them."""
    return kind is types.SimpleNamespace or (kind.__module__, kind.__qualname__) == ("argparse", "Namespace")


def _of_class(cls: type, name: str) -> Any:
    return cls.__subclasses__() if name == "__subclasses__" else getattr(cls, name)


def _is_container(kind: type) -> bool:
    is_view = issubclass(kind, (MappingView, types.MappingProxyType, os._Environ))
    return issubclass(kind, (*guards.CONTAINERS, Mapping, Set)) and not is_view


def _is_library_function(value: Any) -> bool:
    return type(value) is types.BuiltinMethodType and isinstance(value.__self__, (types.ModuleType, type(None)))
