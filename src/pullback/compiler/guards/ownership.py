"""Whose code is it? What users wrote is guarded name by name; libraries are taken to stay as they are."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import weakref
from types import CodeType, ModuleType
from typing import Any

import numpy as np

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARIES = tuple(
    {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        os.path.dirname(os.__file__),
        os.path.dirname(np.__file__),
        site.getusersitepackages(),
        _OWN,
        "<frozen",
        "<pullback",
        "<__array_function__",
    }
)
_TYPED_BY_SOMEBODY = ("<doctest", "<ipython", "<stdin", "<console")
_OF_OPERATIONS = {"__builtins__", "rule", "mask"}  # see `autodiff/recipe.py`
_HEAP_TYPE = 1 << 9
_classes: dict[int, tuple[Any, bool]] = {}  # by identity, with a reference: metaclasses may say which are equal
_codes: dict[int, tuple[CodeType, bool]] = {}  # by identity: the hash of code goes through all of it


def is_users_code(code: CodeType) -> bool:
    """Whether code stands in a file that belongs to no library."""
    found = _codes.get(id(code))
    if found is None:
        found = _codes[id(code)] = code, not code.co_filename.startswith(_LIBRARIES)
    return found[1]


def is_users_function(code: CodeType, scope: dict[str, Any]) -> bool:
    """Whether a function with these globals is the user's. What was generated belongs to the module of its globals."""
    name = code.co_filename
    if name[0] != "<" or not is_users_code(code) or name.startswith(_TYPED_BY_SOMEBODY):
        return is_users_code(code)
    module = scope.get("__name__")
    if module is None:  # a dict of the user's, or one of those that operations are made in
        return not scope.keys() <= _OF_OPERATIONS
    return module not in sys.modules or is_users_module(sys.modules[module])


def is_users_module(module: ModuleType | None) -> bool:
    if module is None:
        return False
    file = vars(module).get("__file__")
    if file is None:  # built in, `__main__` of a console, a package without a file, or made by hand
        name = module.__name__
        return name == "__main__" or name not in sys.modules or (hasattr(module, "__path__") and name not in _KNOWN)
    return not file.startswith(_LIBRARIES)


_KNOWN = frozenset(sys.stdlib_module_names)


def is_users_class(cls: type) -> bool:
    """Whether a class was defined by the user, so that its attributes can be listened to."""
    reference, found = _classes.get(id(cls), (None, False))
    if reference is None or reference() is not cls:
        found = _is_users_class(cls)
        _classes[id(cls)] = weakref.ref(cls), found
    return found


def _is_users_class(cls: type) -> bool:
    if not cls.__flags__ & _HEAP_TYPE:
        return False
    module = sys.modules.get(cls.__module__)
    return module is None or is_users_module(module)
