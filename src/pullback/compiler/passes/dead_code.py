"""Leave out what nothing needs."""

from __future__ import annotations

from ..program import Instruction, Program, Value


def without_dead_code(program: Program) -> Program:
    """`program` without the instructions whose results are not needed for what it is run for."""
    needed: set[Value] = set(program.wanted())
    kept: list[Instruction] = []
    for instruction in reversed(program.instructions):
        if any(value in needed for value in instruction.results):
            kept.append(instruction)
            needed.update(instruction.values())
    if len(kept) == len(program.instructions):
        return program
    kept.reverse()
    return program.replaced(kept, {})
