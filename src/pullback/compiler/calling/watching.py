"""What a function reads under names from outside of it: globals, closures, attributes. Another value, another program.

Found in the function's code: a name that is loaded, and the attributes and constant keys that follow it (`model`,
`config.scale`, `options["beta"]`), through functions of the user's that are called. What is reached in another way (an
object out of a list, `getattr`) is not seen. Attributes of modules are not looked at one by one: a module counts
assignments (see `pullback.nn.module`).
"""

from __future__ import annotations

import dis
import random
import sysconfig
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Iterable, NamedTuple

import numpy as np

from ...autodiff.graph import is_library
from ...nn.module import Module, assignments
from ...tensor.core import Tensor

_PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))
_NAMES = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_MISSING = object()
_STANDARD = sysconfig.get_path("stdlib")
_LIBRARIES = (_STANDARD, *{sysconfig.get_path(name) for name in ("platstdlib", "purelib", "platlib")})
_OWN = ("pullback", "numpy")
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


class Watched(NamedTuple):
    """A place where the function found something: a cell, or an entry of a dict or list."""

    name: str
    place: Any
    key: Any
    seen: Any

    def changed(self) -> str | None:
        """How what is there now differs from what was seen, or None."""
        now = found_in(self.place, self.key)
        if now is self.seen or is_same(now, self.seen):
            return None
        if type(now) in _PLAIN and type(self.seen) in _PLAIN:
            advice = "; pass a number that changes as a tensor" if type(now) in (int, float) else ""
            return f"`{self.name}` was {self.seen!r} and is {now!r}{advice}"
        if now is _MISSING:
            return f"`{self.name}` is gone"
        is_array = isinstance(now, (Tensor, np.ndarray))
        advice = "; pass an array that changes as an argument, or write to it" if is_array else ""
        return f"`{self.name}` is another {type(self.seen).__name__}{advice}"


class Assigned:
    """The attributes of modules and of all that is in them, and how many assignments there had been by then.

    `containers` are the lists and dicts among the attributes, with what is in them: nobody counts writes to those.
    """

    __slots__ = ("count", "containers", "_seen")

    def __init__(self, modules: Iterable[Module]) -> None:
        self.count = assignments[0]
        found = {id(part): part for module in modules for part in module.modules()}
        self._seen = [(module, dict(vars(module))) for module in found.values()]
        self.containers = [
            (f"{type(module).__name__}.{name}", value, _items(value))
            for module, seen in self._seen
            for name, value in seen.items()
            if type(value) in (list, dict) and name not in ("_kinds", "_slots")
        ]

    @property
    def is_empty(self) -> bool:
        return not self._seen

    def changed(self) -> str | None:
        """Which attribute is not what it was, or None."""
        for name, container, items in self.containers:
            if not has_items(container, items):
                return f"`{name}` holds other things now"
        now = assignments[0]
        if now == self.count:
            return None
        for module, seen in self._seen:
            for name in {**seen, **vars(module)}:
                reason = Watched(
                    f"{type(module).__name__}.{name}", vars(module), name, seen.get(name, _MISSING)
                ).changed()
                if reason is not None:
                    return reason
        self.count = now
        return None


def _items(container: Any) -> list[Any]:
    return list(container) if type(container) is list else [*container, *container.values()]


def has_items(container: Any, items: list[Any]) -> bool:
    """Whether a list or dict holds these very things, or equal plain values."""
    now = container if type(container) is list else _items(container)
    return len(now) == len(items) and all([x is y or is_same(x, y) for x, y in zip(now, items)])


def is_same(x: Any, y: Any) -> bool:
    """Whether two plain values mean the same to a program: 0.0 is not -0.0, True is not 1, but NaN is NaN."""
    return type(x) is type(y) and type(x) in _PLAIN and repr(x) == repr(y)


def found_in(place: Any, key: Any) -> Any:
    try:
        return place.cell_contents if type(place) is CellType else place[key]
    except (KeyError, IndexError, ValueError):
        return _MISSING


def watched(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[list[Watched], list[Any]]:
    """What `function` will find outside of it when it is called with these arguments, and generators among that."""
    search = _Search()
    search.enter(function, args)
    return list(search.found.values()), list(search.generators.values())


class _Search:
    """Goes through code, and through what is called there."""

    def __init__(self) -> None:
        self.found: dict[Any, Watched] = {}
        self.generators: dict[int, Any] = {}  # of random numbers, by identity
        self.entered: set[Any] = set()

    def enter(self, function: Any, args: tuple[Any, ...] = ()) -> None:
        """Look at the code of something that is called, if it is the user's."""
        if isinstance(function, partial):
            self.enter(function.func, (*function.args, *args))
            return
        if isinstance(function, MethodType):
            function, args = function.__func__, (function.__self__, *args)
        elif not isinstance(function, FunctionType):
            args = (function, *args)
            function = getattr(type(function), "forward" if isinstance(function, Module) else "__call__", None)
        if not _is_users(function):
            return
        key = (function, *(id(arg) for arg in args[:1]))
        if key not in self.entered:
            self.entered.add(key)
            self._read(function, function.__code__, args)

    def _read(self, function: FunctionType, code: CodeType, args: tuple[Any, ...]) -> None:
        instructions = list(dis.get_instructions(code))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        stored = {one.argval for one in instructions if one.opname.startswith("STORE_FAST")}
        given = {name: arg for name, arg in zip(code.co_varnames[: code.co_argcount], args) if name not in stored}
        for number, one in enumerate(instructions):
            name = one.argval
            if one.opname in _NAMES and name in cells:
                value = self._note(name, cells[name], None)
            elif one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in function.__globals__:
                value = self._note(name, function.__globals__, name)
            elif one.opname.startswith("LOAD_FAST") and type(name) is str and name in given:
                value = given[name]
            else:
                continue
            self._follow(name, value, instructions, number + 1)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):  # a function inside: its free names are this one's, or local to it
                self._read(function, constant, ())

    def _follow(self, name: str, value: Any, instructions: list[dis.Instruction], position: int) -> None:
        """Go along the attributes and constant keys that follow a name, and enter what is called at the end."""
        while not _is_library_object(value):
            if isinstance(value, _GENERATORS):
                self.generators[id(value)] = value
            one = instructions[position]
            if one.opname in _ATTRIBUTES:
                attributes = getattr(value, "__dict__", {})
                name = f"{name}.{one.argval}"
                if one.argval not in attributes:
                    method = getattr(type(value), one.argval, None)
                    if isinstance(method, FunctionType):
                        self.enter(method, (value,))
                    return
                value = (
                    attributes[one.argval] if isinstance(value, Module) else self._note(name, attributes, one.argval)
                )
                position += 1
            elif type(value) in (dict, list) and _is_constant_key(instructions, position):
                name = f"{name}[{one.argval!r}]"
                value = self._note(name, value, one.argval)
                position += 2
            else:
                break
        if callable(value) and not isinstance(value, type):
            self.enter(value)

    def _note(self, name: str, place: Any, key: Any) -> Any:
        value = found_in(place, key)
        if not isinstance(value, (ModuleType, type, BuiltinFunctionType)):
            self.found.setdefault((id(place), key), Watched(name, place, key, value))
        return value


def _is_constant_key(instructions: list[dis.Instruction], position: int) -> bool:
    if position + 1 == len(instructions):
        return False
    key, then = instructions[position : position + 2]
    is_read = then.opname == "BINARY_SUBSCR" or (then.opname == "BINARY_OP" and then.argrepr == "[]")
    return key.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")) and is_read and type(key.argval) in (int, str)


def _is_library_object(value: Any) -> bool:
    """Whether nothing is looked for in a thing: a library, or what belongs to one. Modules of networks are no such."""
    if isinstance(value, ModuleType):
        return value.__name__ in _OWN or (getattr(value, "__file__", None) or _STANDARD).startswith(_LIBRARIES)
    return isinstance(value, (Tensor, np.ndarray, np.generic))


def _is_users(function: Any) -> bool:
    if not isinstance(function, FunctionType) or is_library(function.__code__):
        return False
    return not function.__code__.co_filename.startswith(_LIBRARIES)
