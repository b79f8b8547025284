"""Loops of a schedule, step by step: what their calls read and write, wherever the loop itself is given its arrays."""

from __future__ import annotations

from typing import Iterable, Iterator

from .kernels import Call, Host, Location, Repeat


def first_calls(call: Call) -> list[Call]:
    """The calls of a loop before its first step."""
    arrays, kernel = [*call.reads, *call.writes], call.kernel
    return [Call(copy, [arrays[source]], [arrays[target]], call.site) for copy, source, target in kernel.first]


def step_calls(call: Call, step: int) -> list[Call]:
    """The calls of one step of a loop."""
    kernel: Repeat = call.kernel
    arrays = [
        Location(place.buffer, place.offset + step * stride)
        for place, stride in zip((*call.reads, *call.writes), kernel.strides)
    ]

    def located(location: Location) -> Location:
        buffer = location.buffer
        if buffer.kind == "library":  # in memory that a library gets for itself, at every step anew
            return location
        if buffer.kind == "temporary":
            place, start = arrays[kernel.arena], buffer.offset
        else:
            place, start = arrays[(kernel.inputs if buffer.kind == "input" else kernel.outputs)[buffer.index]], 0
        return Location(place.buffer, place.offset + start + location.offset)

    return [
        Call(one.kernel, [located(x) for x in one.reads], [located(x) for x in one.writes], one.site)
        for one in kernel.schedule.calls
    ]


def expanded(calls: Iterable[Call]) -> Iterator[Call]:
    """Calls with all steps of loops one after the other."""
    for call in calls:
        if not isinstance(call.kernel, Repeat):
            yield call
            continue
        yield from first_calls(call)
        for step in range(call.kernel.steps):
            yield from expanded(step_calls(call, step))


def kernels_within(calls: Iterable[Call], times: int = 1) -> Iterator[tuple[Call, int]]:
    """The calls of a schedule and of the loops in it, and how often each is made; of loops only what is in them."""
    for call in calls:
        if isinstance(call.kernel, Repeat):
            for one in first_calls(call):
                yield one, times
            yield from kernels_within(step_calls(call, 0), times * call.kernel.steps)
        else:
            yield call, times


def is_native(call: Call) -> bool:
    """Whether a call, and all of a loop, has a native form."""
    if isinstance(call.kernel, Repeat):
        return all(is_native(one) for one in (*first_calls(call), *call.kernel.schedule.calls))
    return not isinstance(call.kernel, Host)
