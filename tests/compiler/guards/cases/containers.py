"""Containers from outside: what is in them, how many, in which order."""

from __future__ import annotations

from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from itertools import chain, islice
from types import MappingProxyType, SimpleNamespace
from typing import Any, Callable, Iterator

import pullback as pb

from ..harness import X, attempt, case, changes


def put(key: Any, value: Any) -> Callable[[Any], None]:
    """A change: an item is assigned."""
    return lambda container: container.__setitem__(key, value)


def call(method: str, *args: Any) -> Callable[[Any], None]:
    """A change: a method is called."""
    return lambda container: getattr(container, method)(*args)


def numbers() -> list[float]:
    return [2.0, 3.0]


def table() -> dict[str, float]:
    return {"a": 2.0, "b": 3.0}


# -- lists ---------------------------------------------------------------------------------------

changes("list_item", numbers, lambda c: lambda x: x * c[1], put(1, 5.0), put(1, 3.0))
changes("list_item_from_the_end", numbers, lambda c: lambda x: x * c[-1], call("append", 5.0), call("pop"))
changes("list_item_at_a_computed_place", numbers, lambda c: lambda x: x * c[len(c) // 2], put(1, 5.0), call("pop", 0))
changes("list_slice", numbers, lambda c: lambda x: x * sum(c[:1]), put(0, 5.0), call("insert", 0, 7.0))
changes("list_slice_from_the_end", numbers, lambda c: lambda x: x * sum(c[-1:]), call("extend", [1.0, 9.0]))
changes("list_length", numbers, lambda c: lambda x: x * len(c), call("append", 1.0), call("clear"))
changes("list_is_empty", list, lambda c: lambda x: x if c else -x, call("append", 0), call("clear"))
changes("list_contains", numbers, lambda c: lambda x: x if 5.0 in c else -x, call("append", 5.0), call("remove", 5.0))
changes("list_iterated", numbers, lambda c: lambda x: sum([x * n for n in c]), put(0, 9.0), call("reverse"))
changes(
    "list_index_and_count", numbers, lambda c: lambda x: x * (c.index(3.0) + 10 * c.count(2.0)), call("insert", 0, 2.0)
)
changes("list_sorted", numbers, lambda c: lambda x: x * sorted(c)[0], put(1, 1.0))
changes("list_minimum_and_maximum", numbers, lambda c: lambda x: x * max(c) - min(c), put(0, 9.0))
changes(
    "list_any_and_all",
    lambda: [True, True],
    lambda c: lambda x: x * (1 + any(c) + 10 * all(c)),
    put(0, False),
    put(1, False),
)
changes(
    "list_zipped",
    lambda: ([1.0], [2.0]),
    lambda c: lambda x: sum(x * a - b for a, b in zip(*c)),
    lambda c: c[1].__setitem__(0, 5.0),
)
changes(
    "list_enumerated",
    numbers,
    lambda c: lambda x: sum(x**i * n for i, n in enumerate(c)),
    call("append", 1.0),
    put(0, 0.5),
)
changes(
    "list_mapped_and_filtered",
    numbers,
    lambda c: lambda x: x * sum(map(abs, filter(lambda n: n > 2.5, c))),
    put(0, 4.0),
)
changes(
    "list_unpacked", numbers, lambda c: lambda x: (lambda a, *b: x * a + len(b))(*c), put(0, 5.0), call("append", 1.0)
)
changes("list_reversed", numbers, lambda c: lambda x: x * next(reversed(c)), put(1, 5.0))
changes(
    "list_compared", lambda: ([1, 2], [1, 2]), lambda c: lambda x: x if c[0] == c[1] else -x, lambda c: c[0].append(3)
)
changes(
    "list_of_lists",
    lambda: [[1.0], [2.0, 3.0]],
    lambda c: lambda x: x * sum(sum(row) for row in c),
    lambda c: c[1].append(5.0),
    put(0, [0.0]),
)
changes(
    "list_of_tensors",
    lambda: [pb.ones((2,)), pb.ones((2,))],
    lambda c: lambda x: sum(c, x),
    put(0, pb.tensor([5.0, 6.0])),
    call("append", pb.ones((2,))),
    call("pop", 0),
)
changes(
    "list_of_functions", lambda: [pb.exp, pb.tanh], lambda c: lambda x: c[1](c[0](x)), call("reverse"), put(0, pb.sqrt)
)
changes("list_joined", lambda: ["a", "b"], lambda c: lambda x: x * len("-".join(c)), call("append", "cde"))
changes("list_through_itertools", numbers, lambda c: lambda x: x * sum(islice(chain(c, c), 3)), put(0, 5.0))
changes("list_added_to_another", numbers, lambda c: lambda x: x * sum(c + [1.0]), put(0, 5.0))
changes(
    "list_of_strings_chosen", lambda: ["exp"], lambda c: lambda x: pb.exp(x) if c[0] == "exp" else x, put(0, "none")
)
changes(
    "list_equal_item_of_another_type",
    lambda: [1],
    lambda c: lambda x: x.astype(pb.int64) * c[0],
    put(0, 1.0),
    put(0, True),
)
changes("tuple_with_a_list", lambda: (1, [2.0]), lambda c: lambda x: x * c[1][0], lambda c: c[1].__setitem__(0, 3.0))
changes("item_that_is_not_read", lambda: [2.0, 0.0], lambda c: lambda x: x * c[0], put(1, 5.0), steady=True)

# -- dicts ---------------------------------------------------------------------------------------

changes("dict_item", table, lambda c: lambda x: x * c["a"], put("a", 5.0), put("a", 2.0))
changes("dict_get", table, lambda c: lambda x: x * c.get("z", 1.0), put("z", 5.0), call("pop", "z"))
changes("dict_get_of_a_known_key", table, lambda c: lambda x: x * c.get("a"), put("a", 5.0))
changes("dict_contains", table, lambda c: lambda x: x if "z" in c else -x, put("z", None), call("pop", "z"))
changes("dict_length", table, lambda c: lambda x: x * len(c), put("z", 1.0), call("clear"))
changes(
    "dict_items", table, lambda c: lambda x: sum(x * v * len(k) for k, v in c.items()), put("long", 1.0), put("a", 0.0)
)
changes("dict_keys", table, lambda c: lambda x: x * len("".join(c.keys())), put("long", 1.0))
changes("dict_values", table, lambda c: lambda x: x * sum(c.values()), put("b", 10.0))
changes(
    "dict_iterated",
    table,
    lambda c: lambda x: {key: x * i for i, key in enumerate(c)},
    lambda c: c.update(a=c.pop("a")),
)
changes(
    "dict_order",
    table,
    lambda c: lambda x: x * next(iter(c.values())),
    lambda c: c.update(a=c.pop("a")),
    lambda c: c.update(b=c.pop("b")),
)
changes("dict_last_item", table, lambda c: lambda x: x * list(c.items())[-1][1], put("z", 7.0))
changes("dict_merged", table, lambda c: lambda x: x * sum((c | {"a": 1.0}).values()), put("b", 10.0), put("a", 99.0))
changes(
    "dict_unpacked",
    lambda: {"min": 0.0, "max": 3.5},
    lambda c: lambda x: pb.clip(x, **c),
    put("max", 3.0),
    put("min", 3.2),
)
changes("dict_with_integers", lambda: {0: 2.0, 1: 3.0}, lambda c: lambda x: x * c[x.ndim], put(1, 5.0))
changes("dict_with_tuples", lambda: {(0, 1): 2.0}, lambda c: lambda x: x * c[0, 1], put((0, 1), 5.0))
changes(
    "dict_of_dicts",
    lambda: {"a": {"b": [2.0]}},
    lambda c: lambda x: x * c["a"]["b"][0],
    lambda c: c["a"]["b"].__setitem__(0, 5.0),
    lambda c: c["a"].update(b=[7.0]),
    put("a", {"b": [2.0]}),
)
changes(
    "dict_of_tensors", lambda: {"w": pb.ones((2,))}, lambda c: lambda x: x * c["w"], put("w", pb.tensor([5.0, 6.0]))
)
changes(
    "dict_of_functions",
    lambda: {"act": pb.exp},
    lambda c: lambda x: c["act"](x),
    put("act", pb.tanh),
    put("act", lambda x: -x),
)
changes("dict_sorted", lambda: {"b": 2.0, "a": 3.0}, lambda c: lambda x: x * c[sorted(c)[0]], put("A", 9.0))
changes(
    "dict_comprehension_with_a_condition",
    table,
    lambda c: lambda x: {k: x * v for k, v in c.items() if v > 2.5},
    put("a", 4.0),
)
changes(
    "dict_compared",
    lambda: ({"a": 1}, {"a": 1}),
    lambda c: lambda x: x if c[0] == c[1] else -x,
    lambda c: c[0].update(b=2),
)
changes("key_that_is_not_read", table, lambda c: lambda x: x * c["a"], put("b", 5.0), put("c", 5.0), steady=True)

# -- others --------------------------------------------------------------------------------------

changes(
    "ordered_dict_moved_to_end",
    lambda: OrderedDict(a=2.0, b=3.0),
    lambda c: lambda x: x * next(iter(c.values())),
    call("move_to_end", "a"),
    call("move_to_end", "a", False),
)
changes("ordered_dict_item", lambda: OrderedDict(a=2.0), lambda c: lambda x: x * c["a"], put("a", 5.0))
changes(
    "default_dict_item_set", lambda: defaultdict(lambda: 1.0), lambda c: lambda x: x * c.get("z", 2.0), put("z", 5.0)
)
changes(
    "default_dict_with_a_known_key",
    lambda: defaultdict(list, a=[2.0]),
    lambda c: lambda x: x * c["a"][0],
    lambda c: c["a"].insert(0, 5.0),
)
changes(
    "counter",
    lambda: Counter("aab"),
    lambda c: lambda x: x * c["a"] + c["z"],
    call("update", "az"),
    call("subtract", "a"),
)
changes(
    "counter_most_common", lambda: Counter("aab"), lambda c: lambda x: x * c.most_common(1)[0][1], call("update", "bbb")
)
changes(
    "deque", lambda: deque([2.0, 3.0], maxlen=2), lambda c: lambda x: x * c[0], call("append", 5.0), call("rotate", 1)
)
changes(
    "deque_iterated", lambda: deque([2.0]), lambda c: lambda x: x * sum(c), call("appendleft", 5.0), call("popleft")
)
changes(
    "set_contains", lambda: {"a"}, lambda c: lambda x: x if "b" in c else -x, call("add", "b"), call("discard", "b")
)
changes("set_length", lambda: {1, 2}, lambda c: lambda x: x * len(c), call("add", 3), call("clear"))
changes("set_iterated", lambda: {1, 2}, lambda c: lambda x: x * sum(c), call("add", 4), call("remove", 1))
changes(
    "set_algebra",
    lambda: ({1, 2}, {2, 3}),
    lambda c: lambda x: x * sum(c[0] & c[1]),
    lambda c: c[1].add(1),
    lambda c: c[0].clear(),
)
changes(
    "frozen_set_replaced",
    lambda: [frozenset((1, 2))],
    lambda c: lambda x: x if 3 in c[0] else -x,
    put(0, frozenset((3,))),
)
changes("byte_array", lambda: bytearray(b"ab"), lambda c: lambda x: x * c[0], put(0, 1), call("reverse"))
changes(
    "chain_map",
    lambda: ChainMap({}, {"a": 2.0}),
    lambda c: lambda x: x * c["a"],
    put("a", 5.0),
    lambda c: c.maps[0].clear(),
    lambda c: c.maps[1].update(a=7.0),
)
changes(
    "chain_map_with_another_map",
    lambda: ChainMap({"a": 2.0}),
    lambda c: lambda x: x * c["a"],
    lambda c: c.maps.insert(0, {"a": 3.0}),
)
changes(
    "mapping_proxy",
    lambda: (lambda d: SimpleNamespace(d=d, view=MappingProxyType(d)))({"a": 2.0}),
    lambda c: (lambda view: lambda x: x * view["a"])(c.view),
    lambda c: c.d.update(a=5.0),
)
changes(
    "mapping_proxy_iterated",
    lambda: (lambda d: SimpleNamespace(d=d, view=MappingProxyType(d)))({"a": 2.0}),
    lambda c: (lambda view: lambda x: x * sum(view.values()))(c.view),
    lambda c: c.d.update(b=5.0),
)
changes(
    "view_of_dict_values",
    lambda: (lambda d: (d, d.values()))({"a": 2.0}),
    lambda c: (lambda view: lambda x: x * sum(view))(c[1]),
    lambda c: c[0].update(b=5.0),
)
changes("user_dict", lambda: UserDict(a=2.0), lambda c: lambda x: x * c["a"], put("a", 5.0))
changes("user_list", lambda: UserList([2.0]), lambda c: lambda x: x * sum(c), call("append", 5.0))
changes("range_replaced", lambda: [range(2)], lambda c: lambda x: x * sum(c[0]), put(0, range(5)))
changes(
    "memory_view",
    lambda: (lambda b: (b, memoryview(b)))(bytearray(b"\2")),
    lambda c: (lambda view: lambda x: x * view[0])(c[1]),
    lambda c: c[0].__setitem__(0, 5),
)


class Named(dict):
    """A dict whose keys are attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Doubled(list):
    """A list that gives twice what is in it."""

    factor = 2

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) * self.factor


changes("dict_subclass_with_attributes", lambda: Named(a=2.0), lambda c: lambda x: x * c.a, put("a", 5.0))
changes(
    "dict_subclass_nested",
    lambda: Named(a=Named(b=2.0)),
    lambda c: lambda x: x * c.a.b,
    lambda c: c.a.update(b=5.0),
    put("a", Named(b=7.0)),
)
changes(
    "list_subclass_with_its_own_getitem",
    lambda: Doubled([2.0]),
    lambda c: lambda x: x * c[0],
    put(0, 5.0),
    lambda c: setattr(c, "factor", 3),
)
changes("list_subclass_iterated", lambda: Doubled([2.0]), lambda c: lambda x: x * sum(c), call("append", 5.0))


@case
def container_replaced_by_an_equal_one_that_changes(compiled: Any) -> Iterator[Any]:
    held = SimpleNamespace(c=[1.0, 2.0])
    f = compiled(lambda x: x * sum(held.c))
    yield f(X)
    held.c = [1.0, 2.0]
    yield f(X)
    held.c[0] = 5.0
    yield f(X)


@case
def container_reached_by_two_names(compiled: Any) -> Iterator[Any]:
    first = [2.0]
    second = first
    f = compiled(lambda x: x * first[0] + second[0])
    yield f(X)
    second[0] = 3.0
    yield f(X)
    second = [7.0]
    yield f(X)
    first[0] = 4.0
    yield f(X)


@case
def container_item_deleted_is_an_error(compiled: Any) -> Iterator[Any]:
    options = {"a": 2.0}
    f = compiled(lambda x: x * options["a"])
    yield f(X)
    del options["a"]
    yield attempt(f, X)
    options["a"] = 3.0
    yield f(X)


@case
def default_dict_that_has_the_key(compiled: Any) -> Iterator[Any]:
    options: Any = defaultdict(lambda: 2.0, scale=2.0)
    f = compiled(lambda x: x * options["scale"])
    yield f(X)
    yield dict(options)
    options["scale"] = 3.0
    yield f(X)
    yield dict(options)


@case
def container_that_holds_itself(compiled: Any) -> Iterator[Any]:
    held: list[Any] = [2.0]
    held.append(held)
    f = compiled(lambda x: x * held[1][1][0])
    yield f(X)
    held[0] = 3.0
    yield f(X)
