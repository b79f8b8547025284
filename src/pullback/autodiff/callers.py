"""Telling who asked for something: the call, or the assignment, in the user's line. For messages of errors alone."""

from __future__ import annotations

import builtins
import dis
import sys
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .graph import user_frame

#: Libraries whose functions a user calls, so that the user's line is further out.
_LIBRARIES = frozenset(("matplotlib", "numpy", "pandas", "plotly", "scipy", "seaborn", "sklearn"))
_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


class Caller(NamedTuple):
    """What stands in the user's line, as far as it is known."""

    is_assignment: bool  # to an element: `name[...] = ...`
    library: str  # whose code asked: "numpy", "math", "builtins", ...; "" if it is not known
    name: str  # of the function, as "numpy.linalg.solve", "math.sin", "ndarray.dot", or of what is assigned to


_UNKNOWN = Caller(False, "", "")


def caller(frame: FrameType | None) -> Caller:
    """Who asked, from the frame that did or from one of Pullback's inside of it."""
    frame, inside = user_frame(frame), []
    while frame is not None and _package(frame) in _LIBRARIES:
        inside.append(frame)
        frame = user_frame(frame.f_back)
    if frame is None:
        return _UNKNOWN
    try:
        found = _at(frame)
    except Exception:  # other bytecode than is known
        found = _UNKNOWN
    if not inside or found.library == _package(inside[-1]):
        return found
    # decorators hide what they are around
    function = next((f for f in reversed(inside) if "<" not in f.f_code.co_qualname), inside[0])
    return Caller(False, _package(function), _public(function.f_globals["__name__"], _name(function)))


def _name(function: FrameType) -> str:
    """The name of a function that is running; of an object's own methods, such as `__call__`, that of the class."""
    owner, _, name = function.f_code.co_qualname.rpartition(".")
    if not owner:
        return name
    kind = type(function.f_locals["self"]).__name__ if "self" in function.f_locals else owner
    return kind if name.startswith("__") else f"{kind}.{name}"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _public(module: str, name: str) -> str:
    """The full name that a user writes: "scipy.linalg.solve", which "scipy.linalg._basic" has defined."""
    parts = module.split(".")
    depth = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    packages = [".".join(parts[: i + 1]) for i in range(depth)]
    found = [getattr(sys.modules.get(package), name.partition(".")[0], None) for package in packages]
    known = [package for package, x in zip(packages, found) if x is not None and not isinstance(x, ModuleType)]
    return f"{known[0] if known else packages[-1]}.{name}"


def _at(frame: FrameType) -> Caller:
    """The call or the assignment that a frame is in the middle of."""
    instructions = list(dis.get_instructions(frame.f_code))
    here = [i for i in instructions if i.offset <= frame.f_lasti][-1]  # behind it there may be caches
    place = here.positions
    if place is None or place.col_offset is None:
        return Caller(True, "", "") if here.opname.startswith("STORE_SUBSCR") else _UNKNOWN
    # what is called, and what is assigned to, begins where the whole expression does, and ends before it
    begin, end = (place.lineno, place.col_offset), (place.end_lineno, place.end_col_offset)
    steps = [
        i
        for i in instructions
        if i.positions is not None
        and i.positions.end_lineno is not None
        and (i.positions.lineno, i.positions.col_offset) == begin
        and (i.positions.end_lineno, i.positions.end_col_offset) < end
        and (i.opname.startswith(("LOAD_", "CALL", "BINARY_")))
    ]
    if here.opname in ("STORE_SUBSCR", "STORE_SLICE"):
        is_name = len(steps) == 1 and steps[0].opname.startswith(_NAMES)
        return Caller(True, "", _first(steps[0]) if is_name else "")
    if not here.opname.startswith(("CALL", "PRECALL")) or not steps:
        return _UNKNOWN
    if not (steps[0].opname.startswith(_NAMES) and all(i.opname.startswith(_ATTRIBUTES) for i in steps[1:])):
        method = _first(steps[-1])
        if not steps[-1].opname.startswith(_ATTRIBUTES):
            return _UNKNOWN
        if hasattr(np.ndarray, method):
            return Caller(False, "ndarray", f"ndarray.{method}")
        return Caller(False, "numpy", f"numpy.random.{method}") if hasattr(np.random.Generator, method) else _UNKNOWN
    return _called(frame, [_first(i) for i in steps])


def _first(instruction: dis.Instruction) -> str:
    """The name that an instruction loads; the first one of two that are loaded at once (from Python 3.13 on)."""
    name = instruction.argval
    return str(name[0] if isinstance(name, tuple) else name)


def _called(frame: FrameType, path: list[str]) -> Caller:
    """A function by the names that lead to it; only modules, classes and NumPy's objects are asked for attributes."""
    first, *rest = path
    value: Any = next(
        (names[first] for names in (frame.f_locals, frame.f_globals, vars(builtins)) if first in names), None
    )
    module = value.__name__ if isinstance(value, ModuleType) else ""
    for attribute in rest:
        if isinstance(value, np.ndarray):
            return Caller(False, "ndarray", f"ndarray.{attribute}")
        if not isinstance(value, (ModuleType, type)) and _home(type(value)) not in _LIBRARIES:
            return _UNKNOWN
        value = getattr(value, attribute, None)
    name = ".".join(rest if module else path)
    if not module and len(path) == 1:  # `from math import sin`
        module = getattr(value, "__module__", None) or type(value).__module__
        name = getattr(value, "__name__", first)
    elif not module:  # a method of an object
        module = type(getattr(value, "__self__", None)).__module__
    library = module.partition(".")[0]
    return Caller(False, library, _public(module, name)) if library in (*_LIBRARIES, "math", "builtins") else _UNKNOWN


def _home(kind: type) -> str:
    return kind.__module__.partition(".")[0]
