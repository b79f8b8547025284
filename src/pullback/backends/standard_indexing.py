"""Reading and writing parts of arrays for any array API namespace.

The standard has little indexing: no assignment through integer arrays, no addition at repeated positions.
Here an index is turned into flat positions by NumPy, on the host; what follows needs `take` and `where` alone,
so it works on arrays that cannot be written, and repeated positions are added in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def basic_index(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """`index` with an entry for every axis and with slices inside their bounds; None if it holds arrays or lists."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, (bool, np.bool_)) for part in parts):
        return None
    if not all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts):
        return None
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > len(shape):
        raise IndexError(f"{given} indices for an array with {len(shape)} axes.")
    fill = [slice(None)] * (len(shape) - given)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), None)
    parts = parts + fill if at is None else parts[:at] + fill + parts[at + 1 :]
    axis = 0
    for i, part in enumerate(parts):
        if part is None:
            continue
        parts[i] = _bounded(part, shape[axis]) if isinstance(part, slice) else _inside(int(part), axis, shape[axis])
        axis += 1
    return tuple(parts)


def _inside(position: int, axis: int, length: int) -> int:
    if not -length <= position < length:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {length}")
    return position


def _bounded(part: slice, length: int) -> slice:
    start, stop, step = part.indices(length)
    if len(range(start, stop, step)) == 0:
        return slice(0, 0, 1)
    return slice(start, None if stop < 0 else stop, step)


def positions(backend: Any, index: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The flat positions in an array of `shape` that `index` names."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(backend.to_numpy(p) if isinstance(p, backend.array_types) else p for p in parts)
    size = int(np.prod(shape, dtype=np.int64))
    return np.arange(size).reshape(shape)[parts if isinstance(index, tuple) else parts[0]]


class Indexing:
    """The indexing kernels over the standard functions of `xp`."""

    def __init__(self, backend: Any, xp: Any) -> None:
        self.backend = backend
        self.xp = xp

    def getitem(self, x: Any, index: Any) -> Any:
        basic = basic_index(index, tuple(x.shape))
        if basic is not None:
            return x[basic]
        where = positions(self.backend, index, tuple(x.shape))
        return self.xp.reshape(self._take(self._flat(x), where.reshape(-1)), where.shape)

    def setitem(self, x: Any, value: Any, index: Any) -> Any:
        """A copy of `x` with `value` at `index`; of positions named twice the last value stays."""
        basic = basic_index(index, tuple(x.shape))
        if basic is not None and self.backend.writable and not any(part is None for part in basic):
            out = self.backend.copy(x)
            out[basic] = self._fitting(value, x, tuple(out[basic].shape))
            return out
        where = positions(self.backend, index, tuple(x.shape))
        if where.size == 0:
            return self.backend.copy(x)
        values = self._flat(self._fitting(value, x, where.shape))
        source = self._source(where, x, np.arange(where.size))
        written = self.backend.constant(source >= 0, x)
        flat = self.xp.where(written, self._take(values, np.maximum(source, 0)), self._flat(x))
        return self.xp.reshape(flat, tuple(x.shape))

    def index_add(self, x: Any, value: Any, index: Any) -> Any:
        """A copy of `x` with `value` added at `index`, once for each time that a position is named."""
        where = positions(self.backend, index, tuple(x.shape))
        if where.size == 0:
            return self.backend.copy(x)
        values = self._flat(self._fitting(value, x, where.shape))
        named, sums = self._sums_by_position(where.reshape(-1), values)
        source = self._source(named, x, np.arange(named.size))
        added = self._take_or_zero(sums, np.where(source < 0, named.size, source))
        return self.xp.reshape(self._flat(x) + added, tuple(x.shape))

    def _sums_by_position(self, where: Any, values: Any) -> tuple[Any, Any]:
        """The different positions and the sum of the values of each: neighbours are added until each has one."""
        order = np.argsort(where, kind="stable")
        where, values = where[order], self._take(values, order)
        while True:
            first = np.concatenate([[True], where[1:] != where[:-1]])
            if first.all():
                return where, values
            place = np.arange(where.size)
            rank = place - np.maximum.accumulate(np.where(first, place, 0))
            kept = place[rank % 2 == 0]
            has_partner = np.append(~first[1:], False)[kept]
            partner = np.where(has_partner, kept + 1, where.size)
            values = self._take(values, kept) + self._take_or_zero(values, partner)
            where = where[kept]

    def _source(self, where: Any, x: Any, numbers: Any) -> Any:
        """For each position of `x` which of the values belongs there, or -1."""
        source = np.full(int(np.prod(x.shape, dtype=np.int64)), -1)
        source[where.reshape(-1)] = numbers
        return source

    def _flat(self, x: Any) -> Any:
        return self.xp.reshape(x, (-1,))

    def _take(self, flat: Any, numbers: Any) -> Any:
        return self.backend.namespace.take(flat, self.backend.constant(numbers, flat), axis=0)

    def _take_or_zero(self, flat: Any, numbers: Any) -> Any:
        """`flat[numbers]`, where the number after the last one stands for zero."""
        return self._take(self.xp.concat([flat, self.xp.zeros((1,), flat.dtype, flat)], 0), numbers)

    def _fitting(self, value: Any, x: Any, shape: tuple[int, ...]) -> Any:
        """`value` in the dtype of `x` and in `shape`, as an assignment converts it."""
        if not isinstance(value, self.backend.array_types):
            return self.xp.full(shape, value, x.dtype, x)
        value = self.xp.astype(value, x.dtype)
        extra = len(value.shape) - len(shape)
        if extra > 0 and all(n == 1 for n in value.shape[:extra]):
            value = self.xp.reshape(value, tuple(value.shape[extra:]))
        return self.xp.broadcast_to(value, shape)
