"""What a function leaves in the world outside, and in things that only look like containers: refused, and undone."""

from __future__ import annotations

import array
import builtins
import collections
import contextvars
import decimal
import functools
import logging
import operator
import os
import pprint
import shutil
import sys
import tempfile
import threading
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import numpy as np

from ..harness import X, case

LOG = logging.getLogger("tests.compiler.guards.world")
SHOW = print
PUT = setattr
DEPTH = contextvars.ContextVar("DEPTH", default=1)


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Local(threading.local):
    n = 0


def effect(name: str, make: Callable[[], Any], function: Any, seen: Callable[[Any], Any]) -> None:
    """A case: `function(thing)` does something to it that `seen(thing)` tells of."""

    def run(compiled: Any) -> Iterator[Any]:
        thing = make()
        f = compiled(lambda x: (function(thing), x)[1])
        for _ in range(3):
            yield f(X), seen(thing)

    run.home = function  # type: ignore[attr-defined]
    case(run, name=name, refused=True)


def adding(c: Any) -> None:
    c["a"] += 1


def first(c: Any) -> None:
    c[0] += 1


def none(_: Any) -> None:
    pass


effect("counter_counts", lambda: collections.Counter(a=2), lambda c: c.update(a=1), dict)
effect("user_dict_is_set", lambda: collections.UserDict(a=2), adding, dict)
effect("user_list_grows", lambda: collections.UserList([2]), lambda c: c.append(1), list)
effect("chain_map_is_set", lambda: collections.ChainMap({"a": 1}), adding, dict)
effect(
    "ordered_dict_is_reordered", lambda: collections.OrderedDict(a=1, b=2), lambda c: c.move_to_end(next(iter(c))), list
)
effect("bytes_are_set", lambda: bytearray(b"ab"), first, bytes)
effect("array_of_numbers_grows", lambda: array.array("d", [1.0]), lambda c: c.append(2.0), list)
effect("array_of_objects_is_set", lambda: np.array([1, "a"], object), first, list)
effect("large_array_is_set", lambda: np.zeros(3000), first, np.copy)
effect("large_array_of_an_object_is_set", lambda: Thing(a=np.zeros(3000)), lambda c: first(c.a), lambda c: c.a.copy())
effect("masked_array_is_set", lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), first, lambda c: c.filled(9.0))
effect("local_of_a_thread_is_set", threading.local, lambda c: PUT(c, "n", getattr(c, "n", 0) + 1), lambda c: c.n)
effect("own_local_of_a_thread_is_set", Local, lambda c: PUT(c, "n", c.n + 1), lambda c: c.n)
effect("semaphore_is_taken", lambda: threading.Semaphore(9), lambda c: c.acquire(), operator.attrgetter("_value"))
effect("context_variable_is_set", lambda: DEPTH.set(1), lambda _: DEPTH.set(DEPTH.get() + 1), lambda _: DEPTH.get())


def popped(c: Any) -> Any:
    return c.__dict__.pop("n", None)


effect("set_by_object", Thing, lambda c: object.__setattr__(c, "n", 5), popped)
effect("set_by_setattr_under_another_name", SimpleNamespace, lambda c: PUT(c, "n", 5), popped)


def later(c: Any) -> None:
    c.__defaults__ = (c.__defaults__[0] + 1,)


effect("defaults_of_a_function_are_set", lambda: lambda n=1: n, later, lambda c: c())

effect("print_under_another_name", lambda: None, lambda _: SHOW("shown"), none)
effect("print_of_a_module", lambda: None, lambda _: builtins.print("shown"), none)
effect("print_in_a_partial", lambda: functools.partial(print, "shown"), lambda c: c(), none)
effect("print_by_a_library", lambda: None, lambda _: pprint.pprint("shown"), none)


class Kept(logging.Handler):
    """Keeps messages where no code of the case sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.stream: Any = collections.deque()
        self.emit = self.stream.append  # type: ignore[method-assign]


def logged() -> Any:
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    LOG.handlers[:] = [Kept()]
    LOG.isEnabledFor(logging.INFO)  # which it keeps
    return LOG.handlers[0]


effect("message_is_logged", logged, lambda _: LOG.info("seen"), lambda c: len(c.stream))


def folder() -> str:
    where = os.path.join(tempfile.gettempdir(), "pullback-guards")
    shutil.rmtree(where, ignore_errors=True)
    for i in range(5):
        os.makedirs(os.path.join(where, str(i)))
    return where


def listed(where: str) -> list[str]:
    return sorted(os.listdir(where))


effect("folder_is_made", folder, lambda c: os.mkdir(tempfile.mkdtemp(dir=c) + "x"), lambda c: len(listed(c)))
effect("folder_is_removed", folder, lambda c: os.rmdir(os.path.join(c, listed(c)[0])), listed)
effect("folder_is_listed", folder, lambda c: os.rename(f"{c}/{listed(c)[0]}", f"{c}/x{listed(c)[0]}"), listed)
effect("command_is_run", folder, lambda c: os.system(f"mkdir {c}/$$"), lambda c: len(listed(c)))


def precise() -> Any:
    decimal.getcontext().prec = 28


def more(_: Any) -> None:
    decimal.getcontext().prec += 1


effect("precision_of_decimals_is_set", precise, more, lambda _: decimal.getcontext().prec)
effect(
    "handling_of_errors_is_set",
    lambda: np.seterr(divide="warn"),
    lambda _: np.seterr(divide="ignore"),
    lambda _: np.seterr(divide="warn")["divide"],
)
effect(
    "limit_of_recursion_is_set",
    lambda: sys.setrecursionlimit(1000),
    lambda _: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    lambda _: sys.getrecursionlimit(),
)


@case(refused=True)
def array_left_behind(compiled: Any) -> Iterator[Any]:
    thing = Thing(buffer=None)

    def function(x: Any) -> Any:
        thing.buffer = np.zeros(3)
        return x

    f = compiled(function)
    for _ in range(3):
        yield f(X), thing.buffer.copy()
        thing.buffer[0] = 5.0


@case
def objects_that_are_given_once(compiled: Any) -> Iterator[Any]:
    class Batch:
        def __init__(self, x: Any, n: float) -> None:
            self.x, self.n = x, n

    f = compiled(lambda batch: batch.x * batch.n)
    for i in range(8):
        yield f(Batch(X * float(i), float(i)))
