"""From a program to something that runs."""

from __future__ import annotations

from typing import Any, Callable

from ...targets import target_for
from ...targets.protocol import Target
from ..deferral import signals_later
from ..host import HOST
from ..program import Program
from .inventory import inventory

#: Programs are for arrays of NumPy's.
PROCESSOR: Any = target_for("numpy")

#: `execute(inputs, outputs)`: read those arrays, write these.
Execute = Callable[[list[Any], list[Any]], None]


class Built:
    """A program that was optimised, lowered and compiled."""

    def __init__(self, program: Program, target: Target) -> None:
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


def runner(program: Program) -> Execute:
    """`execute(inputs, outputs)` of a program; its constants are not among the inputs."""
    built = Built(program, PROCESSOR)
    constants = [array for value, array in program.constants.items()]
    return lambda inputs, outputs: built.execute([*inputs, *constants], outputs)
