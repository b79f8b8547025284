"""Which calls of a schedule threads share, in how many parts, and where they must wait for each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator

from ...kernels import Access, Buffer, Call, Location, Loop, Repeat, Step, Write
from ...repeats import first_calls, step_calls
from ..code import ITEMSIZE
from .natives import Native, functions_for

#: Nanoseconds of work below which a part is not worth a thread: some times what a barrier and cold caches cost.
PART_COST = 8000.0
#: Nanoseconds for reading a byte of partial results: what decides whether they are worth having.
COMBINING_COST = 0.1
#: Parts of a reduction at most.
MOST_PARTIALS = 8


@dataclass
class Shared:
    """A call with its native function, its parts of `chunk` units each, and whether a barrier comes before it.

    `moves` are the bytes that its arrays move by after a step of each loop around it, the outermost first.
    """

    call: Call
    native: Native
    parts: int
    chunk: int
    barrier: bool = False
    moves: tuple[tuple[int, ...], ...] = ()

    @property
    def cost(self) -> float:
        return self.native.emitted.cost


@dataclass
class SharedLoop:
    """A loop: what it does at every step, whether one thread does it alone, and whether a barrier comes before it."""

    call: Call
    body: list[Shared | SharedLoop] = field(default_factory=list)
    barrier: bool = False

    @property
    def steps(self) -> int:
        return self.call.kernel.steps

    @property
    def parts(self) -> int:
        return max([one.parts for one in self.body], default=1)

    @property
    def cost(self) -> float:
        return self.steps * sum([one.cost for one in self.body])


@dataclass
class _Moving:
    """A call, and the bytes that its arrays move by after a step of each loop around it."""

    call: Call
    moves: tuple[tuple[int, ...], ...] = ()


@dataclass
class _Loop:
    call: Call
    body: list[_Moving | _Loop]


def _unfolded(call: Call, ahead: list[Call]) -> list[_Moving | _Loop]:
    """A call as it is in the first step of the loops around it; `ahead` is it one step later in each of these."""
    if not isinstance(call.kernel, Repeat):
        moves = [
            tuple([y.offset - x.offset for x, y in zip((*call.reads, *call.writes), (*next.reads, *next.writes))])
            for next in ahead
        ]
        return [_Moving(call, tuple(moves))]
    before = [_unfolded(one, list(later)) for one, *later in zip(first_calls(call), *map(first_calls, ahead))]
    steps = [step_calls(call, 0), *[step_calls(next, 0) for next in ahead], step_calls(call, 1)]
    body = [_unfolded(one, list(later)) for one, *later in zip(*steps)]
    return [*[one for ones in before for one in ones], _Loop(call, [one for ones in body for one in ones])]


def _moving(items: list[_Moving | _Loop]) -> Iterator[_Moving]:
    for item in items:
        if isinstance(item, _Loop):
            yield from _moving(item.body)
        else:
            yield item


def every_call(items: list[Shared | SharedLoop]) -> Iterator[Shared]:
    """Calls and those in loops."""
    for item in items:
        if isinstance(item, SharedLoop):
            yield from every_call(item.body)
        else:
            yield item


def parts_of(native: Native, threads: int) -> tuple[int, int]:
    """In how many parts a kernel runs on that many threads, and of how many units each but the last.

    There may be more parts than threads: these take turns.
    """
    emitted = native.emitted
    grains = -(-emitted.units // emitted.grain)
    parts = min(threads, int(emitted.cost // PART_COST), grains)
    if emitted.partials:  # the same on any number of threads, since results depend on it
        most = min(MOST_PARTIALS, int(emitted.cost // PART_COST), grains)
        each = COMBINING_COST * sum(nbytes for _, nbytes, _ in emitted.partials)
        worth = [n for n in range(2, most + 1) if each * n <= emitted.cost * (1 - 1 / n) / 2]
        parts = max(worth, default=1)
    if parts <= 1:
        return 1, max(emitted.units, 1)
    chunk = -(-grains // parts) * emitted.grain
    return -(-emitted.units // chunk), chunk


def shared(spans: list[list[Call]], threads: int, offset: int) -> tuple[list[list[Any]], int]:
    """Native calls for that many threads, with those that combine partial results, and the bytes those results need.

    `offset` is where in the arena partial results may be: all calls use the same place, one after the other.
    """
    trees = [[item for call in calls for item in _unfolded(call, [])] for calls in spans]
    calls = [one for items in trees for one in _moving(items)]
    natives = functions_for([one.call.kernel for one in calls])
    needed = 0
    planned: list[Shared] = []
    combining: list[list[_Moving]] = []  # after each call
    for one, native in zip(calls, natives):
        parts, chunk = parts_of(native, threads)
        after: list[_Moving] = []
        if parts > 1 and native.emitted.partials:
            one, after, used = _with_partials(one, native, parts, offset)
            needed = max(needed, used)
        planned.append(Shared(one.call, native, parts, chunk, moves=one.moves))
        combining.append(after)
    # All at once: what is not known yet is compiled together.
    natives = functions_for([one.call.kernel for after in combining for one in after])
    made, combined = zip(planned, combining), iter(natives)

    def filled(items: list[_Moving | _Loop]) -> list[Shared | SharedLoop]:
        result: list[Shared | SharedLoop] = []
        for item in items:
            if isinstance(item, _Loop):
                result.append(SharedLoop(item.call, filled(item.body)))
                continue
            one, after = next(made)
            result.append(one)
            for extra in after:
                native = next(combined)
                parts, chunk = (1, native.emitted.units) if native.emitted.partials else parts_of(native, threads)
                result.append(Shared(extra.call, native, parts, chunk, moves=extra.moves))
        return result

    results = [filled(items) for items in trees]
    for items in results:
        _place_barriers(items)
    return results, needed


def _with_partials(one: _Moving, native: Native, parts: int, offset: int) -> tuple[_Moving, list[_Moving], int]:
    """A call that writes partial results to the arena, those that combine them, and the bytes between."""
    call = one.call
    arrays = [*call.reads, *call.writes]
    moves = [list(distances) for distances in one.moves]
    combining: list[_Moving] = []
    used = 0
    for number, nbytes, operation in native.emitted.partials:
        place = Buffer("temporary", -1, parts * nbytes)
        place.offset = offset + used
        used += -(-place.nbytes // 64) * 64
        kernel = combination(call.kernel, number, nbytes, operation, parts)
        combined = Call(kernel, [Location(place)], [arrays[number]], call.site)
        combining.append(_Moving(combined, tuple([(0, distances[number]) for distances in moves])))
        arrays[number] = Location(place)
        for distances in moves:
            distances[number] = 0
    split = len(call.reads)
    partial = Call(call.kernel, arrays[:split], arrays[split:], call.site)
    return _Moving(partial, tuple(map(tuple, moves))), combining, used


def combination(kernel: Any, number: int, nbytes: int, operation: str, parts: int) -> Loop:
    """The kernel that reduces the parts' results for array `number` of a kernel to one."""
    if isinstance(kernel, Loop):
        access = kernel.writes[number - len(kernel.reads)].access
        dtype, inner, strides = access.dtype, kernel.inner, access.strides[len(kernel.outer) :]
    else:
        if not hasattr(kernel, "dtype"):
            raise TypeError(f"{type(kernel).__name__} has partial results, but no dtype to combine them in.")
        dtype = kernel.dtype
        inner, strides = (nbytes // ITEMSIZE[dtype],), (1,)
    if nbytes == ITEMSIZE[dtype]:  # one number of each part
        read, write = Access(dtype, (1,)), Access(dtype, (0,))
        steps = (Step("read", (), dtype), Step(f"total_{operation}", (0,), dtype))
        return Loop((), (parts,), (read,), steps, (Write(1, write),))
    if operation != "sum":
        raise TypeError(f"{type(kernel).__name__} has partial results by columns to combine by {operation}, not sum.")
    read = Access(dtype, (nbytes // ITEMSIZE[dtype], *strides))
    steps = (Step("read", (), dtype), Step("column_sum", (0,), dtype))
    return Loop((parts,), inner, (read,), steps, (Write(1, Access(dtype, (0, *strides))),))


# -- barriers ------------------------------------------------------------------------------------


def _place_barriers(calls: list[Shared | SharedLoop]) -> None:
    """A barrier before each call that meets the memory of one since the last barrier, run by other threads.

    One before every step of a loop that threads share keeps it apart from the step before.
    """
    since: list[Shared] = []
    for one in calls:
        own = list(every_call([one]))
        is_shared = one.parts > 1
        if any((is_shared or other.parts > 1) and _conflict(x.call, other.call) for other in since for x in own):
            one.barrier = True
            since.clear()
        since += own
        if isinstance(one, SharedLoop):
            _place_barriers(one.body)
            if is_shared:
                one.body[0].barrier = True


def _conflict(x: Call, y: Call) -> bool:
    """Whether one writes what the other reads or writes."""
    return any(_overlap(written, place) for written in x.writes for place in (*y.reads, *y.writes)) or any(
        _overlap(written, place) for written in y.writes for place in x.reads
    )


def _overlap(written: Location, place: Location) -> bool:
    x, y = written.buffer, place.buffer
    if x is y:
        return True
    if x.kind == "temporary" and y.kind == "temporary":
        return x.offset < y.offset + y.nbytes and y.offset < x.offset + x.nbytes
    return x.kind == "input" and y.kind == "input"  # two inputs may be the same array
