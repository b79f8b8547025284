"""Which memory each root gets: the outputs' own, an input's that it is the new value of, or a place in the arena.

Roots that live at different times share places. A loop writes over what it reads for the last time where it reads and
writes each element at the same place.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Any

from ...targets.custom_kernels import written_over
from ...targets.kernels import Access, Buffer, Host, Loop
from .nodes import memory_of
from .views import Root

ALIGNMENT = 64


@dataclass
class Planned:
    """A call whose arrays are still roots: (root, elements into it)."""

    kernel: Any
    reads: list[tuple[Root, int]]
    writes: list[tuple[Root, int]]
    site: str


def settle_updates(calls: list[Planned], targets: dict[Root, Root]) -> list[tuple[Root, Root]]:
    """Let new values of inputs (`targets`: the value's root and the input's) be made in the inputs' own memory.

    That goes where nobody reads the input's old value from then on. Returns the pairs that have to be copied.
    """
    last_read: dict[Root, int] = {}
    writers: dict[Root, list[int]] = {}
    for number, call in enumerate(calls):
        for root, _ in call.reads:
            last_read[root] = number
        for root, _ in call.writes:
            writers.setdefault(root, []).append(number)
    left: list[tuple[Root, Root]] = []
    for root, target in targets.items():
        chain = _written_in_turn(calls, root, target, writers, last_read)
        for link in chain:
            link.buffer = target.buffer
        if not chain:
            left.append((root, target))
    return left


def _written_in_turn(
    calls: list[Planned], root: Root, target: Root, writers: dict[Root, list[int]], last_read: dict[Root, int]
) -> list[Root]:
    """`root` and those that it was made of by writing over them, as many as may lie in `target`."""
    chain, fitting = [root], 0
    while len(at := writers.get(chain[-1], [])) == 1:
        call, last = calls[at[0]], last_read.get(target, -1)
        if last < at[0] or (last == at[0] and _same_places(call, target, chain[-1])):
            fitting = len(chain)
        pair = written_over(call.kernel)
        before = None if pair is None else call.reads[pair[0]][0]
        if pair is None or before is None or not _is_pair(call, pair, before, chain[-1]):
            break
        if before.buffer is not None or before.update >= 0 or last_read[before] != at[0]:
            break  # somebody else wants it as it is
        chain.append(before)
    return chain[:fitting]


def _same_places(call: Planned, old: Root, new: Root) -> bool:
    """Whether a call reads each element of `old` only where it writes the same element of `new`."""
    if type(call.kernel) is not Loop:
        pair = written_over(call.kernel)
        return pair is not None and _is_pair(call, pair, old, new)
    write, offset = _access_of(call, new)
    if write is None or offset or not _moves_once(call.kernel, write):
        return False
    accesses = [(a, o) for a, (root, o) in zip(call.kernel.reads, call.reads) if root is old]
    return all(access == write and offset == 0 for access, offset in accesses)


def _moves_once(loop: Loop, access: Access) -> bool:
    """Whether a loop comes to each element only once, and computes it then."""
    sizes = (*loop.outer, *loop.inner)
    return all(s != 0 or n == 1 for n, s in zip(sizes, access.strides))


def _access_of(call: Planned, root: Root) -> tuple[Access | None, int]:
    for write, (written, offset) in zip(call.kernel.writes, call.writes):
        if written is root:
            return write.access, offset
    return None, 0


def plan(calls: list[Planned], makes_memory: frozenset[str] = frozenset()) -> int:
    """Give every root that has no memory yet a place in the arena; returns the arena's size in bytes.

    What the operations in `makes_memory` make lies in memory that a library has for itself.
    """
    last: dict[Root, int] = {}
    for number, call in enumerate(calls):
        for root, _ in call.reads:
            last[root] = number
        for root, _ in call.writes:
            last[root] = number
    dying: list[list[Root]] = [[] for _ in calls]
    for root, number in last.items():
        if root.buffer is None:
            dying[number].append(root)
    arena = _Arena()
    taken: set[Root] = set()  # roots whose memory another one took over
    for number, call in enumerate(calls):
        for root, _ in call.reads:
            if root.buffer is None:  # nobody writes what has no elements
                memory_of(root, "temporary", 0).offset = 0
        for root, _ in call.writes:
            if root.buffer is None and type(call.kernel) is Host and call.kernel.op in makes_memory:
                memory_of(root, "library", 0)
            elif root.buffer is None:
                _give(arena, call, root, number, last, taken)
        for root in dying[number]:
            if root not in taken and root.buffer.kind == "temporary":
                arena.release(root.buffer.offset, root.buffer.nbytes)
    return arena.size


def _give(arena: _Arena, call: Planned, root: Root, number: int, last: dict[Root, int], taken: set[Root]) -> None:
    old = None
    if type(call.kernel) is Loop:
        old = _taken_over(call, root, number, last, taken)
    else:
        old = _written_over(call, root, number, last, taken)
    if old is not None:
        taken.add(old)
        root.buffer = old.buffer
        return
    memory_of(root, "temporary", 0).offset = arena.take(root.nbytes)


def _taken_over(call: Planned, root: Root, number: int, last: dict[Root, int], taken: set[Root]) -> Root | None:
    """A root whose memory `root` can have because this loop reads it, at the same places, for the last time."""
    access, offset = _access_of(call, root)
    if access is None or offset or not _moves_once(call.kernel, access):
        return None
    for read, (old, start) in zip(call.kernel.reads, call.reads):
        if read != access or start or old in taken or last[old] != number or old.size != root.size:
            continue
        buffer = old.buffer
        if buffer.kind == "temporary" and _same_places(call, old, root) and all(w is not old for w, _ in call.writes):
            return old
    return None


def _written_over(call: Planned, root: Root, number: int, last: dict[Root, int], taken: set[Root]) -> Root | None:
    """A root whose memory `root` can have because this kernel may write over it, and reads it for the last time."""
    pair = written_over(call.kernel)
    if pair is None:
        return None
    old = call.reads[pair[0]][0]
    if not _is_pair(call, pair, old, root) or last[old] != number or old in taken:
        return None
    return old if old.buffer.kind == "temporary" and (old.size, old.dtype) == (root.size, root.dtype) else None


def _is_pair(call: Planned, pair: tuple[int, int], old: Root, new: Root) -> bool:
    """Whether of what a call reads only number pair[0] is of `old`, of what it writes pair[1] of `new`, both whole."""
    read, write = pair
    return (
        [number for number, (root, _) in enumerate(call.reads) if root is old] == [read]
        and [number for number, (root, _) in enumerate(call.writes) if root is new] == [write]
        and call.reads[read][1] == call.writes[write][1] == 0
        and (old.size, old.dtype) == (new.size, new.dtype)
    )


class _Arena:
    """Free blocks of memory, and the size that all have needed so far."""

    def __init__(self) -> None:
        self.size = 0
        self.starts: list[int] = []
        self.lengths: dict[int, int] = {}

    def take(self, nbytes: int) -> int:
        """The place for so many bytes: the smallest free block in which they fit."""
        nbytes = _rounded(nbytes)
        best = -1
        for start in self.starts:
            length = self.lengths[start]
            if length >= nbytes and (best < 0 or length < self.lengths[best]):
                best = start
        if best < 0:
            # What is free at the end grows.
            if self.starts and self.starts[-1] + self.lengths[self.starts[-1]] == self.size:
                best = self.starts[-1]
                self.size = best + nbytes
                self.lengths[best] = nbytes
            else:
                best = self.size
                self.size += nbytes
                return best
        length = self.lengths.pop(best)
        self.starts.pop(bisect_left(self.starts, best))
        if length > nbytes:
            insort(self.starts, best + nbytes)
            self.lengths[best + nbytes] = length - nbytes
        return best

    def release(self, start: int, nbytes: int) -> None:
        """Give a block back, joined with free neighbours."""
        nbytes = _rounded(nbytes)
        if not nbytes:
            return
        at = bisect_left(self.starts, start)
        if at < len(self.starts) and self.starts[at] == start + nbytes:
            nbytes += self.lengths.pop(self.starts.pop(at))
        if at and self.starts[at - 1] + self.lengths[self.starts[at - 1]] == start:
            self.lengths[self.starts[at - 1]] += nbytes
        else:
            self.starts.insert(at, start)
            self.lengths[start] = nbytes


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def buffer_of(root: Root) -> Buffer:
    """The memory of a root that has been given some."""
    buffer: Buffer = root.buffer
    return buffer
