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


def halting(program: Program) -> tuple[Program, list[Value]]:
    """A guarded program with two more inputs, which it updates: whether a run has failed, and how many were fine.

    Its last output is how many were fine with this one.
    """
    finite = program.outputs[-1]
    halted, goes_on, fine, failed = (Value((), np.bool_) for _ in range(4))
    before, one_more, after = (Value((), np.int64) for _ in range(3))
    instructions: list[Instruction] = [Instruction("logical_not", (halted,), (goes_on,))]
    for one in program.instructions:
        if finite in one.values() and one.op == "where" and one.args[0] is finite:
            one = one.with_args((fine, *one.args[1:]))
        instructions.append(one)
        if finite in one.results:
            instructions.append(Instruction("logical_and", (finite, goes_on), (fine,)))
            instructions.append(Instruction("logical_not", (fine,), (failed,)))
            instructions.append(Instruction("astype", (fine, np.dtype(np.int64)), (one_more,)))
            instructions.append(Instruction("add", (before, one_more), (after,)))
    return Program(
        [*program.inputs, halted, before],
        instructions,
        [*program.outputs[:-1], after],
        [*program.updates, (halted, failed), (before, after)],
        program.constants,
    ), [halted, before]


class Flag:
    """Whether a run was fine. As a truth value it waits for the device."""

    __slots__ = ("_event", "_flags", "_number")

    def __init__(self, flags: Flags, number: int, event: Any) -> None:
        self._flags = flags
        self._number = number
        self._event = event

    def is_known(self) -> bool:
        """Whether it can be read without waiting."""
        return self._event is None or bool(self._event.query())

    def __bool__(self) -> bool:
        if self._event is not None:
            self._event.synchronize()
        return self._flags.fine() >= self._number


class Flags:
    """How many runs were fine: each writes that to memory of the host's. After one that was not, none is."""

    def __init__(self, device: Any) -> None:
        self.place = torch.zeros((), dtype=torch.int64, pin_memory=device.type == "cuda")
        self._seen = self.place.numpy()
        self._launched = 0

    def fine(self) -> int:
        """How many were fine so far, if the device has got that far."""
        return int(self._seen)

    def launched(self, event: Any) -> Flag:
        """The flag of one more run, which has ended when an event, of which it may be told later, has come."""
        self._launched += 1
        return Flag(self, self._launched, event)

    def reset(self) -> None:
        """Count from what there is, when all runs have ended."""
        self._launched = self.fine()
