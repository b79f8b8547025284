"""The memory that a program needs, planned without compiling it."""

from __future__ import annotations

from ..host import target_of
from ..lowering.lower import lower
from ..passes import optimize
from ..passes.complex_parts import with_complex_parts
from ..passes.rematerialization import rematerialized, saved_bytes
from ..program import Program


def planned(program: Program, device: str) -> dict[str, int]:
    """What `memory` says of a compiled program. No device is touched.

    On JAX's devices XLA decides; what a processor would need stands for it.
    """
    if target_of(device) == "cuda":
        from ...targets.cuda.target import TARGET
        from ..cuda.preparation import FLOPS_PER_BYTE, prepared

        optimized = prepared(program)
        made = rematerialized(optimized, flops_per_byte=FLOPS_PER_BYTE)
        schedule = lower(made, TARGET.abilities)
    else:
        optimized = optimize(with_complex_parts(program))
        made = rematerialized(optimized)
        schedule = lower(made)
    return {
        "inputs": sum(value.nbytes for value in program.inputs),
        "outputs": sum(value.nbytes for value in program.outputs),
        "arena": schedule.arena_bytes,
        "saved": saved_bytes(made, optimized),
    }
