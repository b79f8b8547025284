"""Functions given what is no array at all: a typed error, never a recursion or a raw error of NumPy's."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any, Callable

import pytest

import pullback as pb
from pullback.operations import OPERATIONS

NONSENSE: dict[str, Any] = {
    "None": None,
    "object": object(),
    "text": "text",
    "list": [],
    "dict": {},
    "type": float,
    "function": len,
}
#: Names that take no arrays, or run what they are given.
LEFT_OUT = frozenset(("compile", "set_default_device", "set_default_dtype", "manual_seed"))
_WRONG = (pb.PullbackError, TypeError, ValueError, FileNotFoundError)


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions with at least one argument by position."""
    found = {}
    for prefix, module in (("", pb), ("linalg.", pb.linalg), ("fft.", pb.fft)):
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if callable(thing) and not inspect.isclass(thing) and not inspect.ismodule(thing) and name not in LEFT_OUT:
                found[prefix + name] = thing
    return found


FUNCTIONS = functions()


def positions(function: Callable[..., Any]) -> int:
    """How many arguments a function needs by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nonsense_in_any_position_is_a_typed_error(name: str) -> None:
    function, count = FUNCTIONS[name], positions(FUNCTIONS[name])
    for at in range(count):
        for thing in NONSENSE.values():
            arguments: list[Any] = [pb.asarray([[1.0, 2.0], [3.0, 4.0]]) for _ in range(count)]
            arguments[at] = thing
            with suppress(*_WRONG):  # anything else, such as a recursion without end, fails
                function(*arguments)


ELEMENTWISE = [name for name in FUNCTIONS if name in OPERATIONS and OPERATIONS[name].elementwise and name != "clip"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_nothing_is_no_operand(name: str) -> None:
    function, count = FUNCTIONS[name], positions(FUNCTIONS[name])
    for at in range(count):
        for others in (None, pb.ones((2, 2)), pb.ones((2, 2), dtype=pb.bool)):
            for thing in (None, object(), "text", {}):
                arguments = [others] * count
                arguments[at] = thing
                with pytest.raises(pb.DtypeError, match="where|dtype" if name == "where" else name):
                    function(*arguments)
                with pytest.raises(pb.DtypeError):
                    pb.compile(function)(*arguments)
