"""Things that are one and the same, or become it: `is`, `in`, and what goes by identity."""

from __future__ import annotations

from typing import Any, Iterator

from ..harness import X, case


class Thing:
    pass


@case
def two_lists_become_one(compiled: Any) -> Iterator[Any]:
    one, other = [1.0], [1.0]
    f = compiled(lambda x: x if one is other else -x)
    yield f(X)
    before, other = other, one
    yield f(X)
    other = before
    yield f(X)


@case
def two_arguments_become_one(compiled: Any) -> Iterator[Any]:
    one, other = Thing(), Thing()
    f = compiled(lambda x, a, b: x if a is b else -x)
    yield f(X, one, other)
    yield f(X, one, one)
    yield f(X, other, one)


@case
def object_that_is_in_a_list_now(compiled: Any) -> Iterator[Any]:
    things = [Thing(), Thing()]
    chosen = Thing()
    f = compiled(lambda x: x if chosen in things else -x)
    yield f(X)
    chosen = things[0]
    yield f(X)
    chosen = Thing()
    yield f(X)


@case
def objects_in_a_set(compiled: Any) -> Iterator[Any]:
    things = [Thing(), Thing()]
    active = {things[0]}
    f = compiled(lambda x: x * sum(1 for thing in things if thing in active))
    yield f(X)
    active.add(things[1])
    yield f(X)
    active.clear()
    active.update((Thing(), Thing()))
    yield f(X)
    active.clear()
    active.update(things)
    yield f(X)


@case
def two_keys_of_a_dict_become_one(compiled: Any) -> Iterator[Any]:
    one, other = Thing(), Thing()
    f = compiled(lambda x: x * len({one: 1, other: 2}))
    yield f(X)
    other = one
    yield f(X)
