"""What a function may not do while it is traced, found out when it has returned: each is an error that says so."""

from __future__ import annotations

import os
import random
from collections.abc import Coroutine, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np

from ...errors import TraceError
from ...tensor.core import Tensor
from ..tracing.symbol import Symbol
from ..tracing.trace import Trace


def chance(generators: list[Any]) -> list[Any]:
    """Where the generators of `random` and `numpy.random` are, and these."""
    return [random.getstate(), _bits(np.random.get_state(legacy=False)), *map(_state, generators)]


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return _bits(generator.get_state(legacy=False))
    return _bits(generator.bit_generator.state)


def _bits(state: Any) -> Any:
    key = state["state"].get("key") if isinstance(state["state"], dict) else None
    return (key.tobytes(), state["state"]["pos"]) if isinstance(key, np.ndarray) else repr(state)


def refuse_chance(function: Any, name: str, generators: list[Any], before: list[Any]) -> None:
    """Refuse numbers drawn behind our back."""
    libraries = ["`random`", "`numpy.random`", *[f"a {type(generator).__name__}" for generator in generators]]
    for library, old, new in zip(libraries, before, chance(generators)):
        if old != new:
            raise TraceError(
                f"{_site(function)}{name} draws random numbers from {library} while it is traced, and would get the "
                "same ones at every call. Draw them from `pb.random`, or outside and pass them as an argument."
            )


def refuse_caught(name: str, trace: Trace) -> None:
    """Refuse to go on after an error that only the trace has raised."""
    refusal = trace.recorder.refusal
    if refusal is not None:
        raise TraceError(f"{refusal} {name} caught this error and went on, as it would not have done with values.")


def refuse_result(function: Any, name: str, thing: Any) -> None:
    """Refuse a part of the result that is no tensor, and that has traced tensors in it or still to come."""
    if isinstance(thing, Coroutine):
        thing.close()  # else it complains that nobody awaited it
    if isinstance(thing, (Iterator, Coroutine, ItemsView, KeysView, ValuesView)):
        raise TraceError(
            f"{_site(function)}{name} returns a {type(thing).__name__}, which pb.compile cannot look into: its tensors "
            "would have no values. Return a list, a tuple or a dict."
        )
    for key, value in getattr(thing, "__dict__", {}).items():
        if isinstance(value, Tensor) and type(value._data) is Symbol:
            raise TraceError(
                f"{_site(function)}{name} returns a {type(thing).__name__}, which pb.compile does not know, and its "
                f"`{key}` is a tensor of the trace. Return tensors in a dict, a tuple or a dataclass, or make the "
                "class known with `pb.tree.register`."
            )


def _site(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}: "
