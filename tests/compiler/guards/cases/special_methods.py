"""Special methods of the user's classes, whose answers change."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, Iterator

import pullback as pb

from ..harness import X, attempt, case, changes
from .objects import setting


class Box:
    """Answers what its attributes say."""

    def __init__(self) -> None:
        self.truth = True
        self.items: list[Any] = [2.0, 3.0]
        self.number = 2.0

    def __bool__(self) -> bool:
        return self.truth

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __reversed__(self) -> Iterator[Any]:
        yield from self.items[::-1]

    def __eq__(self, other: Any) -> bool:
        return self.number == other

    def __lt__(self, other: Any) -> bool:
        return self.number < other.number

    def __hash__(self) -> int:
        return id(self)

    def __getitem__(self, key: Any) -> Any:
        return self.items[key]

    def __float__(self) -> float:
        return self.number

    def __index__(self) -> int:
        return int(self.number)

    def __str__(self) -> str:
        return "n" * int(self.number)

    def __format__(self, how: str) -> str:
        return how * int(self.number)

    def __mul__(self, other: Any) -> Any:
        return other * self.number

    def __radd__(self, other: Any) -> Any:
        return other + self.number

    def __matmul__(self, other: Any) -> Any:
        return other - self.number

    def __neg__(self) -> Any:
        return -self.number

    def __call__(self, x: Any) -> Any:
        return x * self.number

    def __enter__(self) -> float:
        return self.number

    def __exit__(self, *error: Any) -> None:
        pass


NUMBER = setting(number=5.0), setting(number=2.0)
GROWN = (lambda c: c.items.append(7.0)), (lambda c: c.items.pop())

changes("bool_of_an_object", Box, lambda c: lambda x: x if c else -x, setting(truth=False), setting(truth=True))
changes("not_of_an_object", Box, lambda c: lambda x: x if not c else -x, setting(truth=False))
changes("and_or_of_objects", Box, lambda c: lambda x: x * ((c and 2) or 3), setting(truth=False))
changes("len_of_an_object", Box, lambda c: lambda x: x * len(c), *GROWN)
changes("contains_of_an_object", Box, lambda c: lambda x: x if 7.0 in c else -x, *GROWN)
changes("iter_of_an_object", Box, lambda c: lambda x: sum(c, x), *GROWN)
changes("unpacking_an_object", Box, lambda c: lambda x: x * [*c][-1], *GROWN)
changes("reversed_of_an_object", Box, lambda c: lambda x: x * next(iter(reversed(c))), *GROWN)
changes("eq_of_an_object", Box, lambda c: lambda x: x if c == 2.0 else -x, *NUMBER)
changes(
    "sorted_objects",
    lambda: [Box(), Box()],
    lambda c: lambda x: x * (1 if sorted(c)[0] is c[0] else 2),
    lambda c: setattr(c[0], "number", 9.0),
)
changes(
    "max_of_objects_by_key",
    lambda: [Box(), Box()],
    lambda c: lambda x: x * max(c, key=float).number,
    lambda c: setattr(c[0], "number", 9.0),
)
changes("getitem_of_an_object", Box, lambda c: lambda x: x * c[0], lambda c: c.items.insert(0, 9.0))
changes("float_of_an_object", Box, lambda c: lambda x: x * float(c), *NUMBER)
changes("index_of_an_object", Box, lambda c: lambda x: x * range(10)[c], *NUMBER)
changes("str_of_an_object", Box, lambda c: lambda x: x * len(str(c)), *NUMBER)
changes("format_of_an_object", Box, lambda c: lambda x: x * len(f"{c:ab}"), *NUMBER)
changes("operator_of_an_object", Box, lambda c: lambda x: c * x, *NUMBER)
changes("reflected_operator_of_an_object", Box, lambda c: lambda x: sum([c], 1.0) * x, *NUMBER)
changes("matmul_of_an_object", Box, lambda c: lambda x: c @ x, *NUMBER)
changes("negated_object", Box, lambda c: lambda x: x * -c, *NUMBER)
changes("object_called", Box, lambda c: lambda x: c(x), *NUMBER)
changes("object_called_in_a_list", lambda: [Box()], lambda c: lambda x: c[0](x), lambda c: setattr(c[0], "number", 5.0))
changes("object_called_by_map", lambda: Box(), lambda c: lambda x: sum(map(c, [x, x])), *NUMBER)


@case
def enter_of_an_object(compiled: Any) -> Iterator[Any]:
    box = Box()

    def run(x: Any) -> Any:
        with box as number:
            return x * number

    f = compiled(run)
    yield f(X)
    box.number = 5.0
    yield f(X)


@case
def context_manager_of_a_generator_reads_state(compiled: Any) -> Iterator[Any]:
    rate = [2.0]

    @contextlib.contextmanager
    def scaled() -> Iterator[float]:
        yield rate[0]

    def run(x: Any) -> Any:
        with scaled() as number:
            return x * number

    f = compiled(run)
    yield f(X)
    rate[0] = 5.0
    yield f(X)


class Lazy:
    """Finds what is not there in a dict."""

    def __init__(self) -> None:
        self.__dict__["values"] = {"scale": 2.0}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.values[name] = value


class Counted:
    """Looks up everything by itself."""

    def __init__(self) -> None:
        object.__setattr__(self, "factor", 2.0)

    def __getattribute__(self, name: str) -> Any:
        return 10 * object.__getattribute__(self, name)


changes(
    "getattr_of_an_object",
    Lazy,
    lambda c: lambda x: x * c.scale,
    setting(scale=3.0),
    lambda c: c.values.clear() or setattr(c, "scale", 2.0),
)
changes("getattr_that_finds_a_new_name", Lazy, lambda c: lambda x: x * getattr(c, "shift", 1.0), setting(shift=3.0))
changes(
    "getattr_shadowed_by_an_attribute", Lazy, lambda c: lambda x: x * c.scale, lambda c: c.__dict__.update(scale=9.0)
)
changes(
    "getattribute_of_an_object",
    Counted,
    lambda c: lambda x: x * c.factor,
    lambda c: object.__setattr__(c, "factor", 3.0),
)


@case
def getattr_added_to_a_class(compiled: Any) -> Iterator[Any]:
    class Layer:
        pass

    layer = Layer()
    f = compiled(lambda x: x * getattr(layer, "scale", 2.0))
    yield f(X)
    Layer.__getattr__ = lambda self, name: 7.0
    yield f(X)
    del Layer.__getattr__
    yield f(X)


@case
def bool_added_to_a_class(compiled: Any) -> Iterator[Any]:
    class Flag:
        pass

    flag = Flag()
    f = compiled(lambda x: x if flag else -x)
    yield f(X)
    Flag.__bool__ = lambda self: False
    yield f(X)
    del Flag.__bool__
    Flag.__len__ = lambda self: 0
    yield f(X)


@case
def special_method_replaced_on_the_class(compiled: Any) -> Iterator[Any]:
    class Table(Box):
        pass

    table = Table()
    f = compiled(lambda x: x * len(table) + table[0])
    yield f(X)
    Table.__len__ = lambda self: 10
    yield f(X)
    Table.__getitem__ = lambda self, key: 100.0
    yield f(X)
    del Table.__len__, Table.__getitem__
    yield f(X)


@case
def eq_of_a_setting_is_users(compiled: Any) -> Iterator[Any]:
    class Always:
        """Claims to be equal to anything."""

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def __eq__(self, other: Any) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    config = SimpleNamespace(setting=Always(2.0))
    f = compiled(lambda x: x * config.setting.scale)
    yield f(X)
    config.setting = Always(3.0)
    yield f(X)
    g = compiled(lambda x, setting: x * setting.scale)
    yield g(X, Always(2.0))
    yield g(X, Always(3.0))


@case
def eq_that_raises(compiled: Any) -> Iterator[Any]:
    class Touchy:
        scale = 2.0

        def __eq__(self, other: Any) -> bool:
            raise RuntimeError("not to be compared")

        __hash__ = None

    held = [Touchy()]
    f = compiled(lambda x: x * held[0].scale)
    yield f(X)
    held[0] = Touchy()
    held[0].scale = 3.0
    yield f(X)


@case
def missing_of_a_dict_subclass(compiled: Any) -> Iterator[Any]:
    class Defaults(dict):
        fallback = 2.0

        def __missing__(self, key: Any) -> float:
            return self.fallback

    options = Defaults()
    f = compiled(lambda x: x * options["scale"])
    yield f(X)
    options.fallback = 3.0
    yield f(X)
    options["scale"] = 4.0
    yield f(X)
    del options["scale"]
    yield f(X)


@case
def iterator_object_that_ends_elsewhere(compiled: Any) -> Iterator[Any]:
    class Countdown:
        start = 3

        def __iter__(self) -> Iterator[int]:
            yield from range(self.start)

    numbers = Countdown()

    def run(x: Any) -> Any:
        for number in numbers:
            x = x + number
        return x

    f = compiled(run)
    yield f(X)
    numbers.start = 5
    yield f(X)


@case
def error_that_an_object_raises(compiled: Any) -> Iterator[Any]:
    class Strict:
        limit = 10

        def __call__(self, x: Any) -> Any:
            if self.limit < 5:
                raise ValueError("too low")
            return x * self.limit

    strict = Strict()
    f = compiled(lambda x: strict(x))
    yield f(X)
    strict.limit = 3
    yield attempt(f, X)
    strict.limit = 6
    yield f(X)


@case
def class_getitem(compiled: Any) -> Iterator[Any]:
    class Scale:
        factor = 1.0

        def __class_getitem__(cls, item: Any) -> Any:
            return item * cls.factor

    f = compiled(lambda x: x * Scale[3])
    yield f(X)
    Scale.factor = 2.0
    yield f(X)


@case
def tensor_protocol_of_an_object(compiled: Any) -> Iterator[Any]:
    class Weight:
        def __init__(self) -> None:
            self.value = pb.tensor([1.0, 2.0])

        def __mul__(self, other: Any) -> Any:
            return self.value * other

    weight = Weight()
    f = compiled(lambda x: weight * x)
    yield f(X)
    weight.value[0] = 5.0
    yield f(X)
    weight.value = pb.tensor([7.0, 7.0])
    yield f(X)
