"""Compute at compile time what depends on constants alone.

Results become constants of the program, at the end of its inputs. Arrays of more than a mebibyte are left to be
computed, and so are arrays that take no memory because they are counted or repeated numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host import HOST
from ..interpreter import results_of
from ..iteration import ITERATE
from ..program import Instruction, Program, Value
from .operations import is_number

LARGEST = 1 << 20  # bytes

#: Kernels whose results are cheaper made anew than read: they are computed only for what is computed of them.
_CHEAP = frozenset({"arange", "full", "broadcast_to"})


def with_folded_constants(program: Program) -> Program:
    """`program` with the results of instructions on constants as constants."""
    known: dict[Value, Any] = {value: array for value, array in program.constants.items() if value.nbytes <= LARGEST}
    new: dict[Value, Any] = {}
    kept: list[Instruction] = []
    for instruction in program.instructions:
        arrays = _computed(instruction, known)
        if arrays is not None:
            known.update(zip(instruction.results, arrays))
        if arrays is None or instruction.op in _CHEAP:
            kept.append(instruction)
        else:
            new.update(zip(instruction.results, arrays))
    if not new:
        return program
    wanted = {value for instruction in kept for value in instruction.values()} | set(program.wanted())
    new = {value: array for value, array in new.items() if value in wanted}
    return Program([*program.inputs, *new], kept, program.outputs, program.updates, {**program.constants, **new})


def _computed(instruction: Instruction, known: dict[Value, Any]) -> list[Any] | None:
    """What an instruction makes, if that is small and depends on constants alone."""
    op = instruction.op
    if op == "full":
        shape, number, dtype, _ = instruction.args
        return [np.broadcast_to(np.asarray(number).astype(dtype), shape)] if is_number(number) else None
    if op == ITERATE or sum(value.nbytes for value in instruction.results) > LARGEST:
        return None
    values = list(instruction.values())
    if (not values and op != "arange") or any(value not in known for value in values):
        return None
    try:
        arrays = results_of(instruction, known, HOST)
    except (ArithmeticError, ValueError, TypeError, IndexError):  # it will say so when it is run
        return None
    return arrays if op in _CHEAP else [np.array(array) for array in arrays]
