"""From a program to something that runs."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...targets import target_for
from ...targets.protocol import ScheduleTarget
from ..deferral import signals_later
from ..host import HOST, memory_of
from ..program import Program
from .inventory import inventory, inventory_of

#: Programs are for arrays in the memory of the host.
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


def host_arrays(raws: list[Any], memory: Any) -> list[Any]:
    """NumPy's arrays over the memory of arrays of a library's; those of NumPy's stay."""
    return [memory.host_array(raw) if isinstance(raw, memory.array_types) else raw for raw in raws]


def runner(program: Program, library: Any = None, device: str = "numpy") -> Callable[[list[Any]], list[Any]]:
    """`run(inputs)`, which gives the outputs of a program; its constants are not among the inputs.

    Inputs are raw arrays of the device or NumPy's, which are read where they are if they are contiguous.
    """
    constants = list(program.constants.values())
    if library is not None:
        on_library = BuiltOnLibrary(program, library, device)
        return lambda inputs: on_library.run([*inputs, *constants])[0]
    built, memory = Built(program, PROCESSOR), memory_of(device)

    def run(inputs: list[Any]) -> list[Any]:
        arrays = [np.require(array, requirements=("C", "A")) for array in host_arrays(inputs, memory)]
        outputs = [memory.host_empty(value.shape, value.dtype) for value in program.outputs]
        built.execute([*arrays, *constants], host_arrays(outputs, memory))
        return outputs

    return run
