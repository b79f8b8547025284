"""What a case yielded, as it was at that moment, and the comparison of two such things."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

import pullback as pb

_TOLERANCE = 1e-5


class Array(NamedTuple):
    """A tensor or an array: what it is, and a copy of its numbers."""

    kind: str
    values: Any


class Tree(NamedTuple):
    """A container or an object by its parts."""

    kind: str
    parts: dict[Any, Any]


def seen(thing: Any) -> Any:
    """A copy of what can be seen of a thing: types, dtypes, shapes, numbers and structure."""
    if isinstance(thing, pb.Tensor):
        try:
            return Array("Tensor", np.array(thing.detach().numpy()))
        except pb.TraceError:
            return Tree("tensor left over from a trace", {})
    if isinstance(thing, (np.ndarray, np.generic)):
        return Array(type(thing).__name__, np.array(thing))
    if isinstance(thing, dict):
        return Tree(type(thing).__name__, {key: seen(value) for key, value in thing.items()})
    if isinstance(thing, (list, tuple)):
        return Tree(type(thing).__name__, dict(enumerate(map(seen, thing))))
    if isinstance(thing, (set, frozenset)):
        return Tree(type(thing).__name__, dict(enumerate(sorted(map(repr, thing)))))
    if is_dataclass(thing) and not isinstance(thing, type):
        return Tree(type(thing).__name__, {field.name: seen(getattr(thing, field.name)) for field in fields(thing)})
    if thing is None or isinstance(thing, (bool, int, float, complex, str, bytes, type)):
        return thing
    return Tree(type(thing).__name__, {name: seen(value) for name, value in getattr(thing, "__dict__", {}).items()})


def difference(ours: Any, theirs: Any, tolerance: float = _TOLERANCE) -> str | None:
    """In words how two things that were seen differ, or None."""
    if type(ours) is not type(theirs):
        return f"{_words(ours)} instead of {_words(theirs)}"
    if isinstance(theirs, Array):
        return _difference_of_arrays(ours, theirs, tolerance)
    if isinstance(theirs, Tree):
        if ours.kind != theirs.kind:
            return f"a {ours.kind} instead of a {theirs.kind}"
        if list(ours.parts) != list(theirs.parts):
            return f"a {ours.kind} of {list(ours.parts)} instead of {list(theirs.parts)}"
        for key, value in theirs.parts.items():
            reason = difference(ours.parts[key], value, tolerance)
            if reason is not None:
                return f"[{key!r}]: {reason}"
        return None
    if isinstance(theirs, float):
        return None if np.isclose(ours, theirs, tolerance, tolerance, True) else f"{ours} instead of {theirs}"
    return None if ours == theirs else f"{ours!r} instead of {theirs!r}"


def _difference_of_arrays(ours: Array, theirs: Array, tolerance: float) -> str | None:
    if ours.kind != theirs.kind:
        return f"a {ours.kind} instead of a {theirs.kind}"
    x, y = ours.values, theirs.values
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return f"{x.dtype} of shape {x.shape} instead of {y.dtype} of shape {y.shape}"
    is_number = np.issubdtype(y.dtype, np.number)
    is_equal = np.allclose(x, y, tolerance, tolerance, True) if is_number else np.array_equal(x, y)
    return None if is_equal else f"{x.tolist()} instead of {y.tolist()}"


def _words(thing: Any) -> str:
    return f"a {thing.kind}" if isinstance(thing, (Array, Tree)) else repr(thing)
