"""From a program to something that runs."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from ...backends.heap import keep_freed_memory
from ...targets import target_for
from ...targets.protocol import ScheduleTarget
from ..deferral import signals_later
from ..host import HOST, memory_of, target_of
from ..program import Program
from .inventory import inventory, inventory_of

#: Programs are for arrays in the memory of the host.
PROCESSOR: Any = target_for("numpy")
_LARGE_OUTPUTS = 1 << 17  # bytes from which on every call would pay for new pages


class Built:
    """A program that was optimised, lowered and compiled."""

    def __init__(self, program: Program, target: ScheduleTarget) -> None:
        from ..lowering.lower import lower
        from ..passes import optimize
        from ..passes.complex_parts import with_complex_parts
        from ..passes.rematerialization import rematerialized, saved_bytes

        given = len(program.inputs)
        optimized = optimize(with_complex_parts(program))
        self.program = rematerialized(optimized)
        schedule = lower(self.program)
        with signals_later():
            self.executable: Any = target.compile(schedule, HOST)
        self.kernels = inventory(schedule.calls)
        self.folded = len(schedule.inputs) - given  # constants that folding added, which have memory of their own
        self.memory = {
            "inputs": sum(value.nbytes for value in program.inputs),
            "outputs": sum(value.nbytes for value in program.outputs),
            "arena": self.executable.arena_bytes,
            "saved": saved_bytes(self.program, optimized),
        }
        if self.memory["outputs"] >= _LARGE_OUTPUTS:
            keep_freed_memory()

    def execute(self, inputs: list[Any], outputs: list[Any]) -> None:
        addresses = [array.ctypes.data for array in inputs]
        self.executable.run([*addresses, *[0] * self.folded], [array.ctypes.data for array in outputs])


class BuiltOnLibrary:
    """A program for the devices of a library, on its arrays: see `xla/` and `cuda/`."""

    def __init__(self, executable: Any, kernels: Any, arena: dict[str, int]) -> None:
        self.program: Program = executable.program
        self.executable = executable
        self.run = executable.run
        self.interpret = executable.interpret
        self.kernels = kernels
        self.memory = {
            "inputs": sum(value.nbytes for value in self.program.inputs),
            "outputs": sum(value.nbytes for value in self.program.outputs),
            **arena,
        }


def built_on_library(
    program: Program, library: Any, device: str, bound: list[bool] | None = None, is_guarded: bool = False
) -> BuiltOnLibrary:
    """A program on a library's arrays. `bound` says of each input whether calls give the same array again and again;
    `is_guarded`, whether its last output says that all is well.
    """
    if target_of(device) == "cuda":
        from ..cuda.executable import CudaExecutable

        on_gpu = CudaExecutable(program, library, device, bound or [False] * len(program.inputs), is_guarded)
        memory = {"arena": on_gpu.arena_bytes, "saved": on_gpu.saved_bytes}
        return BuiltOnLibrary(on_gpu, inventory(on_gpu.calls, "torch"), memory)
    from ..xla.executable import XlaExecutable

    on_device = XlaExecutable(program, library, device)
    return BuiltOnLibrary(on_device, inventory_of(on_device.program), {"saved": on_device.saved_bytes})


def host_arrays(raws: list[Any], memory: Any) -> list[Any]:
    """NumPy's arrays over the memory of arrays of a library's; those of NumPy's stay."""
    return [memory.host_array(raw) if isinstance(raw, memory.array_types) else raw for raw in raws]


def runner(program: Program, library: Any = None, device: str = "numpy") -> Callable[[list[Any]], list[Any]]:
    """`run(inputs)`, which gives the outputs of a program; its constants are not among the inputs.

    Inputs are raw arrays of the device or NumPy's, which are read where they are if they are contiguous.
    """
    constants = list(program.constants.values())
    if library is not None:
        on_library = built_on_library(program, library, device)
        return lambda inputs: on_library.run([*inputs, *constants])[0]
    built, memory = Built(program, PROCESSOR), memory_of(device)

    def run(inputs: list[Any]) -> list[Any]:
        arrays = [np.require(array, requirements=("C", "A")) for array in host_arrays(inputs, memory)]
        outputs = [memory.host_empty(value.shape, value.dtype) for value in program.outputs]
        built.execute([*arrays, *constants], host_arrays(outputs, memory))
        return outputs

    return run
