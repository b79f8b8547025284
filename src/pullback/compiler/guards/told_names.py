"""Names in code, and what they tell of what it reads."""

from __future__ import annotations

import datetime
import os
import time

#: Reading one of these reads all attributes of an object.
WHOLE = frozenset(("__dict__", "__reduce_ex__", "__reduce__", "__getstate__", "__copy__", "__deepcopy__", "__dir__"))
COMPUTED = frozenset(
    ("getattr", "hasattr", "vars", "dir", "setattr", "delattr", "attrgetter", "getmembers", "getattr_static")
)
SEARCHING = COMPUTED | {
    "__dict__", "AttributeError", "Exception", "BaseException", "suppress", "copy", "deepcopy", "str", "repr", "format",
    "hash", "dumps", "__eq__", "__contains__", "__format__", "__repr__", "__str__",
}  # fmt: skip
#: How code comes from an object to its class, and from there to its bases.
TO_CLASSES = frozenset(("super", "type", "__class__", "__mro__", "mro", "__bases__", "__base__"))
#: What code may ask of a function beside what it does.
OF_FUNCTIONS = frozenset(("__doc__", "__annotations__", "__name__", "__qualname__", "__module__"))
#: What code may ask of a class beside its attributes.
OF_CLASSES = frozenset(("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__subclasses__"))
REFUSED = ("print", "input", "globals", "open", "breakpoint")
_PATHS = frozenset(("exists", "isfile", "isdir", "islink", "getsize", "getmtime", "getatime", "getctime"))
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_DAYS = frozenset(("now", "utcnow", "today"))
#: What libraries say is something else each time, or depends on the world outside: by module or class.
BY_CHANCE: dict[int, frozenset[str]] = {
    id(time): frozenset((*_CLOCKS, *(f"{clock}_ns" for clock in _CLOCKS), "localtime", "gmtime", "ctime")),
    id(os): _PATHS | {"urandom", "getrandom", "getcwd", "getcwdb", "stat", "lstat", "access", "times"},
    id(os.path): _PATHS,
    id(datetime): _DAYS,
    id(datetime.datetime): _DAYS,
    id(datetime.date): _DAYS,
}
FUNCTIONS_BY_CHANCE = frozenset(
    id(getattr(module, name))
    for module in (time, os, os.path)
    for name in BY_CHANCE[id(module)]
    if hasattr(module, name) and callable(getattr(module, name))
)
