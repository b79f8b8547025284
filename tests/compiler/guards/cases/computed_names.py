"""Attributes and items under names that the function computes."""

from __future__ import annotations

import operator
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Iterator

import pullback as pb
from pullback import nn

from ..harness import X, case, changes
from .objects import Config, setting

NAME: Any = "scale"

changes("getattr_of_a_known_name", Config, lambda c: lambda x: x * getattr(c, "scale"), setting(scale=3.0))  # noqa: B009
changes(
    "getattr_of_a_computed_name",
    Config,
    lambda c: lambda x: x * getattr(c, "sca" + "le".lower()),
    setting(scale=3.0),
    setting(scale=2.0),
)
changes(
    "getattr_with_a_default",
    Config,
    lambda c: lambda x: x * getattr(c, "none", 5.0),
    setting(none=3.0),
    lambda c: delattr(c, "none"),
)
changes(
    "getattr_of_an_unused_name",
    Config,
    lambda c: lambda x: x * getattr(c, "scale", None),
    setting(other=3.0),
    steady=True,
)
changes(
    "hasattr",
    Config,
    lambda c: lambda x: x if hasattr(c, "extra") else -x,
    setting(extra=None),
    lambda c: delattr(c, "extra"),
)
changes(
    "hasattr_of_a_computed_name",
    Config,
    lambda c: lambda x: x if hasattr(c, "ex".upper().lower() + "tra") else -x,
    setting(extra=None),
)
changes(
    "dir", Config, lambda c: lambda x: x * len([name for name in dir(c) if name.startswith("s")]), setting(second=1.0)
)
changes(
    "vars", Config, lambda c: lambda x: x * vars(c)["scale"], setting(scale=3.0), lambda c: vars(c).update(scale=4.0)
)
changes(
    "vars_iterated", Config, lambda c: lambda x: x * len(vars(c)), setting(second=1.0), lambda c: delattr(c, "second")
)
changes("dunder_dict", Config, lambda c: lambda x: x * c.__dict__["scale"], setting(scale=3.0))
changes(
    "dunder_dict_with_a_computed_key",
    Config,
    lambda c: lambda x: x * c.__dict__["".join(["sc", "ale"])],
    setting(scale=3.0),
)
changes(
    "dunder_dict_items",
    lambda: SimpleNamespace(a=1.0, b=2.0),
    lambda c: lambda x: sum(x * v for v in c.__dict__.values()),
    setting(c=3.0),
    setting(a=0.0),
)
changes(
    "dunder_class",
    Config,
    lambda c: lambda x: x * len(c.__class__.__name__),
    lambda c: setattr(c, "__class__", Renamed),
)
changes(
    "attrgetter", Config, lambda c: (lambda get: lambda x: x * get(c))(operator.attrgetter("scale")), setting(scale=3.0)
)
changes(
    "attrgetter_of_a_path",
    Config,
    lambda c: lambda x: x ** operator.attrgetter("inner.power")(c),
    lambda c: setattr(c.inner, "power", 3),
)
changes(
    "attrgetter_of_several",
    lambda: SimpleNamespace(a=1.0, b=2.0),
    lambda c: lambda x: x * sum(operator.attrgetter("a", "b")(c)),
    setting(b=3.0),
)
changes(
    "itemgetter", lambda: {"a": 2.0}, lambda c: lambda x: x * operator.itemgetter("a")(c), lambda c: c.update(a=3.0)
)
changes(
    "methodcaller",
    Config,
    lambda c: lambda x: x * operator.methodcaller("__getattribute__", "scale")(c),
    setting(scale=3.0),
)
changes(
    "operator_getitem", lambda: [2.0], lambda c: lambda x: x * operator.getitem(c, 0), lambda c: c.__setitem__(0, 3.0)
)
changes(
    "operator_contains",
    lambda: [2.0],
    lambda c: lambda x: x if operator.contains(c, 3.0) else -x,
    lambda c: c.append(3.0),
)
changes(
    "setattr_outside_under_a_computed_name",
    Config,
    lambda c: lambda x: x * c.scale,
    lambda c: setattr(c, "sca" + "le", 3.0),
)
changes("object_getattribute", Config, lambda c: lambda x: x * object.__getattribute__(c, "scale"), setting(scale=3.0))
changes("type_getattribute", Config, lambda c: lambda x: x * type(c).__getattribute__(c, "scale"), setting(scale=3.0))
changes(
    "mro_searched",
    Config,
    lambda c: lambda x: x * sum("marked" in vars(cls) for cls in type(c).__mro__),
    lambda c: setattr(c, "__class__", Renamed),
)
changes(
    "key_computed_from_another_setting",
    lambda: {"which": "a", "a": 2.0, "b": 3.0},
    lambda c: lambda x: x * c[c["which"]],
    lambda c: c.update(which="b"),
    lambda c: c.update(b=5.0),
    lambda c: c.update(a=9.0),
)
changes(
    "function_looked_up_by_name",
    lambda: SimpleNamespace(act="tanh"),
    lambda c: lambda x: getattr(pb, c.act)(x),
    setting(act="exp"),
    setting(act="tanh"),
)
changes(
    "method_looked_up_by_name",
    lambda: SimpleNamespace(how="sum"),
    lambda c: lambda x: getattr(x, c.how)(),
    setting(how="max"),
    setting(how="mean"),
)
changes(
    "class_looked_up_by_name",
    lambda: SimpleNamespace(act="Tanh"),
    lambda c: lambda x: getattr(nn, c.act)()(x),
    setting(act="ReLU"),
    setting(act="Sigmoid"),
)
changes(
    "module_attribute_by_getattr",
    lambda: nn.Dropout(0.0),
    lambda m: lambda x: x * getattr(m, "factor", 2.0),
    setting(factor=3.0),
)
changes(
    "module_part_by_getattr",
    lambda: nn.Sequential(nn.Tanh()),
    lambda m: lambda x: getattr(m, "0", None)(x) if hasattr(m, "0") else m[0](x),
    lambda m: m.__setitem__(0, nn.ReLU()),
)
changes("eval_of_an_expression", Config, lambda c: lambda x: x * eval("c.scale", {"c": c}), setting(scale=3.0))
changes("string_template", Config, lambda c: lambda x: x * float(f"{c.scale}"), setting(scale=3.0))


class Renamed(Config):
    marked = True


@case
def name_itself_changes(compiled: Any) -> Iterator[Any]:
    config, name = SimpleNamespace(a=2.0, b=3.0), "a"
    f = compiled(lambda x: x * getattr(config, name))
    yield f(X)
    name = "b"
    yield f(X)
    config.b = 5.0
    yield f(X)
    name = "a"
    yield f(X)


@case
def attributes_assigned_in_a_loop(compiled: Any) -> Iterator[Any]:
    config = SimpleNamespace()
    for i in range(3):
        setattr(config, f"w{i}", float(i))
    f = compiled(lambda x: sum(x * getattr(config, f"w{i}") for i in range(3)))
    yield f(X)
    for i in range(3):
        setattr(config, f"w{i}", i * 10.0)
    yield f(X)


@case
def attribute_of_a_python_module_by_getattr(compiled: Any) -> Iterator[Any]:
    module = ModuleType("settings")
    module.scale = 2.0
    f = compiled(lambda x: x * getattr(module, "sca" + "le"))
    yield f(X)
    module.scale = 3.0
    yield f(X)


@case
def python_module_with_its_own_getattr(compiled: Any) -> Iterator[Any]:
    module, values = ModuleType("settings"), {"scale": 2.0}
    module.__getattr__ = lambda name: values[name]
    f = compiled(lambda x: x * module.scale)
    yield f(X)
    values["scale"] = 3.0
    yield f(X)
    module.scale = 4.0
    yield f(X)


@case(refused=True)
def names_of_this_module_by_sys_modules(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * len(getattr(sys.modules[__name__], "NAME")))  # noqa: B009
    global NAME
    try:
        yield f(X)
        NAME = "another"
        yield f(X)
    finally:
        NAME = "scale"
    yield f(X)


@case
def registry_of_functions(compiled: Any) -> Iterator[Any]:
    registry: dict[str, Any] = {}

    def register(function: Any) -> Any:
        registry[function.__name__] = function
        return function

    @register
    def double(x: Any) -> Any:
        return x * 2

    def run(x: Any) -> Any:
        for name in sorted(registry):
            x = registry[name](x)
        return x

    f = compiled(run)
    yield f(X)

    @register
    def shift(x: Any) -> Any:
        return x + 1

    yield f(X)
    registry.pop("double")
    yield f(X)
