"""Running steps again for a walk that has come to a node whose values were dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends
from ..apply import split
from .saved import Replay, Saved


def values_of(saved: tuple[Any, ...], current: int) -> list[Any]:
    """What a node saved, as raw arrays; `current` is the number of the node's step.

    Arrays that nodes further on need too are held for them.
    """
    parts = [part for x in saved for part in (x if type(x) is tuple else (x,)) if isinstance(part, Saved)]
    found = {part: part.raw for part in parts}  # read once: another walk may let go of an array at any moment
    missing = [part for part, raw in found.items() if raw is None]
    if missing:
        found.update(_run_again(missing, current))
    return [
        found[x]
        if isinstance(x, Saved)
        else tuple([found[part] if isinstance(part, Saved) else part for part in x])
        if type(x) is tuple
        else x
        for x in saved
    ]


def _run_again(targets: list[Saved], current: int) -> dict[Saved, Any]:
    """Compute the arrays of `targets`, and of what else their regions have dropped and nodes further on need."""
    wanted = dict.fromkeys(targets)
    for target in targets:
        for region in () if target.replay is None or target.replay.region is None else target.replay.region.around():
            wanted.update(dict.fromkeys(region.dropped_before(current)))
    replays: dict[Replay, None] = {}
    values: dict[Saved, Any] = {}
    uses: dict[Saved, int] = {}
    stack = list(wanted)
    while stack:
        replay = stack.pop().replay
        if replay is None or replay in replays:
            continue
        replays[replay] = None
        for x in replay.operands:
            if isinstance(x, Saved):
                uses[x] = uses.get(x, 0) + 1
                if x not in values:
                    raw = x.raw
                    if raw is None:
                        stack.append(x)
                    else:
                        values[x] = raw
    result: dict[Saved, Any] = dict.fromkeys(targets)
    order = sorted(replays, key=lambda replay: replay.seq)
    targets[0].before_replays(lambda: _bytes_needed(order, uses, result), values)
    with np.errstate(all="ignore"):
        for replay in order:
            arrays = _arrays_of(replay, values)
            for index, reference in replay.results.items():
                kept = reference()
                if kept is None:
                    continue
                raw = arrays[index]
                if kept.raw is None and kept.first is not None and kept.first < current:
                    if kept.region is None or kept in wanted:  # other regions run again when a walk comes to them
                        kept.store(raw)
                if kept in result:
                    result[kept] = raw
                if kept in uses:
                    values[kept] = raw
            targets[0].during_replays(lambda: _bytes_in((*values.items(), *result.items())))
            for x in replay.operands:
                if isinstance(x, Saved):
                    uses[x] -= 1
                    if not uses[x]:
                        values.pop(x, None)
    return result


def _arrays_of(replay: Replay, values: dict[Saved, Any]) -> tuple[Any, ...]:
    """Run a step's kernel; its outputs and residuals."""
    inputs = [values[x] if isinstance(x, Saved) else x for x in replay.operands]
    operation, backend = replay.operation, replay.backend
    kernel = operation.kernel_for(backend)
    result = kernel(inputs, *replay.static) if operation.variadic else kernel(*inputs, *replay.static)
    outputs, residuals = split(operation, result)
    return (*[backend.from_scalar(out) for out in outputs], *residuals)


def _bytes_needed(order: list[Replay], uses: dict[Saved, int], result: dict[Saved, Any]) -> int:
    """The most bytes that running `order` will have in use at a time, of arrays that it makes."""
    uses = dict(uses)
    made: set[Saved] = set()
    now = most = 0
    for replay in order:
        for reference in replay.results.values():
            kept = reference()
            if kept is not None and (kept in uses or kept in result):
                made.add(kept)
                now += kept.origin.nbytes
        most = max(most, now)
        for x in replay.operands:
            if isinstance(x, Saved):
                uses[x] -= 1
                if not uses[x] and x in made and x not in result:
                    now -= x.origin.nbytes
    return most


def _bytes_in(arrays: tuple[tuple[Saved, Any], ...]) -> int:
    """The bytes of arrays that are not held, each buffer counted once."""
    return sum(dict(backends.of(raw).buffer_of(raw) for kept, raw in arrays if raw is not kept.raw).values())
