"""Writing saved values into a model's tensors: everything fits, or nothing is written."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from .. import modes
from ..autodiff.creation import asarray
from ..errors import ConfigurationError, DtypeError, PullbackError, ShapeError
from ..tensors.tensor import Tensor


class Differences(NamedTuple):
    """The names that only the model has (`missing`) and that only the given values have (`unexpected`)."""

    missing: list[str]
    unexpected: list[str]


def load(model: str, own: dict[str, Tensor], given: Mapping[str, Any], strict: bool) -> Differences:
    """Write `given` into `own`, tensors by name; `model` is what to call it in messages."""
    if not isinstance(given, Mapping):
        write = " Write `module.state_dict()`." if hasattr(given, "state_dict") else ""
        raise ConfigurationError(
            f"load_state_dict: expected a mapping of names to arrays, got {type(given).__name__}.{write}"
        )
    names_of: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names_of.setdefault(id(tensor), []).append(name)
    missing = [name for name, tensor in own.items() if not any(twin in given for twin in names_of[id(tensor)])]
    unexpected = [name for name in given if name not in own]
    problems: list[str] = []
    kinds: set[type[PullbackError]] = set()  # of the problems that were found
    if strict:
        problems += [f"missing: {name!r} {_described(own[name])}. {nearest(name, unexpected)}" for name in missing]
        problems += [f"unexpected: {name!r}. {nearest(name, missing)}" for name in unexpected]
        kinds |= {ConfigurationError} if problems else set()
    values: dict[str, Tensor] = {}
    for name, tensor in own.items():
        if name in given:
            try:
                values[name] = _fitting(given[name], tensor)
            except PullbackError as error:
                kinds.add(type(error))
                problems.append(f"{name!r}: {error}")
    for names in names_of.values():
        disagreements = _disagreements([name for name in names if name in values], values)
        problems += disagreements
        kinds |= {ConfigurationError} if disagreements else set()
    if problems:
        kind = kinds.pop() if len(kinds) == 1 else ConfigurationError
        listed = "\n".join(f"  {problem.rstrip()}" for problem in problems)
        advice = (
            "\nPass strict=False to leave out what only one side has." if strict and (missing or unexpected) else ""
        )
        raise kind(f"load_state_dict: the values do not fit {model}; nothing was written.\n{listed}{advice}")
    with modes.no_grad():
        for name, value in values.items():
            own[name][...] = value
    return Differences(missing, unexpected)


def nearest(name: str, names: Iterable[str]) -> str:
    """The names most like `name`, as a sentence, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f"Close: {', '.join(map(repr, close))}." if close else ""


def _fitting(value: Any, like: Tensor) -> Tensor:
    """`value` as a tensor to write into `like`."""
    if hasattr(value, "detach"):
        value = value.detach()
    value = asarray(value)
    if value.shape != like.shape:
        raise ShapeError(f"shape {value.shape} was given, the model has {like.shape}.")
    if value.dtype.kind != like.dtype.kind:
        raise DtypeError(f"{value.dtype.name} was given, the model has {like.dtype.name}.")
    return asarray(value, dtype=like.dtype, device=like.device)


def _disagreements(names: list[str], values: dict[str, Tensor]) -> list[str]:
    """Names of one tensor whose values differ: writing the last of them would be a guess."""
    return [
        f"{names[0]!r} and {name!r} are one tensor in the model, but different values were given."
        for name in names[1:]
        if values[name] is not values[names[0]] and not bool((values[name] == values[names[0]]).all())
    ]


def _described(tensor: Tensor) -> str:
    return f"(shape {tensor.shape}, {tensor.dtype.name})"
