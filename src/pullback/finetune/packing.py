"""Samples of different lengths in rows of one length: which go together, and how a row looks."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, NamedTuple, Sequence

import numpy as np

from ..models.language_model import IGNORED
from .samples import Sample

NO_SEGMENT = -1  # the segment of what fills a row up


class TokenBatch(NamedTuple):
    """Rows of tokens as a model takes them: arrays of int32 (rows, length), and `counts` (rows).

    `labels` are -100 where there is no loss, `positions` begin at 0 in every sample, and `segments` number the samples
    of a row, with -1 for what fills it up. `counts` says how many tokens of a row have a loss.
    """

    tokens: Any
    labels: Any
    positions: Any
    segments: Any
    counts: Any


def fitted(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Rows of places in `lengths`, which are descending, such that those of a row add up to `room` at most.

    Each goes where it leaves the least room: best fit, in descending order, which needs at most 11/9 of the fewest
    rows possible, and for many samples hardly more than these.

    >>> from pullback.finetune.packing import fitted
    >>> fitted([6, 5, 4, 3, 2], room=10)
    [[0, 2], [1, 3, 4]]
    """
    rows: list[list[int]] = []
    with_room: dict[int, list[list[int]]] = {}  # by the room that is left in them
    rooms: list[int] = []  # the keys, ascending
    for place, length in enumerate(lengths):
        at = bisect_left(rooms, length)
        if at == len(rooms):
            rows.append([])
            row, left = rows[-1], room
        else:
            left = rooms[at]
            row = with_room[left].pop()
            if not with_room[left]:
                del with_room[left], rooms[at]
        row.append(place)
        left -= length
        if left:
            if left not in with_room:
                with_room[left] = []
                insort(rooms, left)
            with_room[left].append(row)
    return rows


def laid_out(rows: Sequence[Sequence[Sample]], length: int, padding: int) -> TokenBatch:
    """Rows of samples as a batch; `padding` is the token that fills rows up.

    >>> import numpy as np
    >>> from pullback.finetune import Sample
    >>> from pullback.finetune.packing import laid_out
    >>> one, two = np.array([1, 2], np.int32), np.array([5, 6, 7], np.int32)
    >>> batch = laid_out([[Sample(one, one, "a"), Sample(two, two, "b")]], length=6, padding=0)
    >>> for name, array in zip(batch._fields, batch):
    ...     print(f"{name:9} {array[0]}")
    tokens    [1 2 5 6 7 0]
    labels    [-100    2 -100    6    7 -100]
    positions [0 1 0 1 2 0]
    segments  [ 0  0  1  1  1 -1]
    counts    3
    """
    shape = (len(rows), length)
    tokens = np.full(shape, padding, np.int32)
    labels = np.full(shape, IGNORED, np.int32)
    positions = np.zeros(shape, np.int32)
    segments = np.full(shape, NO_SEGMENT, np.int32)
    for number, row in enumerate(rows):
        begin = 0
        for segment, sample in enumerate(row):
            end = begin + len(sample.tokens)
            tokens[number, begin:end] = sample.tokens
            labels[number, begin + 1 : end] = sample.labels[1:]
            positions[number, begin:end] = np.arange(end - begin)
            segments[number, begin:end] = segment
            begin = end
    counts = (labels != IGNORED).sum(axis=1, dtype=np.int32)
    return TokenBatch(tokens, labels, positions, segments, counts)
