"""What a function may not do while it is traced, found out when it has returned: each is an error that says so."""

from __future__ import annotations

import os
from collections.abc import Coroutine, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from ... import tree
from ...errors import TraceError
from ...tensors.tensor import Tensor
from ..tracing.symbol import Symbol
from ..tracing.trace import Trace


def refuse_caught(name: str, trace: Trace) -> None:
    """Refuse to go on after an error that only the trace has raised."""
    refusal = trace.recorder.refusal
    if refusal is not None:
        raise TraceError(f"{refusal} {name} caught this error and went on, as it would not have done with values.")


def refuse_changed_arguments(function: Any, name: str, kept: Any, given: Any, is_leaf: Any) -> None:
    """Refuse to go on if the function has changed a container among its arguments, of which it was given a copy."""
    leaves, structure = kept
    now, shape = tree.flatten(given, is_leaf=is_leaf)
    if shape != structure or any(x is not y for x, y in zip(leaves, now)):
        raise TraceError(
            f"{site_of(function)}: {name} changes a container among its arguments, which a program cannot do. Return "
            "the new values, and put them there outside."
        )


def refuse_result(function: Any, name: str, thing: Any) -> None:
    """Refuse a part of the result that is no tensor, and that has traced tensors in it or still to come."""
    if isinstance(thing, Coroutine):
        thing.close()  # else it complains that nobody awaited it
    if isinstance(thing, (Iterator, Coroutine, ItemsView, KeysView, ValuesView)):
        raise TraceError(
            f"{site_of(function)}: {name} returns a {type(thing).__name__}, which pb.compile cannot look into: its "
            "tensors would have no values. Return a list, a tuple or a dict."
        )
    for key, value in _attributes(thing):
        if isinstance(value, Tensor) and type(value._raw) is Symbol:
            raise TraceError(
                f"{site_of(function)}: {name} returns a {type(thing).__name__}, which pb.compile does not know, and "
                f"its `{key}` is a tensor of the trace. Return tensors in a dict, a tuple or a dataclass, or make the "
                "class known with `pb.tree.register`."
            )


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of what an object holds, in its dict and in its slots."""
    yield from list(getattr(thing, "__dict__", {}).items())
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name):
                yield name, getattr(thing, name)


def site_of(function: Any) -> str:
    """The first line of a function, as "file.py:41"."""
    inner = getattr(function, "func", None) or getattr(function, "__func__", None) or function
    if not hasattr(inner, "__code__"):
        inner = getattr(type(inner), "forward", None) or type(inner).__call__
    code = getattr(inner, "__code__", None)
    return "" if code is None else f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
