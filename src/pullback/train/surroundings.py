"""What a compiled step takes for granted: the Python values that the model and the loss look at.

A trace runs Python code once, so that a number read there belongs to the program, and a list appended to there would
stay as it is. Here such places are found and looked at before every step: the attributes of the model's modules, and
of the loss and the methods of your classes what they see of enclosing functions, of their module and of objects.
"""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType
from typing import Any, Callable

import numpy as np

from ..nn.module import Module
from ..tensor.core import Tensor

_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic)
_CONTAINERS = (list, dict, set)


class Place:
    """Somewhere that Python code keeps values: how to read them as a dict or list, and what they were."""

    __slots__ = ("name", "read", "write", "before")

    def __init__(self, name: str, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        self.name = name
        self.read = read
        self.write = write
        self.before = read()

    def is_changed(self) -> bool:
        try:
            return bool(self.read() != self.before)  # what is the same object is equal, without a comparison
        except Exception:  # arrays that were replaced have no single answer
            return True

    def changes(self) -> str:
        now, before = self.read(), self.before
        if isinstance(now, dict) and isinstance(before, dict):
            for key in {**before, **now}:
                if now.get(key, ...) is not before.get(key, ...):
                    return f"{self.name}{key}"
        return self.name.removesuffix(".")


class Surroundings:
    """The places that a model's and a loss's code can see, with what is in them now."""

    def __init__(self, model: Module, loss: Any) -> None:
        self._places: list[Place] = []
        self._seen: set[int] = set()
        for name, module in model.named_modules():
            self._add_module(f"model.{name}." if name else "model.", module)
        self._add_callable("loss", loss)

    def changed(self) -> str | None:
        """The name of a place that has other values than before, or None."""
        for place in self._places:
            if place.is_changed():
                return place.changes()
        return None

    def restore(self) -> None:
        """Put everything back as it was."""
        for place in self._places:
            if place.is_changed():
                place.write(place.before)

    # -- finding places ----------------------------------------------------------------------------

    def _is_new(self, x: Any) -> bool:
        if id(x) in self._seen:
            return False
        self._seen.add(id(x))
        return True

    def _add_module(self, name: str, module: Module) -> None:
        if self._is_new(module):
            attributes = vars(module)
            self._places.append(Place(name, lambda: dict(attributes), lambda before: _refill(attributes, before)))
            for key, value in attributes.items():
                self._add_container(f"{name}{key}", value)
            for kind in type(module).__mro__:
                if not _is_library(kind):
                    self._add_class(kind)

    def _add_container(self, name: str, value: Any) -> None:
        if isinstance(value, _CONTAINERS) and self._is_new(value):
            self._places.append(Place(name, value.copy, lambda before: _refill(value, before)))

    def _add_class(self, kind: type) -> None:
        if kind is object or not self._is_new(kind):
            return
        for key, value in list(vars(kind).items()):
            if isinstance(value, FunctionType):
                self._add_function(f"{kind.__name__}.{key}", value)
            elif not key.startswith("__"):
                self._add_container(f"{kind.__name__}.{key}", value)
                if isinstance(value, _PLAIN):
                    self._add_attributes(f"{kind.__name__}.", kind, (key,))

    def _add_callable(self, name: str, function: Any) -> None:
        if isinstance(function, Module):
            for path, module in function.named_modules():
                self._add_module(f"{name}.{path}." if path else f"{name}.", module)
        elif isinstance(function, MethodType):
            inner: Any = function.__func__
            self._add_callable(name, inner)
            if isinstance(inner, FunctionType):
                self._add_object(f"{name}.__self__", function.__self__, inner.__code__.co_names)
        elif isinstance(function, FunctionType):
            self._add_function(name, function)
        elif not _is_library(type(function)):
            call: Any = type(function).__call__
            if isinstance(call, FunctionType):
                self._add_function(name, call)
                self._add_object(name, function, call.__code__.co_names)

    def _add_function(self, name: str, function: FunctionType) -> None:
        if not self._is_new(function):
            return
        code, scope = function.__code__, function.__globals__
        met: list[tuple[str, Any]] = []
        for variable, cell in zip(code.co_freevars, function.__closure__ or ()):
            if not _is_library(function):
                self._add_cell(variable, cell)
            met += [(variable, value) for value in _contents(cell)]
        if not _is_library(function):
            names = tuple([n for n in code.co_names if n in scope and isinstance(scope[n], _PLAIN)])
            if names:
                self._places.append(
                    Place("", lambda: {n: scope.get(n, ...) for n in names}, lambda before: scope.update(before))
                )
            met += [(n, scope[n]) for n in code.co_names if n in scope]
        for variable, value in met:
            self._add_container(variable, value)
            if isinstance(value, (FunctionType, MethodType)) and not _is_library(value):
                self._add_callable(variable, value)
            elif not isinstance(value, (Tensor, Module, type)):
                self._add_object(variable, value, code.co_names)

    def _add_cell(self, name: str, cell: Any) -> None:
        def write(before: list[Any]) -> None:
            if before:
                cell.cell_contents = before[0]

        if self._is_new(cell):
            self._places.append(Place(name, lambda: _contents(cell), write))

    def _add_object(self, name: str, thing: Any, names: tuple[str, ...]) -> None:
        """Of an object, or of a module, those attributes that the code names."""
        if hasattr(thing, "__dict__") and not (isinstance(thing, ModuleType) and _is_library(thing)):
            attributes = vars(thing)
            found = tuple([n for n in names if n in attributes and isinstance(attributes[n], _PLAIN)])
            self._add_attributes(f"{name}.", thing, found)
            for n in names:
                if n in attributes:
                    self._add_container(f"{name}.{n}", attributes[n])

    def _add_attributes(self, name: str, thing: Any, names: tuple[str, ...]) -> None:
        def write(before: dict[str, Any]) -> None:
            for key, value in before.items():
                setattr(thing, key, value)

        if names:
            self._places.append(Place(name, lambda: {n: getattr(thing, n, None) for n in names}, write))


def _contents(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not assigned yet
        return []


def _refill(container: Any, before: Any) -> None:
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(before)


def _is_library(thing: Any) -> bool:
    """Whether code is Pullback's or NumPy's own, which keeps nothing from call to call."""
    name = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
    return str(name).partition(".")[0] in ("pullback", "numpy", "math", "builtins")
