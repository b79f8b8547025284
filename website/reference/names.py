"""What is public: the names, what they stand for, and the classes' methods."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, is_typeddict

import pullback as pb

NAMESPACES = (
    "", "nn", "nn.init", "optim", "optim.schedules", "data", "train", "linalg", "fft", "random", "tree", "models",
    "peft", "quant",
)  # fmt: skip
#: Beside them: what has a page, too, though not every method here is for users.
SPECIAL = ("backends", "train.metrics", "finetune", "typing")
#: Names that no namespace lists, but the guides.
UNLISTED = ("backends.standard.StandardBackend", "bridges.torch_modules.TorchModule")


@dataclass(frozen=True)
class Public:
    """A public name; others for the same object are its aliases. All are without `pb.`."""

    name: str
    value: Any
    module: str  # where it is defined, without `pullback.`
    aliases: tuple[str, ...] = ()

    @property
    def is_class(self) -> bool:
        return isinstance(self.value, type)


@functools.cache
def surface() -> dict[str, Public]:
    """All public names of objects, constants and types among them, by their first name."""
    named: dict[str, Any] = {}
    for namespace in (*NAMESPACES, *SPECIAL):
        module = importlib.import_module(f"pullback.{namespace}".rstrip("."))
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name)
            if not name.startswith("_") and not isinstance(value, ModuleType):
                named[f"{namespace}.{name}".lstrip(".")] = value
    for name in UNLISTED:
        module = importlib.import_module(f"pullback.{name.rpartition('.')[0]}")
        named[name] = getattr(module, name.rpartition(".")[2])
    groups: dict[int | str, list[str]] = {}
    for name, value in named.items():
        is_called = inspect.isroutine(value) or isinstance(value, type)
        groups.setdefault(id(value) if is_called else name, []).append(name)
    found = {}
    for names in groups.values():
        value = named[names[0]]
        first = min(names, key=lambda name: (name.count("."), name != getattr(value, "__name__", "")))
        others = tuple(name for name in names if name != first)
        found[first] = Public(first, value, module_of(first, value), others)
    return found


#: Where constants and types are defined, which do not tell.
_MODULES = {
    "backends.NUMPY": "backends",
    "train.Record": "train.callbacks",
    "typing.ArrayLike": "typing",
    "typing.Operand": "typing",
}


def module_of(name: str, value: Any) -> str:
    module = getattr(value, "__module__", None)
    if name in _MODULES or not str(module).startswith("pullback"):
        return _MODULES.get(name, "autodiff.creation")
    return str(module).removeprefix("pullback").lstrip(".")


def members(name: str, value: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, those of our base classes included."""
    for attribute in dir(value):
        found = inspect.getattr_static(value, attribute)
        called = function_of(found)
        if not attribute.startswith("_") and inspect.isfunction(called):
            if str(getattr(called, "__module__", "")).startswith("pullback"):
                yield f"{name}.{attribute}", found.__func__ if isinstance(found, staticmethod | classmethod) else found


def function_of(value: Any) -> Any:
    """The function behind a method or a property."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    return value.fget if isinstance(value, property) else value


@functools.cache
def public() -> dict[str, Any]:
    """Public functions and classes by name, and the methods of the classes; what has two names is there once."""
    found: dict[str, Any] = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(f"pullback.{namespace}".rstrip("."))
        for name in sorted(getattr(module, "__all__", dir(module))):
            value = getattr(module, name)
            is_ours = str(getattr(value, "__module__", "")).startswith("pullback")
            is_called = inspect.isroutine(value) or (isinstance(value, type) and not is_typeddict(value))
            if not name.startswith("_") and is_ours and is_called:
                found[f"{namespace}.{name}".lstrip(".")] = value
    classes = [(name, value) for name, value in found.items() if isinstance(value, type)]
    for name, value in sorted(classes, key=lambda pair: len(pair[1].__mro__)):  # a method belongs to a base class
        found |= dict(members(name, value))
    return {name: value for value, name in {value: name for name, value in reversed(found.items())}.items()}


def value_of(name: str) -> Any:
    *owners, last = name.split(".")
    owner: Any = functools.reduce(getattr, owners, pb)
    return inspect.getattr_static(owner, last) if isinstance(owner, type) else getattr(owner, last)


def text_of(name: str) -> str:
    return inspect.getdoc(value_of(name)) or ""
