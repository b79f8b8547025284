"""What pooling and interpolation read along one axis: a table of positions and weights per result.

Pooling and interpolation work axis by axis, so each of their operations takes a tuple of the descriptions below,
one per spatial axis. They are values: equal ones share their table.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Window(NamedTuple):
    """Windows of `kernel` elements, `dilation` apart, every `stride`, after `padding` elements were added before."""

    size: int
    out: int
    kernel: int
    stride: int
    padding: int
    dilation: int


class Average(NamedTuple):
    """The mean of a window: divided by the elements seen, those of the padding too, or by a given number."""

    size: int
    out: int
    kernel: int
    stride: int
    padding: int
    count_include_pad: bool
    divisor: int | None


class Adaptive(NamedTuple):
    """`out` windows that cover the axis, as equal in length as they can be."""

    size: int
    out: int


class Interpolation(NamedTuple):
    """`out` values between those of the axis; `scale` is the step from one to the next, None for size / out."""

    size: int
    out: int
    mode: str
    align_corners: bool
    scale: float | None


Axis = Window | Average | Adaptive | Interpolation
OUTSIDE = -1


@lru_cache(512)
def positions(axis: Axis) -> Any:
    """An array (out, taps): which elements each result reads, OUTSIDE where a tap reads none."""
    if isinstance(axis, Interpolation):
        return table(axis)[0]
    if isinstance(axis, Adaptive):
        start, stop = _adaptive(axis)
        index = start[:, None] + np.arange((stop - start).max())
        return np.where(index < stop[:, None], index, OUTSIDE)
    index = first_positions(axis)[:, None] + np.arange(axis.kernel) * (axis.dilation if isinstance(axis, Window) else 1)
    return np.where((index >= 0) & (index < axis.size), index, OUTSIDE)


def first_positions(axis: Window | Average | Adaptive) -> Any:
    """Where each window starts, in the padding or not."""
    if isinstance(axis, Adaptive):
        return _adaptive(axis)[0]
    return np.arange(axis.out) * axis.stride - axis.padding


def _adaptive(axis: Adaptive) -> tuple[Any, Any]:
    number = np.arange(axis.out)
    return number * axis.size // axis.out, -(-(number + 1) * axis.size // axis.out)


@lru_cache(512)
def selections(axis: Axis, transposed: bool = False) -> list[tuple[int, slice, Any]]:
    """For each tap that reads anything: its number, the results it is for, and what it reads for them.

    What it reads is a slice, or an array of positions where the windows are not regular; there a result without
    that tap reads the element of its first one again.
    """
    index = table(axis, transposed)[0] if transposed or isinstance(axis, Interpolation) else positions(axis)
    chosen: list[tuple[int, slice, Any]] = []
    for tap, column in enumerate(index.T):
        there = np.flatnonzero(column != OUTSIDE)
        if not len(there):
            continue
        first, last = int(there[0]), int(there[-1]) + 1
        read = column[first:last]
        step = int(read[1] - read[0]) if len(read) > 1 else 1
        if last - first == len(there) and step > 0 and (np.diff(read) == step).all():
            chosen.append((tap, slice(first, last), slice(int(read[0]), int(read[-1]) + 1, step)))
        else:
            chosen.append((tap, slice(0, len(index)), np.where(column == OUTSIDE, first_read(index), column)))
    return chosen


def first_read(index: Any) -> Any:
    """The first element that each result reads; 0 where it reads none."""
    tap = np.argmax(index != OUTSIDE, axis=1)
    return np.maximum(index[np.arange(len(index)), tap], 0)


@lru_cache(512)
def table(axis: Axis, transposed: bool = False) -> tuple[Any, Any]:
    """Arrays (results, taps) of positions and of weights; with `transposed` the table of the transposed map."""
    if transposed:
        return _transposed(*table(axis), axis.size)
    if isinstance(axis, Interpolation):
        return _interpolation(axis)
    index = positions(axis)
    there = index != OUTSIDE
    count = there.sum(axis=1)
    if isinstance(axis, Average):
        if axis.divisor is not None:
            count = np.full(axis.out, axis.divisor)
        elif axis.count_include_pad:
            start = first_positions(axis)
            count = np.minimum(start + axis.kernel, axis.size + axis.padding) - start
    return index, there / count[:, None]


def _transposed(index: Any, weight: Any, size: int) -> tuple[Any, Any]:
    result, tap = np.nonzero(index != OUTSIDE)
    read = index[result, tap]
    order = np.argsort(read, kind="stable")
    result, tap, read = result[order], tap[order], read[order]
    counts = np.bincount(read, minlength=size)
    number = np.arange(len(read)) - np.repeat(np.cumsum(counts) - counts, counts)
    taps = int(counts.max(initial=1))
    new_index = np.full((size, taps), OUTSIDE)
    new_weight = np.zeros((size, taps))
    new_index[read, number] = result
    new_weight[read, number] = weight[result, tap]
    return new_index, new_weight


def _interpolation(axis: Interpolation) -> tuple[Any, Any]:
    size, out = axis.size, axis.out
    number = np.arange(out)
    if axis.mode.startswith("nearest"):
        # in single precision, as PyTorch does it: which neighbour is the nearest must not depend on the library
        scale = np.float32(size / out if axis.scale is None else axis.scale)
        shift = np.float32(0.5 if axis.mode == "nearest-exact" else 0)
        index = np.floor((number.astype(np.float32) + shift) * scale).astype(np.int64)
        return np.minimum(index, size - 1)[:, None], np.ones((out, 1))
    if axis.align_corners:
        place = number * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        place = (number + 0.5) * (size / out if axis.scale is None else axis.scale) - 0.5
    if axis.mode == "cubic":
        first = np.floor(place).astype(np.int64)
        index = np.clip(first[:, None] + np.arange(-1, 3), 0, size - 1)
        return index, _cubic_weights(place - first)
    if out == size:  # PyTorch copies then, whatever the step
        place = number.astype(np.float64)
    place = np.maximum(place, 0.0)
    first = np.minimum(place.astype(np.int64), size - 1)
    after = np.where(first < size - 1, place - first, 0.0)
    return np.stack([first, np.minimum(first + 1, size - 1)], 1), np.stack([1 - after, after], 1)


def _cubic_weights(t: Any) -> Any:
    """Keys' cubic convolution with the coefficient -0.75, as PyTorch and OpenCV have it."""
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((x - 5) * x + 8) * x * a - 4 * a

    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], 1)


@lru_cache(512)
def matrix(axis: Axis, transposed: bool = False) -> Any:
    """The same as a dense matrix (elements read, results), in float64."""
    index, weight = table(axis)
    dense = np.zeros((axis.size, axis.out))
    result, tap = np.nonzero(index != OUTSIDE)
    np.add.at(dense, (index[result, tap], result), weight[result, tap])
    return np.ascontiguousarray(dense.T) if transposed else dense
