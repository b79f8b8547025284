"""A program that changes nothing once one of its runs has failed, until somebody has heard of it.

The last output of a guarded program says whether all is finite. Nobody waits for it: runs are launched one after the
other, and each keeps its inputs as they were if it, or one before it, has failed. So whoever hears of a failure later
finds everything as it was when the run began that failed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..program import Instruction, Program, Value

_SLOTS = 64  # flags that are on their way at most


def halting(program: Program) -> tuple[Program, Value]:
    """A guarded program with one more input, which it updates: whether a run has failed."""
    finite = program.outputs[-1]
    halted, goes_on, fine, failed = (Value((), np.bool_) for _ in range(4))
    instructions: list[Instruction] = [Instruction("logical_not", (halted,), (goes_on,))]
    for one in program.instructions:
        if finite in one.values() and one.op == "where" and one.args[0] is finite:
            one = one.with_args((fine, *one.args[1:]))
        instructions.append(one)
        if finite in one.results:
            instructions.append(Instruction("logical_and", (finite, goes_on), (fine,)))
            instructions.append(Instruction("logical_not", (fine,), (failed,)))
    return Program(
        [*program.inputs, halted],
        instructions,
        [*program.outputs[:-1], fine],
        [*program.updates, (halted, failed)],
        program.constants,
    ), halted


class Flag:
    """Whether a run was fine. As a truth value it waits for the device."""

    __slots__ = ("_event", "_place")

    def __init__(self, place: Any, event: Any) -> None:
        self._place = place
        self._event = event

    def is_known(self) -> bool:
        """Whether it can be read without waiting."""
        return self._event is None or bool(self._event.query())

    def __bool__(self) -> bool:
        if self._event is not None:
            self._event.synchronize()
        return bool(self._place[()])


class Flags:
    """Sends flags to the host. One is forgotten when as many others have been sent as there is room for."""

    def __init__(self, device: Any) -> None:
        self._device = device
        is_gpu = device.type == "cuda"
        places = torch.zeros(_SLOTS, dtype=torch.bool, pin_memory=is_gpu)
        self._places = list(places)
        self._seen = places.numpy()
        self._events = [torch.cuda.Event() if is_gpu else None for _ in range(_SLOTS)]
        self._next = 0

    def send(self, flag: Any) -> Flag:
        """Start to copy a flag from the device; what was launched before it comes first."""
        slot = self._next
        self._next = (slot + 1) % _SLOTS
        self._places[slot].copy_(flag, non_blocking=True)
        event = self._events[slot]
        if event is not None:
            event.record(torch.cuda.current_stream(self._device))
        return Flag(self._seen[slot : slot + 1].reshape(()), event)
