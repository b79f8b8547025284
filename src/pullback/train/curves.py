"""A value over a whole run in little memory: what a chart can show of it, however many steps there were."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from ..errors import FileFormatError
from . import figures

__all__ = ["Curve", "Points"]

Points = list[tuple[float, float]]

_BUCKETS = 400  # about one for every two pixels of a chart
_LARGEST = 1e300  # what is beyond is drawn as not finite: means and axes must not overflow
_FIELDS = 9


class Curve:
    """The value of a quantity at some steps, of which the extremes and means of at most 400 buckets are kept.

    A bucket holds a number of values that come one after the other; when there are too many, neighbours are merged. So
    no spike is ever lost, and a billion steps take no more room than a thousand.

    >>> from pullback.train.curves import Curve
    >>> curve = Curve()
    >>> for step in range(1, 100_001):
    ...     curve.add(step, 5.0 if step == 77_777 else 1.0)
    >>> len(curve.points()) <= 1000, (77_777, 5.0) in curve.points()
    (True, True)
    """

    __slots__ = ("_buckets", "_held", "_width", "last")

    def __init__(self, points: Iterable[tuple[float, float]] = ()) -> None:
        self._buckets: list[list[Any]] = []
        self._width = 1  # values per bucket
        self._held = 0  # values in the last bucket
        self.last: float | None = None
        for step, value in points:
            self.add(step, value)

    def add(self, step: float, value: float) -> None:
        """Take the value at a step that is not before those given until now."""
        self.last = value
        if self._held == self._width or not self._buckets:
            if len(self._buckets) == _BUCKETS:
                self._halve()
            self._buckets.append(_single(step, value))
            self._held = 1
        else:
            _merge(self._buckets[-1], _single(step, value))
            self._held += 1

    def _halve(self) -> None:
        for left, right in zip(self._buckets[::2], self._buckets[1::2]):
            _merge(left, right)
        del self._buckets[1::2]
        self._width *= 2

    def points(self) -> Points:
        """The extremes of every bucket in the order of their steps; a NaN stands for values that were not finite."""
        found: Points = []
        for _, _, count, _, low_step, low, high_step, high, bad in self._buckets:
            here: Points = [] if bad is None else [(bad, float("nan"))]
            if count:
                here.append((low_step, low))
                if high_step != low_step:
                    here.append((high_step, high))
                here.sort(key=lambda point: point[0])
            found += here
        return found

    def smoothed(self) -> Points:
        """The mean of every bucket, averaged with its neighbours: where a noisy value is going.

        The average is over a fiftieth of the run, and over less near its beginning, where a loss falls steeply.
        """
        kept = [bucket for bucket in self._buckets if bucket[2]]
        if not kept:
            return []
        means, weights = np.array([bucket[3] for bucket in kept]), np.array([float(bucket[2]) for bucket in kept])
        places = np.arange(len(kept)) + 0.5
        spread = np.minimum(len(kept) / 50, 0.2 * places)[:, None]
        kernel = np.exp(-0.5 * ((places - places[:, None]) / spread) ** 2) * weights
        averages = (kernel @ means) / kernel.sum(axis=1)
        return [((bucket[0] + bucket[1]) // 2, float(average)) for bucket, average in zip(kept, averages)]

    @property
    def span(self) -> tuple[float, float]:
        """The first and the last step."""
        return self._buckets[0][0], self._buckets[-1][1]

    def __len__(self) -> int:
        return len(self._buckets)

    def state_dict(self) -> dict[str, Any]:
        """All of it, made of what JSON can hold."""
        last = self.last if self.last is not None and abs(self.last) < _LARGEST else None
        return {"width": self._width, "held": self._held, "last": last, "buckets": [list(b) for b in self._buckets]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        buckets = [list(bucket) for bucket in state["buckets"]]
        if any(len(bucket) != _FIELDS for bucket in buckets):
            raise FileFormatError(f"Curve: expected buckets of {_FIELDS} values, got {[len(b) for b in buckets][:5]}.")
        for bucket in buckets:
            *values, bad = bucket
            for place, value in enumerate(values if bad is None else bucket):
                figures.number({f"value {place} of a bucket": value}, f"value {place} of a bucket", finite=True)
        width, held = figures.count(state, "width", 1), figures.count(state, "held")
        last = None if state["last"] is None else figures.number(state, "last")
        self._buckets, self._width, self._held, self.last = buckets, width, held, last


def _single(step: float, value: float) -> list[Any]:
    """A bucket: first step, last step, count, mean, step and value of the least and the greatest, first bad step."""
    if abs(value) < _LARGEST:  # false for a NaN
        return [step, step, 1, value, step, value, step, value, None]
    return [step, step, 0, 0.0, step, 0.0, step, 0.0, step]


def _merge(left: list[Any], right: list[Any]) -> None:
    """Make `left` the bucket of both."""
    left[1] = right[1]
    if left[8] is None:
        left[8] = right[8]
    if not right[2]:
        return
    if not left[2]:
        left[2:8] = right[2:8]
        return
    left[2] += right[2]
    left[3] += (right[3] - left[3]) * (right[2] / left[2])
    if right[5] < left[5]:
        left[4], left[5] = right[4], right[5]
    if right[7] > left[7]:
        left[6], left[7] = right[6], right[7]
