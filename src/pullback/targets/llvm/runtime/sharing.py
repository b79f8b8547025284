"""Which calls of a schedule threads share, in how many parts, and where they must wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...kernels import Access, Buffer, Call, Location, Loop, Step, Write
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
    """A call with its native function, its parts of `chunk` units each, and whether a barrier comes before it."""

    call: Call
    native: Native
    parts: int
    chunk: int
    barrier: bool = False


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


def shared(spans: list[list[Call]], threads: int, offset: int) -> tuple[list[list[Shared]], int]:
    """Native calls for that many threads, with those that combine partial results, and the bytes those results need.

    `offset` is where in the arena partial results may be: all calls use the same place, one after the other.
    """
    natives = iter(functions_for([call.kernel for calls in spans for call in calls]))
    needed = 0
    planned: list[list[Shared]] = []
    combining: list[list[list[Call]]] = []  # after each call of each span
    for calls in spans:
        planned.append([])
        combining.append([])
        for call in calls:
            native = next(natives)
            parts, chunk = parts_of(native, threads)
            after: list[Call] = []
            if parts > 1 and native.emitted.partials:
                call, after, used = _with_partials(call, native, parts, offset)
                needed = max(needed, used)
            planned[-1].append(Shared(call, native, parts, chunk))
            combining[-1].append(after)
    # All at once: what is not known yet is compiled together.
    natives = iter(functions_for([call.kernel for span in combining for after in span for call in after]))
    result: list[list[Shared]] = []
    for ones, afters in zip(planned, combining):
        result.append([])
        for one, after in zip(ones, afters):
            result[-1].append(one)
            for call in after:
                native = next(natives)
                parts, chunk = (1, native.emitted.units) if native.emitted.partials else parts_of(native, threads)
                result[-1].append(Shared(call, native, parts, chunk))
        _place_barriers(result[-1])
    return result, needed


def _with_partials(call: Call, native: Native, parts: int, offset: int) -> tuple[Call, list[Call], int]:
    """A call that writes partial results to the arena, those that combine them, and the bytes between."""
    arrays = [*call.reads, *call.writes]
    combining: list[Call] = []
    used = 0
    for number, nbytes, operation in native.emitted.partials:
        place = Buffer("temporary", -1, parts * nbytes)
        place.offset = offset + used
        used += -(-place.nbytes // 64) * 64
        kernel = combination(call.kernel, number, nbytes, operation, parts)
        combining.append(Call(kernel, [Location(place)], [arrays[number]], call.site))
        arrays[number] = Location(place)
    split = len(call.reads)
    return Call(call.kernel, arrays[:split], arrays[split:], call.site), combining, used


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


def _place_barriers(calls: list[Shared]) -> None:
    """A barrier before each call that meets the memory of one since the last barrier, run by other threads."""
    since: list[Shared] = []
    for one in calls:
        if any((one.parts > 1 or other.parts > 1) and _conflict(one.call, other.call) for other in since):
            one.barrier = True
            since.clear()
        since.append(one)


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
