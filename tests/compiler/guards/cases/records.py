"""Dataclasses, named tuples and enums that change or are replaced."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Iterator, NamedTuple

from ..harness import X, case, changes
from .objects import setting


@dataclass
class Options:
    scale: float = 2.0
    shifts: list[float] = field(default_factory=lambda: [1.0])
    limit: Any = None


@dataclass(frozen=True, slots=True)
class Frozen:
    scale: float = 2.0
    shifts: Any = ()


class Pair(NamedTuple):
    scale: float
    shift: Any


class Mode(enum.Enum):
    HALF = 0.5
    DOUBLE = 2.0


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 4


changes("dataclass_field", Options, lambda c: lambda x: x * c.scale, setting(scale=3.0), setting(scale=2.0))
changes("list_in_a_dataclass", Options, lambda c: lambda x: sum(c.shifts, x), lambda c: c.shifts.append(5.0))
changes(
    "dataclass_equal_but_another",
    lambda: [Options()],
    lambda c: lambda x: x * c[0].scale,
    lambda c: c.__setitem__(0, Options()),
    lambda c: c.__setitem__(0, Options(4.0)),
)
changes(
    "dataclass_compared",
    lambda: [Options(), Options()],
    lambda c: lambda x: x * (2 if c[0] == c[1] else 3),
    lambda c: setattr(c[1], "scale", 0.0),
)
changes(
    "frozen_dataclass_replaced",
    lambda: {"c": Frozen()},
    lambda h: lambda x: x * h["c"].scale,
    lambda h: h.update(c=replace(h["c"], scale=3.0)),
    lambda h: h.update(c=Frozen()),
)
changes(
    "frozen_dataclass_forced", Frozen, lambda c: lambda x: x * c.scale, lambda c: object.__setattr__(c, "scale", 3.0)
)
changes(
    "named_tuple_replaced",
    lambda: SimpleNamespace(p=Pair(2.0, 1.0)),
    lambda c: lambda x: x * c.p.scale + c.p.shift,
    lambda c: setattr(c, "p", c.p._replace(scale=3.0)),
)
changes(
    "list_in_a_named_tuple",
    lambda: Pair(2.0, [1.0]),
    lambda p: lambda x: x * p.scale + p.shift[0],
    lambda p: p.shift.__setitem__(0, 4.0),
)
changes(
    "enum_member",
    lambda: SimpleNamespace(mode=Mode.HALF),
    lambda c: lambda x: x * c.mode.value,
    setting(mode=Mode.DOUBLE),
    setting(mode=Mode.HALF),
)
changes(
    "enum_member_matched",
    lambda: SimpleNamespace(mode=Mode.HALF),
    lambda c: lambda x: x if c.mode is Mode.HALF else -x,
    setting(mode=Mode.DOUBLE),
)
changes(
    "flags_combined",
    lambda: SimpleNamespace(level=Level.LOW),
    lambda c: lambda x: x * int(c.level) if Level.HIGH in c.level else x,
    setting(level=Level.LOW | Level.HIGH),
)


@case
def dataclass_as_an_argument(compiled: Any) -> Iterator[Any]:
    options, f = Options(), compiled(lambda o, x: x * o.scale + sum(o.shifts))
    yield f(options, X)
    options.scale = 3.0
    yield f(options, X)
    options.shifts.append(10.0)
    yield f(options, X)
    yield f(Options(), X)


@case
def frozen_dataclass_as_an_argument(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda o, x: x * o.scale)
    for options in (Frozen(), Frozen(3.0), replace(Frozen(), shifts=(1,)), Frozen(3.0)):
        yield f(options, X)


@case
def named_tuple_type_with_the_same_fields(compiled: Any) -> Iterator[Any]:
    first, second = namedtuple("First", "a b"), namedtuple("Second", "b a")
    f = compiled(lambda pair: pair.a * 2 - pair.b)
    yield f(first(X, X + 1))
    yield f(second(X, X + 1))
    yield f(first(X, X + 2))


@case
def enum_member_as_an_argument(compiled: Any) -> Iterator[Any]:
    f = compiled(lambda x, mode: x * mode.value)
    for mode in (Mode.HALF, Mode.DOUBLE, Mode.HALF):
        yield f(X, mode)
