# ruff: noqa: B008, UP030, UP032
"""Values and objects of Python's own libraries that look the same and are not, or change inside."""

from __future__ import annotations

import array
import ctypes
import datetime
import decimal
import functools
import operator
import types
import weakref
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any, Iterator

import numpy as np

from ..harness import X, case, changes
from .objects import setting

NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
SAME_TIME = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
SCALE_OF = operator.attrgetter("scale")
NESTED_SCALE_OF = operator.attrgetter("inner.scale")
FIND = getattr
PUT = setattr
NAME = "".join(("sc", "ale"))


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


class Point(ctypes.Structure):
    _fields_ = (("scale", ctypes.c_double),)


class Day(datetime.date):
    pass


class Money(decimal.Decimal):
    pass


class Buffer(bytearray):
    pass


class Numbers(array.array):
    pass


class Call(functools.partial):
    pass


class Reference(weakref.ref):
    pass


class FailureError(Exception):
    pass


class Labelled(np.ndarray):
    pass


def labelled() -> Any:
    made = np.ones(2).view(Labelled)
    made.scale = 2.0
    return made


def record() -> Any:
    rows = np.zeros(2, [("scale", "f8"), ("n", "i4")])
    rows["scale"] = 2.0
    return Holder(rows[0])


def holding(before: Any, function: Any, after: Any) -> tuple[Any, Any, Any]:
    return (lambda: Holder(before)), (lambda c: lambda x: x * function(c.value)), setting(value=after)


D = decimal.Decimal
changes("decimal_with_other_zeros", *holding(D("1.0"), lambda v: len(str(v)), D("1.00")))
changes("range_with_another_stop", *holding(range(0, 3, 2), lambda v: v.stop, range(0, 4, 2)))
changes("slice_with_a_bool", *holding(slice(0, 1), lambda v: 2 if v.stop is True else 1, slice(0, True)))
changes("time_in_another_zone", *holding(NOON, lambda v: v.hour, SAME_TIME))
changes("view_of_memory_in_another_form", *holding(memoryview(b"abcd"), len, memoryview(b"abcd").cast("i")))
changes("numbers_of_another_type", *holding(array.array("i", [1, 0]), len, array.array("q", [1])))
changes("deque_of_another_length", *holding(deque([1], 3), lambda v: v.maxlen, deque([1], 5)))
changes("date_of_a_subclass", *holding(Day(2020, 1, 1), lambda v: len(f"{v:%B}"), Day(2020, 2, 1)))
changes("decimal_of_a_subclass", *holding(Money("2"), float, Money("3")))
changes("exception_replaced", *holding(ValueError("ab"), lambda v: len(str(v)), ValueError("abcd")))
changes("partial_of_a_subclass", *holding(Call(pow, 2), lambda v: v(2), Call(pow, 3)))
changes(
    "exception_of_a_subclass", lambda: FailureError("ab"), lambda c: lambda x: x * len(str(c)), setting(args=("abcd",))
)
changes("bytes_of_a_subclass", lambda: Buffer(b"ab"), lambda c: lambda x: x * len(c), lambda c: c.extend(b"c"))
changes("array_of_a_subclass", lambda: Numbers("d", [2.0]), lambda c: lambda x: x * c[0], lambda c: c.insert(0, 3.0))
changes("record_of_an_array", record, lambda c: lambda x: x * float(c.value["scale"]), lambda c: PUT_FIELD(c.value))
changes("number_of_c", lambda: ctypes.c_double(2.0), lambda c: lambda x: x * c.value, setting(value=5.0))
changes("structure_of_c", lambda: Point(2.0), lambda c: lambda x: x * c.scale, setting(scale=5.0))
changes("array_of_c", lambda: (ctypes.c_double * 2)(2.0), lambda c: lambda x: x * c[0], lambda c: c.__setitem__(0, 5.0))
changes(
    "cell_in_a_list", lambda: [types.CellType(2.0)], lambda c: lambda x: x * c[0].cell_contents, lambda c: REFILL(c[0])
)
changes("attribute_of_an_array", labelled, lambda c: lambda x: x * c.scale, setting(scale=5.0))
changes("values_of_an_array_of_a_subclass", labelled, lambda c: lambda x: x * float(c[0]), lambda c: c.fill(5.0))
changes(
    "masked_array_with_another_mask",
    lambda: np.ma.array([1.0, 2.0], mask=[0, 1]),
    lambda c: lambda x: x * float(c.sum()),
    lambda c: setattr(c, "mask", [1, 0]),
)


changes(
    "factory_of_a_dict",
    lambda: defaultdict(lambda: 2.0, a=1.0),
    lambda c: lambda x: x * c.default_factory(),
    lambda c: setattr(c, "default_factory", lambda: 5.0),
)


def PUT_FIELD(row: Any) -> None:
    row["scale"] = 5.0


def REFILL(cell: Any) -> None:
    cell.cell_contents = 5.0


@case
def attribute_of_a_partial(compiled: Any) -> Iterator[Any]:
    partial = functools.partial(abs)
    partial.scale = 2.0  # type: ignore[attr-defined]
    f = compiled(lambda x: x * partial.scale)  # type: ignore[attr-defined]
    yield f(X)
    partial.scale = 5.0  # type: ignore[attr-defined]
    yield f(X)


@case
def weak_reference_of_a_subclass(compiled: Any) -> Iterator[Any]:
    things = Holder(2.0), Holder(3.0)
    reference = Reference(things[0])
    f = compiled(lambda x: x * reference().value)
    yield f(X)
    reference = Reference(things[1])
    yield f(X)


@case
def keys_that_are_held_weakly_die(compiled: Any) -> Iterator[Any]:
    thing = Holder(2.0)
    weights = weakref.WeakKeyDictionary({thing: 2.0})
    f = compiled(lambda x: x * (1 + len(weights)))
    yield f(X)
    del thing
    yield f(X)


# -- attributes by names that are in no code of the function -------------------------------------


changes(
    "attrgetter_made_before",
    lambda: SimpleNamespace(scale=2.0),
    lambda c: lambda x: x * SCALE_OF(c),
    setting(scale=5.0),
)
changes(
    "nested_attrgetter_made_before",
    lambda: SimpleNamespace(inner=SimpleNamespace(scale=2.0)),
    lambda c: lambda x: x * NESTED_SCALE_OF(c),
    lambda c: setattr(c.inner, "scale", 5.0),
)
changes(
    "getattr_by_another_name",
    lambda: SimpleNamespace(scale=2.0),
    lambda c: lambda x: x * FIND(c, NAME),
    setting(scale=5.0),
)
changes("namespace_in_a_text", lambda: SimpleNamespace(n=1), lambda c: lambda x: x * len(f"{c}"), setting(n=222))
changes("str_of_a_namespace", lambda: SimpleNamespace(n=1), lambda c: lambda x: x * len(str(c)), setting(n=222))
changes(
    "namespace_formatted", lambda: SimpleNamespace(n=1), lambda c: lambda x: x * len("{0.n}".format(c)), setting(n=222)
)


@case
def namespaces_compared(compiled: Any) -> Iterator[Any]:
    one, other = SimpleNamespace(n=1), SimpleNamespace(n=1)
    f = compiled(lambda x: x if one == other else -x)
    yield f(X)
    other.n = 2
    yield f(X)


def of_class(name: str, function: Any) -> None:
    """A case of a class whose `scale` changes."""

    def run(compiled: Any) -> Iterator[Any]:
        class Layer:
            scale = 2.0

        f = compiled(function(Layer))
        yield f(X)
        Layer.scale = 5.0
        yield f(X)

    run.home = function  # type: ignore[attr-defined]
    case(run, name=name)


of_class("attrgetter_of_a_class", lambda c: lambda x: x * SCALE_OF(c))
of_class("getattr_by_another_name_of_a_class", lambda c: lambda x: x * FIND(c, NAME))
of_class("dict_of_a_class_by_a_computed_key", lambda c: lambda x: x * c.__dict__[NAME])
of_class("dict_of_a_class", lambda c: lambda x: x * sum(v for k, v in c.__dict__.items() if not k.startswith("_")))
of_class("class_formatted", lambda c: lambda x: x * float("{0.scale}".format(c)))
of_class("class_of_an_object_by_type", lambda c: lambda x, o=c(): x * type(o).scale)
of_class("class_of_an_object_by_attribute", lambda c: lambda x, o=c(): x * o.__class__.scale)
of_class("class_of_an_object_by_its_order", lambda c: lambda x, o=c(): x * type(o).__mro__[0].scale)


@case
def classmethod_that_reads_its_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = 2.0

        @classmethod
        def get(cls) -> float:
            return cls.scale

    layer = Layer()
    f = compiled(lambda x: x * layer.get())
    yield f(X)
    Layer.scale = 5.0
    yield f(X)


@case
def method_that_reads_its_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        scale = 2.0

        def get(self) -> float:
            return type(self).scale

    layer = Layer()
    f = compiled(lambda x: x * layer.get())
    yield f(X)
    Layer.scale = 5.0
    yield f(X)


@case
def base_by_the_bases_of_a_class(compiled: Any) -> Iterator[Any]:
    class Base:
        scale = 2.0

    class Layer(Base):
        scale = 3.0

    f = compiled(lambda x: x * Layer.__bases__[0].scale * Layer.__mro__[1].scale)
    yield f(X)
    Base.scale = 5.0
    yield f(X)


# -- what a function has beside its code -----------------------------------------------------------


def of_function(name: str, function: Any, change: Any) -> None:
    """A case of a function that is changed."""

    def run(compiled: Any) -> Iterator[Any]:
        scale = 2.0

        def helper(x: 2.0) -> Any:  # type: ignore[valid-type]
            """Two words."""
            return x * scale

        f = compiled(function(helper))
        yield f(X)
        change(helper)
        yield f(X)

    run.home = function  # type: ignore[attr-defined]
    case(run, name=name)


of_function("doc_of_a_function", lambda g: lambda x: x * len(g.__doc__), lambda g: setattr(g, "__doc__", "One."))
of_function("name_of_a_function", lambda g: lambda x: x * len(g.__name__), lambda g: setattr(g, "__name__", "g"))
of_function(
    "annotations_of_a_function",
    lambda g: lambda x: x * len(str(g.__annotations__["x"])),
    lambda g: g.__annotations__.update(x=22222),
)
of_function(
    "closure_of_a_function",
    lambda g: lambda x: x * g.__closure__[0].cell_contents,
    lambda g: setattr(g.__closure__[0], "cell_contents", 5.0),
)


@case
def code_that_is_executed_in_a_dict(compiled: Any) -> Iterator[Any]:
    names: dict[str, Any] = {"scale": 2.0}
    exec("def function(x): return x * scale", names)
    f = compiled(names["function"])
    yield f(X)
    names["scale"] = 5.0
    yield f(X)


# -- caches ------------------------------------------------------------------------------------------


@case
def object_in_a_cache(compiled: Any) -> Iterator[Any]:
    @functools.cache
    def settings() -> Any:
        made = Holder(None)
        made.scale = 2.0  # type: ignore[attr-defined]
        return made

    f = compiled(lambda x: x * settings().scale)
    yield f(X)
    settings().scale = 5.0
    yield f(X)
    settings.cache_clear()
    yield f(X)


@case
def list_in_a_cache(compiled: Any) -> Iterator[Any]:
    @functools.cache
    def table() -> list[float]:
        return [2.0]

    f = compiled(lambda x: x * table()[0])
    yield f(X)
    table()[0] = 5.0
    yield f(X)
    yield f(X)


@case
def list_in_a_cache_before_the_first_call(compiled: Any) -> Iterator[Any]:
    @functools.cache
    def table() -> list[float]:
        return [2.0]

    table()
    f = compiled(lambda x: x * table()[0])
    yield f(X)
    table().insert(0, 5.0)
    yield f(X)


@case
def dict_in_a_cache_of_limited_size(compiled: Any) -> Iterator[Any]:
    @functools.lru_cache(maxsize=2)
    def table(scale: float) -> dict[str, float]:
        return {"scale": scale}

    f = compiled(lambda x: x * table(2.0)["scale"])
    yield f(X)
    table(2.0)["scale"] = 5.0
    yield f(X)
