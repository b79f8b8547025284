"""Which calls of a schedule are launched together: neighbours, loops of one family, none of which waits for another."""

from __future__ import annotations

from typing import Hashable, NamedTuple, Sequence

from ..kernels import Access, Buffer, Call, Location, Loop
from .loops.many import family, is_of_totals
from .memory import torch_dtype

Numbered = tuple[int, Call]


def grouped(calls: Sequence[Numbered]) -> list[list[Numbered]]:
    """Calls, with their numbers, in the order in which they are launched, and those that are one launch together.

    Totals wait until somebody needs them, so that more of them come together: those of all gradients, say.
    """
    found: list[list[Numbered]] = []
    neighbours, totals = _Window(), _Window()
    for numbered in calls:
        call = numbered[1]
        kind = family(call.kernel) if isinstance(call.kernel, Loop) else None
        if not totals.takes(call):
            found += neighbours.emptied() + totals.emptied()
        if kind is None or is_of_totals(call.kernel) or not neighbours.takes(call):
            found += neighbours.emptied()
        if kind is None:
            found.append([numbered])
        else:
            (totals if is_of_totals(call.kernel) else neighbours).add(kind, numbered)
    return found + neighbours.emptied() + totals.emptied()


class _Window:
    """Calls of which none reads or writes what another one writes."""

    def __init__(self) -> None:
        self._families: dict[Hashable, list[Numbered]] = {}
        self._read, self._written = _Memory(), _Memory()

    def takes(self, call: Call) -> bool:
        """Whether a call may run at the same time as those that are here."""
        reads, writes = _arrays(call)
        written = any([self._read.has(one) or self._written.has(one) for one in writes])
        return not (written or any([self._written.has(one) for one in reads]))

    def add(self, kind: Hashable, numbered: Numbered) -> None:
        reads, writes = _arrays(numbered[1])
        self._families.setdefault(kind, []).append(numbered)
        self._read.add(reads)
        self._written.add(writes)

    def emptied(self) -> list[list[Numbered]]:
        """The calls that are here, by their families; then there are none."""
        found = list(self._families.values())
        if found:
            self._families, self._read, self._written = {}, _Memory(), _Memory()
        return found


class _Array(NamedTuple):
    """Elements of a buffer: runs of `length` bytes, the first from `offset` on, each `step` after the one before.

    Without a step they are anywhere.
    """

    buffer: Buffer
    offset: int
    length: int
    step: int

    def is_apart(self, other: _Array) -> bool:
        """Whether the runs of two arrays of one buffer lie between each other."""
        if not self.step or self.step != other.step:
            return False
        behind = (other.offset - self.offset) % self.step
        return self.length <= behind <= self.step - other.length


def _arrays(call: Call) -> tuple[list[_Array], list[_Array]]:
    """What a call reads and writes."""
    kernel = call.kernel
    if not isinstance(kernel, Loop):
        reads, writes = ([_Array(one.buffer, 0, 0, 0) for one in locations] for locations in (call.reads, call.writes))
        return reads, writes
    accesses = (*kernel.reads, *[write.access for write in kernel.writes])
    found = [_array(kernel, *one) for one in zip((*call.reads, *call.writes), accesses)]
    return found[: len(call.reads)], found[len(call.reads) :]


def _array(loop: Loop, location: Location, access: Access) -> _Array:
    size = torch_dtype(access.dtype).itemsize
    step, *others = access.strides[-2:] if len(loop.outer) == len(loop.inner) == 1 else (0,)
    length = loop.inner[-1] if loop.inner else 1
    if others != [1] or step < length:
        step = 0
    return _Array(location.buffer, location.offset, length * size, step * size)


class _Memory:
    """Arrays. Temporaries are parts of one arena, where those of which one dies may lie on each other."""

    def __init__(self) -> None:
        self._buffers: dict[Buffer, list[_Array]] = {}
        self._extents: dict[Buffer, tuple[int, int]] = {}  # of temporaries

    def add(self, arrays: Sequence[_Array]) -> None:
        for array in arrays:
            buffer = array.buffer
            self._buffers.setdefault(buffer, []).append(array)
            if buffer.kind == "temporary":
                self._extents[buffer] = buffer.offset, buffer.offset + buffer.nbytes

    def has(self, array: _Array) -> bool:
        """Whether an array has bytes in common with one of these."""
        buffer = array.buffer
        if any([not array.is_apart(other) for other in self._buffers.get(buffer, ())]):
            return True
        if buffer.kind != "temporary":
            return False
        start, end = buffer.offset, buffer.offset + buffer.nbytes
        others = [extent for other, extent in self._extents.items() if other is not buffer]
        return any([start < stop and begin < end for begin, stop in others])
