"""Which methods of a class are told in full, which are another's, and where each is to be found."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field
from typing import Any

from .families import PAGES, placed
from .names import Public, function_of, members, surface


@dataclass
class Methods:
    """The public methods and properties of a class."""

    told: dict[str, Any] = field(default_factory=dict)
    elsewhere: dict[str, str | None] = field(default_factory=dict)  # own, but told with another class
    functions: dict[str, str] = field(default_factory=dict)  # a function of `pb` that is a method, too
    inherited: dict[str, list[str]] = field(default_factory=dict)  # by the public class that has them


@functools.cache
def methods() -> dict[str, Methods]:
    """By class, in the order of the pages: what classes share is told with the first."""
    by_value = {id(item.value): item.name for item in surface().values() if inspect.isroutine(item.value)}
    classes = {item.value: item.name for item in surface().values() if item.is_class}
    told: dict[int, str] = {}
    found = {}
    for item in [i for page in PAGES for items in placed()[page.name].values() for i in items if i.is_class]:
        found[item.name] = parts = Methods()
        for full, value in members(item.name, item.value):
            name = full.rpartition(".")[2]
            owner = next(base for base in item.value.__mro__ if name in vars(base))
            function = function_of(value)
            if owner is not item.value and owner in classes:
                parts.inherited.setdefault(classes[owner], []).append(name)
            elif id(function) in by_value:
                parts.functions[name] = by_value[id(function)]
            elif id(function) in told:
                parts.elsewhere[name] = told[id(function)]
            elif function.__doc__:
                parts.told[name] = value
                told[id(function)] = full
            else:
                parts.elsewhere[name] = _base_with(name, item, classes)
    return found


def _base_with(name: str, item: Public, classes: dict[type, str]) -> str | None:
    """The method of a public base class that one without a docstring takes the place of."""
    bases = [base for base in item.value.__mro__[1:] if base in classes and name in vars(base)]
    return f"{classes[bases[0]]}.{name}" if bases else None


@functools.cache
def addresses() -> dict[str, str]:
    """Where names are told: `reference/nn_layers.html#pb.nn.Linear`; aliases, and methods that are told, too."""
    found = {}
    for page in PAGES:
        address = page.path.replace(".md", ".html")
        for item in [item for items in placed()[page.name].values() for item in items]:
            for name in (item.name, *item.aliases):
                found[name] = f"{address}#pb.{name}"
            if parts := methods().get(item.name):
                for method in [*parts.told, *parts.elsewhere, *parts.functions]:
                    found[f"{item.name}.{method}"] = f"{address}#pb.{item.name}.{method}"
    return found


@functools.cache
def address_of(name: str) -> str | None:
    """Where a name is told, without `pb.`: a method that is inherited with the class it comes from."""
    if name in addresses():
        return addresses()[name]
    owner, _, method = name.rpartition(".")
    for base, inherited in methods()[owner].inherited.items() if owner in methods() else ():
        if method in inherited:
            return addresses().get(f"{base}.{method}")
    pages = {page.namespace: page.path.replace(".md", ".html") for page in PAGES if page.namespace}
    return pages.get(name) or (addresses().get(name.removeprefix("errors.")) if name.startswith("errors.") else None)
