"""Cases of Python state that changes between calls, and how one is judged.

A case is a generator that makes a world, calls functions made with `compiled`, changes something, and yields what is to
be compared: results, and whatever the calls should have changed.

    @case
    def class_attribute(compiled):
        class Layer:
            scale = 2.0

        f = compiled(lambda x: x * Layer.scale)
        yield f(X)
        Layer.scale = 3.0
        yield f(X)

It runs with functions as they are and with `pb.compile`, and both must yield the same. `changes` writes the most common
form in one expression. A case that is declared `refused` may raise `pb.TraceError` instead, if that names a line of the
case and has changed nothing.

That a case can fail is checked too: a wrapper that gives the first result forever must not pass, unless the case is
declared `steady`.
"""

from __future__ import annotations

import os
import random
import re
import sys
import warnings
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np

import pullback as pb

from .observation import difference, seen
from .snapshot import snapshot

Wrapper = Callable[[Any], Any]
OUTCOMES = ("equal", "refused", "refused without a line", "refused too late", "stale", "error")
X = pb.tensor([3.0, 4.0])


@dataclass(frozen=True)
class Case:
    """A generator function of a wrapper, and what is expected of it."""

    name: str
    run: Callable[[Wrapper], Iterator[Any]]
    home: Any  # a function in the module of the case
    refused: bool
    steady: bool

    @property
    def file(self) -> str:
        return os.path.basename(self.home.__code__.co_filename)

    @property
    def accepted(self) -> tuple[str, ...]:
        return ("equal", "refused") if self.refused else ("equal",)


CASES: dict[str, Case] = {}


def case(function: Any = None, *, name: str | None = None, refused: bool = False, steady: bool = False) -> Any:
    """Make a generator function a case; `refused`: a TraceError is right, `steady`: no result ever changes."""

    def register(function: Any) -> Any:
        known_as = name or function.__name__
        assert known_as not in CASES, f"two cases are called {known_as}"
        CASES[known_as] = Case(known_as, function, getattr(function, "home", function), refused, steady)
        return function

    return register if function is None else register(function)


def changes(name: str, make: Callable[[], Any], function: Callable[[Any], Any], *changes: Any, **declared: Any) -> None:
    """A case in one expression: `function(thing)` is compiled, and called twice at first and after each change.

    `changes("a_list_grows", lambda: [1.0], lambda c: lambda x: x * len(c), lambda c: c.append(2.0))`
    """

    def run(compiled: Wrapper) -> Iterator[Any]:
        thing = make()
        f = compiled(function(thing))
        for change in (lambda _: None, *changes):
            change(thing)
            yield f(X)
            yield f(X)

    run.home = function
    case(run, name=name, **declared)


# -- for use in cases ----------------------------------------------------------------------------


def variable(*values: float) -> pb.Tensor:
    return pb.tensor(list(values), requires_grad=True)


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result, or the name of the error that came instead; a TraceError is never wanted."""
    try:
        return function(*args, **kwargs)
    except pb.TraceError:
        raise
    except Exception as error:
        return type(error).__name__


@contextmanager
def restored(namespace: dict[str, Any]) -> Iterator[None]:
    """Give a namespace its names back at the end: a module's globals, or `sys.modules`."""
    before = dict(namespace)
    try:
        yield
    finally:
        for name in namespace.keys() - before.keys():
            del namespace[name]
        for name, value in before.items():
            if namespace.get(name, namespace) is not value:
                namespace[name] = value


# -- running -------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What a case yielded, and the error that ended it."""

    values: list[Any]
    error: Exception | None


class Judgement(NamedTuple):
    outcome: str
    detail: str


def observe(one: Case, compiled: Wrapper) -> Run:
    """Run a case to its end, from the same random state each time, and leave the process as it was."""
    values: list[Any] = []
    error = None
    with _undisturbed() as printed:
        try:
            for value in one.run(compiled):
                values.append(seen(value))
        except Exception as raised:
            error = raised
        values.append(seen(printed.getvalue()))
    return Run(values, error)


def judge(one: Case, compiled: Wrapper = pb.compile) -> Judgement:
    """Compare the case compiled with the case as it is."""
    expected = observe(one, _as_it_is)
    found = observe(one, compiled)
    # what was printed comes last, and a run that ended early has printed less
    pairs = zip(found.values if found.error is None else found.values[:-1], expected.values)
    for number, (ours, theirs) in enumerate(pairs):
        reason = difference(ours, theirs)
        if reason is not None:
            return Judgement("stale", f"value {number}: {reason}")
    if found.error is None:
        if expected.error is not None:
            return Judgement("stale", f"went on where the function raises {expected.error!r}")
        if len(found.values) != len(expected.values):
            return Judgement("stale", f"{len(found.values)} values instead of {len(expected.values)}")
        return Judgement("equal", "")
    message = f"{type(found.error).__name__}: {found.error}"
    if isinstance(found.error, pb.TraceError):
        if not _names_a_line(str(found.error), one.file):
            return Judgement("refused without a line", message)
        changed = _changed_by_the_refusal(one, compiled)
        return Judgement("refused", message) if changed is None else Judgement("refused too late", changed)
    if type(found.error) is type(expected.error) and len(found.values) == len(expected.values):
        return Judgement("equal", "")
    return Judgement("error", message)


def can_fail(one: Case) -> bool:
    """Whether a wrapper that always gives the first result is told from the function."""
    expected, found = observe(one, _as_it_is), observe(one, _FirstResult)
    return (
        found.error is not None
        or len(found.values) != len(expected.values)
        or any(difference(ours, theirs) is not None for ours, theirs in zip(found.values, expected.values))
    )


def why_not_deterministic(one: Case) -> str | None:
    """How two runs of the functions as they are differ, or how they fail, or None."""
    first, second = observe(one, _as_it_is), observe(one, _as_it_is)
    if first.error is not None or second.error is not None:
        return f"the functions themselves fail: {first.error!r}, {second.error!r}"
    if len(first.values) != len(second.values):
        return f"{len(first.values)} values, then {len(second.values)}"
    found = (difference(ours, theirs) for ours, theirs in zip(first.values, second.values))
    return next((reason for reason in found if reason is not None), None)


def _as_it_is(function: Any) -> Any:
    return function


def _names_a_line(message: str, file: str) -> bool:
    return any(name == file for name in re.findall(r"(\w+\.py):\d+", message))


@contextmanager
def _undisturbed() -> Iterator[StringIO]:
    numbers, legacy, own, dtype = random.getstate(), np.random.get_state(), pb.random.get_state(), pb.default_dtype()
    random.seed(0)
    np.random.seed(0)
    pb.random.seed(0)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()) as printed:
            warnings.simplefilter("error")
            yield printed
    finally:
        random.setstate(numbers)
        np.random.set_state(legacy)
        pb.random.set_state(own)
        pb.set_default_dtype(dtype)


# -- wrappers ------------------------------------------------------------------------------------


class _Wrapped:
    """A callable around another one; also a method, and with the other's attributes."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)


class _FirstResult(_Wrapped):
    """What a compiled function must not be: its first result, forever."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "first" not in vars(self):
            self.first = self._function(*args, **kwargs)
        return self.first


def _changed_by_the_refusal(one: Case, compiled: Wrapper) -> str | None:
    """What the refused call has changed in the case's variables, or None."""
    found: list[str] = []

    class Observed(_Wrapped):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            before = _state(args, kwargs)
            try:
                return self._function(*args, **kwargs)
            except pb.TraceError:
                changed = _first_change(before, _state(args, kwargs))
                if changed is not None:
                    found.append(changed)
                raise

    def _state(args: Any, kwargs: Any) -> dict[str, Any]:
        """What the case can see: local variables of its frames, and its module's."""
        names: dict[str, Any] = {"arguments": (args, kwargs)}
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code is not observe.__code__:
            names.update({f"{name} of {frame.f_code.co_name}": value for name, value in frame.f_locals.items()})
            frame = frame.f_back
        names.update({name: value for name, value in one.home.__globals__.items() if not name.startswith("__")})
        return snapshot(names, skip=(_Wrapped, type(one)), file=one.file)

    observe(one, lambda function: Observed(compiled(function)))
    return found[0] if found else None


def _first_change(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    for name, value in before.items():
        if after.get(name) != value:
            return f"`{name}` was {value!r:.150} and is {after.get(name)!r:.150}"
    return None
