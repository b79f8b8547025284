"""Looking at objects without running anybody's code, and without leaving a mark."""

from __future__ import annotations

import random
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from .ownership import is_users_class

#: Attributes that C code reads: nobody's code runs.
NATIVE = MemberDescriptorType, GetSetDescriptorType
#: Generators of random numbers that are not ours.
CHANCE = random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def is_same(x: Any, y: Any) -> bool:
    """Whether plain values mean the same: 0.0 is not -0.0, True is not 1, but NaN is NaN."""
    if x is y or type(x) is not type(y):
        return x is y
    if isinstance(x, (int, str, bytes)):
        return bool(x == y)
    if isinstance(x, slice):
        return all(map(is_same, (x.start, x.stop, x.step), (y.start, y.stop, y.step)))
    if isinstance(x, (float, complex, np.inexact, range)):
        return repr(x) == repr(y)
    try:  # equal values may look different, such as times in two zones
        return bool(x == y or x != x) and repr(x) == repr(y)
    except Exception:
        return False


def lookup(cls: type, name: str) -> Any:
    """What a class or one of its bases has under a name."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def attributes(thing: Any) -> dict[str, Any]:
    """The dict of an instance: a user's `__getattribute__` has no say in it, one of C has (`threading.local`)."""
    try:
        return native_base(type(thing)).__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}


def native_base(cls: type) -> Any:
    """The first base that is not the user's and reads attributes in its own way, or in Python's."""
    return next(base for base in cls.__mro__ if not is_users_class(base) and "__getattribute__" in base.__dict__)


def attribute(thing: Any, name: str) -> Any:
    """What an attribute is, bound to nothing: the instance's, else the class's. On some versions of Python asking for
    the dict slows an object down for good, so that is the last resort.
    """
    cls = type(thing)
    found = lookup(cls, name)
    if isinstance(found, NATIVE):
        return of_native(found, thing)
    if found is not MISSING:
        kind = type(found)
        if hasattr(kind, "__set__") or hasattr(kind, "__delete__"):
            return found
        if hasattr(kind, "__get__") and kind is not FunctionType:
            return attributes(thing).get(name, found)  # asking the class might run its code
    try:
        now = native_base(cls).__getattribute__(thing, name)
    except AttributeError:
        return found
    return found if type(now) is MethodType and now.__func__ is found else now


def of_native(descriptor: Any, thing: Any) -> Any:
    try:
        return descriptor.__get__(thing)
    except AttributeError:
        return MISSING


def everything(thing: Any) -> dict[str, Any]:
    """All attributes of an instance: its dict and its slots. A class may leave some out: `_unguarded`."""
    found = dict(attributes(thing))
    for name in getattr(type(thing), "_unguarded", ()):
        found.pop(name, None)
    for base in type(thing).__mro__:
        if "__slots__" in base.__dict__:
            for name, slot in base.__dict__.items():
                if type(slot) is MemberDescriptorType and not name.startswith("__"):
                    found[name] = of_native(slot, thing)
    return found


def namespace(cls: type) -> dict[str, Any]:
    """What can be called or bound in a user's class and its bases, special methods included."""
    found = {}
    for base in cls.__mro__:
        if is_users_class(base):
            for name, value in base.__dict__.items():
                if hasattr(value, "_own"):  # a hook of ours, in place of this
                    value = value._own
                if value is not None and (hasattr(type(value), "__get__") or callable(value)):
                    found[f"{base.__name__}.{name}"] = value
    return found


def contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def state_of(generator: Any) -> Any:
    """Where a generator of random numbers is."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state(legacy=False)
    else:
        state = getattr(generator, "bit_generator", generator).state
    return state


def is_same_state(x: Any, y: Any) -> bool:
    """Whether two states, in dicts and lists of plain values and arrays, are the same."""
    if type(x) is not type(y):
        return False
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(is_same_state(x[key], y[key]) for key in x)
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(is_same_state, x, y))
    if isinstance(x, np.ndarray):
        # `np.array_equal` would take what a signal's handler raises for an answer.
        return x.shape == y.shape and bool((x == y).all())
    return x is y or (isinstance(x, (int, float, str)) and is_same(x, y))


def set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        getattr(generator, "bit_generator", generator).state = state
