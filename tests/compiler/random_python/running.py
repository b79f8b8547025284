"""A program twice, with its functions as they are and compiled, and the comparison of what the two yield."""

from __future__ import annotations

import linecache
import traceback
import warnings
from dataclasses import fields, is_dataclass
from typing import Any, Callable, Iterator

import numpy as np

import pullback as pb

from .program import Program

_TOLERANCES = {"float64": 1e-9, "float32": 1e-4}


def failure_of(program: Program) -> str | None:
    """In words how the program compiled differs from itself, or None."""
    file = f"<random program {program.seed}>"
    linecache.cache[file] = len(program.source), None, program.source.splitlines(keepends=True), file
    expected, own_error = _observe(program, file, lambda function: function)
    found, error = _observe(program, file, pb.compile)
    where = "at first"
    for ours, theirs in zip(found, expected):
        if isinstance(theirs, tuple) and theirs[0] == "int":
            where = f"in call {theirs[1]}"
        reason = _difference(ours, theirs, _TOLERANCES[program.dtype], program.computes_both_branches)
        if reason is not None:
            return f"{where}: {reason}"
    if (own_error or "").partition(":")[0] != (error or "").partition(":")[0]:  # of another type
        return f"{where}: {error} instead of {own_error}"
    return None


def _observe(program: Program, file: str, wrap: Callable[[Any], Any]) -> tuple[list[Any], str | None]:
    """What the program yields, as it was at that moment, and the error that ended it."""
    scope: dict[str, Any] = {"wrap": wrap, "__name__": f"random_program_{program.seed}"}
    seen: list[Any] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        try:
            exec(compile(program.source, file, "exec", dont_inherit=True), scope)
            for thing in scope["run"]():
                seen.append(_seen(thing))
        except Exception as error:
            lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
            at = f", line {lines[-1].lineno}: {lines[-1].line}" if lines else ""
            return seen, f"{type(error).__name__}: {error}{at}"
    return seen, None


def _seen(thing: Any) -> Any:
    """A copy: tensors become arrays, containers their parts, by name, and the name of their type."""
    if isinstance(thing, pb.Tensor):
        return np.array(thing.detach().numpy())
    return type(thing).__name__, dict(_parts(thing)) or repr(thing)


def _parts(thing: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(thing, dict):
        yield from ((key, _seen(value)) for key, value in thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from enumerate(map(_seen, thing))
    elif is_dataclass(thing):
        yield from ((field.name, _seen(getattr(thing, field.name))) for field in fields(thing))


def _difference(ours: Any, theirs: Any, tolerance: float, zero_is_none: bool) -> str | None:
    """How two things that were seen differ; `zero_is_none`: a gradient of zeros may stand for none."""
    if isinstance(theirs, np.ndarray) and isinstance(ours, np.ndarray):
        return _difference_of_arrays(ours, theirs, tolerance)
    if isinstance(theirs, tuple) and isinstance(ours, tuple) and ours[0] == theirs[0]:
        if not isinstance(theirs[1], dict) or not isinstance(ours[1], dict):
            return None if ours == theirs else f"{ours[1]} instead of {theirs[1]}"
        if list(ours[1]) != list(theirs[1]):
            return f"{list(ours[1])} instead of {list(theirs[1])}"
        for key, value in theirs[1].items():
            reason = _difference(ours[1][key], value, tolerance, zero_is_none)
            if reason is not None:
                return f"[{key!r}]: {reason}"
        return None
    if zero_is_none and theirs == ("NoneType", "None") and not np.any(ours):
        return None
    return f"{ours} instead of {theirs}"


def _difference_of_arrays(x: np.ndarray, y: np.ndarray, tolerance: float) -> str | None:
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return f"{x.dtype} of shape {x.shape} instead of {y.dtype} of shape {y.shape}"
    scale = float(np.abs(y[np.isfinite(y)]).max(initial=1e-2)) if y.dtype.kind == "f" else 0.0
    return (
        None if np.allclose(x, y, 0.0, tolerance * scale, equal_nan=True) else f"{x.tolist()} instead of {y.tolist()}"
    )
