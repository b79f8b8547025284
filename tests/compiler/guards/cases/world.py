"""What a function leaves in the world outside, and in things that only look like containers: refused, and undone."""

from __future__ import annotations

import collections
import contextvars
import decimal
import logging
import operator
import os
import pprint
import shutil
import tempfile
import threading
import time
from typing import Any, Callable, Iterator, Protocol, runtime_checkable

import numpy as np

from ..harness import X, case, restored

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
effect("bytes_are_set", lambda: bytearray(b"ab"), first, bytes)
effect("array_of_objects_is_set", lambda: np.array([1, "a"], object), first, list)
effect("large_array_is_set", lambda: np.zeros(3000), first, np.copy)
effect("local_of_a_thread_is_set", threading.local, lambda c: PUT(c, "n", getattr(c, "n", 0) + 1), lambda c: c.n)
effect("semaphore_is_taken", lambda: threading.Semaphore(9), lambda c: c.acquire(), operator.attrgetter("_value"))


def popped(c: Any) -> Any:
    return c.__dict__.pop("n", None)


effect("set_by_object", Thing, lambda c: object.__setattr__(c, "n", 5), popped)


def later(c: Any) -> None:
    c.__defaults__ = (c.__defaults__[0] + 1,)


effect("defaults_of_a_function_are_set", lambda: lambda n=1: n, later, lambda c: c())

effect("print_under_another_name", lambda: None, lambda _: SHOW("shown"), none)
effect("print_by_a_library", lambda: None, lambda _: pprint.pprint("shown"), none)


class Saved(logging.Handler):
    """Keeps messages where no code of the case sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.stream: Any = collections.deque()
        self.emit = self.stream.append  # type: ignore[method-assign]


def logged() -> Any:
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    LOG.handlers[:] = [Saved()]
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


effect("folder_is_removed", folder, lambda c: os.rmdir(os.path.join(c, listed(c)[0])), listed)
effect("command_is_run", folder, lambda c: os.system(f"mkdir {c}/$$"), lambda c: len(listed(c)))


def precise() -> Any:
    decimal.getcontext().prec = 28


def more(_: Any) -> None:
    decimal.getcontext().prec += 1


effect("precision_of_decimals_is_set", precise, more, lambda _: decimal.getcontext().prec)


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


# -- what says something else each time --------------------------------------------------------------


def by_chance(name: str, ask: Callable[[], float]) -> None:
    """A case of a question that has another answer each time."""

    def run(compiled: Any) -> Iterator[Any]:
        f = compiled(lambda x: x * 0.0 + ask())
        answers = [float(f(X).sum().item()) for _ in range(5)]
        yield len(set(answers)) > 1

    run.home = ask  # type: ignore[attr-defined]
    case(run, name=name, refused=True)


by_chance("clock_is_asked", lambda: float(time.perf_counter_ns() % 1000003))
by_chance("generator_without_a_seed", lambda: float(np.random.default_rng().integers(1 << 20)))


@case(refused=True)
def folder_that_is_looked_for(compiled: Any) -> Iterator[Any]:
    where = folder()
    f = compiled(lambda x: x if os.path.exists(where) else -x)
    yield f(X)
    shutil.rmtree(where)
    yield f(X)


@case(refused=True)
def attribute_is_deleted(compiled: Any) -> Iterator[Any]:
    thing = Thing(last=None)

    def function(x: Any) -> Any:
        thing.last = x * 2
        y = thing.last + 1
        del thing.last
        return y

    f = compiled(function)
    yield f(X), hasattr(thing, "last")
    thing.last = None
    yield f(X * 2), hasattr(thing, "last")


@case
def variable_of_the_environment_by_getenv(compiled: Any) -> Iterator[Any]:
    with restored(os.environ):  # type: ignore[arg-type]
        os.environ["PULLBACK_GUARDS"] = "2"
        f = compiled(lambda x: x * float(os.getenv("PULLBACK_GUARDS", "1")))
        yield f(X)
        os.environ["PULLBACK_GUARDS"] = "3"
        yield f(X)
        del os.environ["PULLBACK_GUARDS"]
        yield f(X)


@case
def protocol_is_followed(compiled: Any) -> Iterator[Any]:
    @runtime_checkable
    class Scaled(Protocol):
        def scale(self) -> float: ...

    thing = Thing()
    f = compiled(lambda x: x if isinstance(thing, Scaled) else -x)
    yield f(X)
    thing.scale = lambda: 1.0
    yield f(X)
    del thing.scale
    yield f(X)
