"""From a program to something that runs."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...targets import target_for
from ...targets.protocol import ScheduleTarget
from ..deferral import signals_later
from ..host import HOST
from ..program import Program
from .inventory import inventory, inventory_of

#: Programs are for arrays of NumPy's.
PROCESSOR: Any = target_for("numpy")


class Built:
    """A program that was optimised, lowered and compiled."""

    def __init__(self, program: Program, target: ScheduleTarget) -> None:
        from ..lowering.lower import lower
        from ..passes import optimize

        given = len(program.inputs)
        self.program = optimize(program)
        schedule = lower(self.program)
        with signals_later():
            self.executable: Any = target.compile(schedule, HOST)
        self.kernels = inventory(schedule.calls)
        self.folded = len(schedule.inputs) - given  # constants that folding added, which have memory of their own
        self.memory = {
            "inputs": sum(value.nbytes for value in program.inputs),
            "outputs": sum(value.nbytes for value in program.outputs),
            "arena": self.executable.arena_bytes,
        }

    def execute(self, inputs: list[Any], outputs: list[Any]) -> None:
        addresses = [array.ctypes.data for array in inputs]
        self.executable.run([*addresses, *[0] * self.folded], [array.ctypes.data for array in outputs])


class BuiltOnLibrary:
    """A program for the devices of a library that compiles functions itself: see `xla/`."""

    def __init__(self, program: Program, library: Any, device: str) -> None:
        from ..xla.executable import XlaExecutable

        self.program = program
        self.executable: Any = XlaExecutable(program, library, device)
        self.run = self.executable.run
        self.interpret = self.executable.interpret
        self.kernels = inventory_of(program)
        self.memory = {
            "inputs": sum(value.nbytes for value in program.inputs),
            "outputs": sum(value.nbytes for value in program.outputs),
        }


def runner(program: Program, library: Any = None, device: str = "numpy") -> Callable[[list[Any]], list[Any]]:
    """`run(inputs)`, which gives the outputs of a program; its constants are not among the inputs."""
    constants = list(program.constants.values())
    if library is not None:
        on_library = BuiltOnLibrary(program, library, device)
        return lambda inputs: on_library.run([*inputs, *constants])[0]
    built = Built(program, PROCESSOR)

    def run(inputs: list[Any]) -> list[Any]:
        outputs = [np.empty(value.shape, value.dtype) for value in program.outputs]
        built.execute([*inputs, *constants], outputs)
        return outputs

    return run
