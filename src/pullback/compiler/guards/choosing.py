"""Which guard a value gets."""

from __future__ import annotations

import array
import contextvars
import ctypes
import datetime
import decimal
import functools
import io
import logging
import operator
import os
import sys
import threading
import types
import weakref
from collections.abc import Iterator, Mapping, MappingView, Set
from typing import Any

import numpy as np

from ... import backends
from ...random import Generator
from . import values as guards
from .ownership import is_users_class, is_users_function
from .places import Cell
from .reading import CHANCE, MISSING, NATIVE, contents, set_state, state_of

PLAIN = frozenset(
    (int, float, complex, bool, str, bytes, type(None), slice, range, type(...), type(NotImplemented), type(MISSING))
)
_LOCKS = type(threading.Lock()), type(threading.RLock())
_ATOMS = (
    *_LOCKS, types.CodeType, np.ufunc, Generator, *NATIVE, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, type(sys), types.FrameType, types.TracebackType,
    types.GenericAlias, types.UnionType,
)  # fmt: skip
#: Functions that have another name where they are used.
_ALIASES = {id(function): function.__name__ for function in (getattr, hasattr, vars, dir, setattr, delattr)}
#: Objects from here are known by who they are: they hold caches, and nothing that functions depend on.
_INNER = ("typing", "pullback.autodiff", "pullback.backends", "pullback.compiler", "pullback.dtypes")
_CONSUMED = Iterator, io.IOBase, types.CoroutineType
_DEEPEST = 100  # containers in each other
_MOST = 1000  # values in a container
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
OF_BASES: list[tuple[Any, Any]] = [
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


def guard_for(recorder: Any, value: Any, kind: type, name: str) -> guards.Guard:
    """The guard that a value gets, without its parts. What cannot be guarded is refused by the recorder."""
    site = recorder.site
    if (issubclass(kind, _CONSUMED) and kind not in weakref.ProxyTypes) or value is sys.stdout:
        if any(value is young for young in recorder.young()):
            return guards.Fresh(value, name, site)
        recorder.refuse(f"reads `{name}`, a {kind.__name__}: what is read from it is gone at the next call. {_PASS_IT}")
    if recorder.depth > _DEEPEST:
        return guards.Refused(value, name, site, f"is in more than {_DEEPEST} containers")
    if issubclass(kind, np.ndarray) and not is_users_class(kind):
        return guard_of_array(value, kind, name, site)
    if issubclass(kind, CHANCE):
        return guards.Stateful(value, name, site, state_of, set_state)
    if hasattr(kind, "_traced_options"):
        return guards.Stateful(value, name, site, kind._traced_options, kind._restore_options)  # type: ignore[attr-defined]
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return guards.Items(value, name, site)
    if is_users_class(kind) and not issubclass(kind, type):
        return guards.Instance(value, name, site)
    if is_container(kind):
        if len(value) > _MOST:
            return guards.Refused(value, name, site, f"holds {len(value):,} values, more than {_MOST:,}")
        return guards.Items(value, name, site)
    if issubclass(kind, (type, types.ModuleType)):
        return guards.Identity(value, name, site)
    if kind is type(functools.cache(len)):
        return guards.Cache(value, name, site, lambda c: (c.__wrapped__,))
    if issubclass(kind, logging.Logger):
        return guards.Parts(value, name, site, lambda log: (log.getEffectiveLevel(), log.disabled, log.manager.disable))
    if kind is types.FunctionType and "registry" in value.__dict__ and "dispatch" in value.__dict__:
        return guards.Parts(value, name, site, lambda f: (dict(f.registry),))
    if kind is types.FunctionType:
        users = is_users_function(value.__code__, value.__globals__)
        if value is os.getenv:
            recorder.note_held(os, "environ")
        return (guards.Function if users else guards.Identity)(value, name, site)
    if issubclass(kind, _ATOMS) or kind.__module__.startswith(_INNER) or _is_library_function(value):
        if id(value) in _ALIASES:
            recorder.look_for(frozenset((_ALIASES[id(value)],)))
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


def guard_of_array(value: Any, kind: type, name: str, site: str) -> guards.Guard:
    if value.dtype == object:
        return guards.Parts(value, name, site, lambda a: (a.shape, a.tolist()), np.copy, np.copyto)
    if issubclass(kind, np.ma.MaskedArray) and value.nbytes <= guards.Array.MOST:
        split = lambda a: (a.shape, a.dtype, np.ma.getdata(a).tobytes(), np.ma.getmaskarray(a).tobytes(), a.fill_value)
        return guards.Parts(value, name, site, split, np.ma.copy, _put_masked)
    return guards.Array(value, name, site)


def _put_masked(array: Any, was: Any) -> None:
    np.ma.getdata(array)[...] = np.ma.getdata(was)
    array.mask = np.ma.getmask(was)


def is_container(kind: type) -> bool:
    if issubclass(kind, guards.CONTAINERS):
        return True
    is_kept = not is_users_class(kind) and kind.__dictoffset__ != 0  # what is in it is among its attributes
    return (
        issubclass(kind, (Mapping, Set)) and not issubclass(kind, (MappingView, types.MappingProxyType)) and not is_kept
    )


def is_bag(kind: type) -> bool:
    """Whether objects of a type have attributes and nothing else, so that only code that names them reads them."""
    return kind is types.SimpleNamespace or (kind.__module__, kind.__qualname__) == ("argparse", "Namespace")


def _is_library_function(value: Any) -> bool:
    return type(value) is types.BuiltinMethodType and isinstance(value.__self__, (types.ModuleType, type(None)))
