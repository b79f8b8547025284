"""The state of what takes part in a run, gathered for a checkpoint and given back when it is resumed."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

from ..errors import ConfigurationError, FileFormatError, PullbackError
from .callbacks import Callback


def saved_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """The states of a trainer's parts by name."""
    return {name: part.state_dict() for name, part in parts.items()}


def load_parts(parts: dict[str, Any], states: dict[str, Any]) -> None:
    """Give the parts their states; refused if the run had other parts than this trainer has."""
    lacking, new = sorted(states.keys() - parts.keys()), sorted(parts.keys() - states.keys())
    if lacking or new:
        differences = [*(f"it had the {name} that this trainer lacks" for name in lacking)]
        differences += [f"it had no {name}, this trainer has one" for name in new]
        raise ConfigurationError(
            f"resume: the checkpoint is of a run that was set up differently: {'; '.join(differences)}. "
            "Set up the trainer as it was, or start a new run."
        )
    for name, part in parts.items():
        part.load_state_dict(states[name])


def load_or_go_back(load: Callable[[Any], None], state: Any, before: Any) -> None:
    """Take over a state; if that fails, the state `before`. A state that cannot be one is a `FileFormatError`."""
    try:
        load(state)
    except BaseException as error:
        load(before)
        if isinstance(error, (PullbackError, MemoryError)) or not isinstance(error, Exception):
            raise
        raise FileFormatError(
            "resume: the checkpoint does not hold the state of such a run; nothing was changed "
            f"({type(error).__name__}: {error})."
        ) from error


def saved_callbacks(callbacks: Sequence[Callback]) -> dict[str, Any]:
    """The states of callbacks, by class and number: ones that only watch may come and go between two stretches."""
    return {name: callback.state_dict() for name, callback in _named(callbacks)}


def load_callbacks(callbacks: Sequence[Callback], states: dict[str, Any]) -> None:
    for name, callback in _named(callbacks):
        if states.get(name):
            callback.load_state_dict(states[name])


def _named(callbacks: Sequence[Callback]) -> Iterator[tuple[str, Callback]]:
    counts: dict[str, int] = {}
    for callback in callbacks:
        kind = type(callback).__name__
        counts[kind] = counts.get(kind, 0) + 1
        yield f"{kind} {counts[kind]}", callback
