"""Attributes of objects: of plain classes, dataclasses, named tuples, enums and namespaces, in many places."""

from __future__ import annotations

import argparse
import copy
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import pullback as pb

from ..harness import X, attempt, case, changes


class Config:
    """A number, a list and another object."""

    def __init__(self, scale: Any = 2.0) -> None:
        self.scale = scale
        self.shifts = [1.0, 2.0]
        self.inner = SimpleNamespace(power=2)


def apply(config: Any, x: Any) -> Any:
    return x * config.scale


def setting(**values: Any) -> Callable[[Any], None]:
    """A change: these attributes are assigned."""
    return lambda thing: [setattr(thing, name, value) for name, value in values.items()] and None


# -- a config object, however it is reached ------------------------------------------------------

OBJECT: Any = Config()
HELD: Any = {"config": OBJECT}


def _default(config: Any) -> Any:
    def run(x: Any, c: Any = config) -> Any:
        return x * c.scale

    return run


def _keyword_default(config: Any) -> Any:
    def run(x: Any, *, c: Any = config) -> Any:
        return x * c.scale

    return run


def _inner(config: Any) -> Any:
    def run(x: Any) -> Any:
        def inner() -> Any:
            return x * config.scale

        return inner()

    return run


class Holder:
    def __init__(self, config: Any) -> None:
        self.config = config

    def __call__(self, x: Any) -> Any:
        return x * self.config.scale

    def method(self, x: Any) -> Any:
        return apply(self.config, x)


def _unpacked(config: Any) -> Any:
    configs = [(1, config)]

    def run(x: Any) -> Any:
        for number, one in configs:
            x = x * number * one.scale
        return x

    return run


ROUTES: dict[str, Callable[[Any], Any]] = {
    "a_closure": lambda c: lambda x: x * c.scale,
    "a_helper": lambda c: lambda x: apply(c, x),
    "a_default": _default,
    "a_keyword_default": _keyword_default,
    "a_partial": lambda c: partial(apply, c),
    "a_list": lambda c: (lambda held: lambda x: x * held[0].scale)([c]),
    "a_list_in_a_loop": _unpacked,
    "a_tuple": lambda c: (lambda held: lambda x: apply(held[1], x))((None, c)),
    "a_dict": lambda c: (lambda held: lambda x: x * held["config"].scale)({"config": c}),
    "a_computed_key": lambda c: (lambda held, name: lambda x: x * held[name + "fig"].scale)({"config": c}, "con"),
    "get_of_a_dict": lambda c: (lambda held: lambda x: x * held.get("config").scale)({"config": c}),
    "values_of_a_dict": lambda c: (lambda held: lambda x: sum(x * v.scale for v in held.values()))({"config": c}),
    "an_attribute": lambda c: (lambda held: lambda x: x * held.config.scale)(Holder(c)),
    "a_callable_object": lambda c: Holder(c),
    "a_bound_method": lambda c: Holder(c).method,
    "an_inner_function": _inner,
    "a_local_name": lambda c: lambda x: (lambda local: x * local.scale)(c),
    "a_conditional_expression": lambda c: lambda x: x * (c if x.ndim else None).scale,
    "a_set": lambda c: (lambda held: lambda x: x * next(iter(held)).scale)({c}),
    "a_star_argument": lambda c: (lambda held: lambda x: apply(*held, x))([c]),
    "a_double_star_argument": lambda c: (lambda held: lambda x: apply(x=x, **held))({"config": c}),
}
for _name, _route in ROUTES.items():
    changes(f"object_reached_through_{_name}", Config, _route, setting(scale=3.0), setting(scale=2.0))


@case
def object_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    config, f = Config(), compiled(apply)
    yield f(config, X)
    config.scale = 3.0
    yield f(config, X)
    yield f(Config(5.0), X)
    yield f(config, X)


@case
def object_in_containers_given_as_an_argument(compiled: Any) -> Iterator[Any]:
    config = Config()
    f = compiled(lambda held, x: x * held["list"][0].scale)
    yield f({"list": [config]}, X)
    config.scale = 3.0
    yield f({"list": [config]}, X)
    yield f({"list": [Config(4.0)]}, X)


@case
def object_given_by_keyword(compiled: Any) -> Iterator[Any]:
    config, f = Config(), compiled(lambda x, **named: x * named["config"].scale)
    yield f(X, config=config)
    config.scale = 3.0
    yield f(X, config=config)


@case
def object_reached_through_a_global_dict(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x: x * HELD["config"].scale)
    yield f(X)
    OBJECT.scale = 3.0
    yield f(X)
    HELD["config"] = Config(4.0)
    yield f(X)
    OBJECT.scale, HELD["config"] = 2.0, OBJECT
    yield f(X)


# -- what of an object changes -------------------------------------------------------------------

changes("attribute_deleted", Config, lambda c: lambda x: x * getattr(c, "scale", 7.0), lambda c: delattr(c, "scale"))
changes("attribute_added", Config, lambda c: lambda x: x * getattr(c, "extra", 1.0), setting(extra=3.0))
changes(
    "attribute_of_an_attribute", Config, lambda c: lambda x: x**c.inner.power, lambda c: setattr(c.inner, "power", 3)
)
changes(
    "object_in_an_attribute_replaced",
    Config,
    lambda c: lambda x: x**c.inner.power,
    setting(inner=SimpleNamespace(power=3)),
)
changes(
    "list_in_an_attribute",
    Config,
    lambda c: lambda x: x + c.shifts[0],
    lambda c: c.shifts.__setitem__(0, 5.0),
    setting(shifts=[7.0]),
)
changes(
    "list_in_an_attribute_iterated",
    Config,
    lambda c: lambda x: sum(c.shifts, x),
    lambda c: c.shifts.append(5.0),
    lambda c: c.shifts.clear(),
)
changes("attribute_through_dict", Config, lambda c: lambda x: x * c.scale, lambda c: c.__dict__.update(scale=4.0))
changes("attributes_replaced_at_once", Config, lambda c: lambda x: x * c.scale, setting(__dict__={"scale": 9.0}))
changes(
    "attribute_through_object_setattr",
    Config,
    lambda c: lambda x: x * c.scale,
    lambda c: object.__setattr__(c, "scale", 4.0),
)
changes(
    "number_becomes_a_tensor_in_an_attribute",
    Config,
    lambda c: lambda x: x * c.scale,
    setting(scale=pb.tensor([5.0, 6.0])),
    setting(scale=2.0),
)
changes(
    "zero_becomes_minus_zero",
    lambda: SimpleNamespace(sign=0.0),
    lambda c: lambda x: pb.copysign(x, c.sign),
    setting(sign=-0.0),
)
changes(
    "one_becomes_true",
    lambda: SimpleNamespace(flag=1),
    lambda c: lambda x: x * (2 if c.flag is True else 3),
    setting(flag=True),
)
changes(
    "nan_in_an_attribute",
    lambda: SimpleNamespace(a=float("nan")),
    lambda c: lambda x: x * c.a,
    setting(a=1.0),
    setting(a=float("nan")),
)
changes(
    "large_integer_in_an_attribute",
    lambda: SimpleNamespace(a=10**6),
    lambda c: lambda x: x * c.a,
    setting(a=10**6 + 64),
)
changes(
    "function_in_an_attribute",
    lambda: SimpleNamespace(act=pb.tanh),
    lambda c: lambda x: c.act(x),
    setting(act=pb.exp),
    setting(act=abs),
)
changes(
    "dtype_in_an_attribute",
    lambda: SimpleNamespace(dtype=pb.float32),
    lambda c: lambda x: x.astype(c.dtype),
    setting(dtype=pb.float64),
)
changes(
    "shape_in_an_attribute",
    lambda: SimpleNamespace(shape=(2, 2)),
    lambda c: lambda x: pb.broadcast_to(x, c.shape),
    setting(shape=(1, 2)),
)
changes(
    "slice_in_an_attribute",
    lambda: SimpleNamespace(part=slice(0, 1)),
    lambda c: lambda x: x[c.part],
    setting(part=slice(0, 2)),
    setting(part=0),
)
changes(
    "optional_mask_in_an_attribute",
    lambda: SimpleNamespace(mask=None),
    lambda c: lambda x: x if c.mask is None else x * c.mask,
    setting(mask=pb.tensor([1.0, 0.0])),
    setting(mask=None),
)
changes(
    "argparse_namespace",
    lambda: argparse.Namespace(lr=0.1, wd=0.0),
    lambda c: lambda x: x * c.lr,
    setting(lr=0.2),
    setting(wd=1.0),
    setting(lr=0.1),
)
changes(
    "simple_namespace_nested",
    lambda: SimpleNamespace(a=SimpleNamespace(b=SimpleNamespace(c=2.0))),
    lambda n: lambda x: x * n.a.b.c,
    lambda n: setattr(n.a.b, "c", 3.0),
    lambda n: setattr(n.a, "b", SimpleNamespace(c=4.0)),
)
changes(
    "attribute_that_is_not_read",
    Config,
    lambda c: lambda x: x * c.scale,
    setting(other=1),
    setting(other=[2]),
    steady=True,
)
changes(
    "attribute_assigned_the_same_value",
    Config,
    lambda c: lambda x: x * c.scale,
    setting(scale=2.0),
    setting(scale=1.0 + 1.0),
    steady=True,
)


class Slotted:
    __slots__ = ("scale", "inner", "missing")

    def __init__(self) -> None:
        self.scale, self.inner = 2.0, [1.0]


class HalfSlotted(Slotted):
    pass


changes("slot", Slotted, lambda c: lambda x: x * c.scale, setting(scale=3.0), setting(scale=2.0))
changes(
    "slot_filled",
    Slotted,
    lambda c: lambda x: x * getattr(c, "missing", 5.0),
    setting(missing=3.0),
    lambda c: delattr(c, "missing"),
)
changes(
    "list_in_a_slot", Slotted, lambda c: lambda x: x * c.inner[-1], lambda c: c.inner.append(3.0), setting(inner=[4.0])
)
changes(
    "slot_of_a_base_and_attribute_of_its_own",
    HalfSlotted,
    lambda c: lambda x: x * c.scale * getattr(c, "own", 1.0),
    setting(own=3.0),
    setting(scale=5.0),
)


# -- several objects -----------------------------------------------------------------------------


@case
def object_copied_deeply(compiled: Any) -> Iterator[Any]:
    holder = Holder(Config())
    f = compiled(lambda x: holder.method(x))
    yield f(X)
    holder.config = copy.deepcopy(holder.config)
    yield f(X)
    holder.config.scale = 5.0
    yield f(X)


@case
def two_objects_of_one_class_take_turns(compiled: Any) -> Iterator[Any]:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @compiled
        def run(self, x: Any) -> Any:
            return x * self.scale

    first, second = Layer(2.0), Layer(3.0)
    for layer in (first, second, first):
        yield layer.run(X)
    second.scale = 9.0
    for layer in (first, second, first):
        yield layer.run(X)


@case
def object_made_anew_at_the_same_address(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda c, x: x * c.scale)
    for number in range(5):
        yield f(Config(float(number)), X)


@case
def error_when_an_attribute_is_gone(compiled: Any) -> Iterator[Any]:
    config = Config()
    f = compiled(lambda x: x * config.scale)
    yield f(X)
    del config.scale
    yield attempt(f, X)
    config.scale = 2.0
    yield f(X)
