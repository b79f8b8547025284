"""Recurrent layers on NumPy: native code for some steps at a time writes where its results belong."""

from __future__ import annotations

from typing import Any, Callable

import numpy as _np

from ..spans import spans_of as _spans_of


def in_spans(
    steps: Any,
    timed: tuple[int, ...],
    length: int,
    reverse: bool,
    arguments: Callable[..., Any],
    carried: Callable[..., Any],
    state: tuple[Any, ...],
) -> list[Any]:
    """What `steps`, a kernel with native code, gives for all steps: see `_in_spans` of the portable layers."""
    first, *spans = _spans_of(length, reverse)
    made = list(steps(*arguments(first, *state)))
    if not spans:
        return made
    joined = {i: _np.empty((length, *made[i].shape[1:]), made[i].dtype) for i in timed}
    for i, whole in joined.items():
        whole[first] = made[i]
    for span in spans:
        state = carried(*made)
        places = [joined[i][span] if i in joined else None for i in range(len(made))]
        made = list(steps.into(places, *arguments(span, *state)))
        for place, part in zip(places, made):
            if place is not None and part is not place:
                place[...] = part
    return [joined.get(i, last) for i, last in enumerate(made)]
