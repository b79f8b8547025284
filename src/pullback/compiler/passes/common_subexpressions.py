"""Compute the same thing once.

Kernels are functions of their arguments, random numbers too (of a key and a position), so instructions of the same
kernel with the same arguments have the same results.

What is expanded of an input (a weight that is stored in fewer bits) is expanded again by each walk over a graph: it
would else be kept, whole, from the forward pass to the backward pass.
"""

from __future__ import annotations

from typing import Any

from ..program import Instruction, Program, Value, mapped
from .operations import COMMUTATIVE, key_of, mentions


def without_common_subexpressions(program: Program) -> Program:
    """`program` in which no two instructions compute the same."""
    seen: dict[Any, Instruction] = {}
    substitutes: dict[Value, Value] = {}
    kept: list[Instruction] = []
    given = set(program.inputs)
    for instruction in program.instructions:
        if substitutes and mentions(instruction.args, substitutes):
            instruction = instruction.with_args(mapped(instruction.args, lambda value: substitutes.get(value, value)))
        key = _key(instruction), instruction.mark.walk if _expands(instruction, given) else None
        first = seen.setdefault(key, instruction)
        if first is instruction:
            kept.append(instruction)
        else:
            substitutes.update(zip(instruction.results, first.results))
    return program.replaced(kept, substitutes) if substitutes else program


def _expands(instruction: Instruction, given: set[Value]) -> bool:
    """Whether an instruction makes wider numbers of a whole input."""
    source = instruction.args[0] if instruction.op == "astype" else None
    return source in given and source.ndim > 1 and instruction.result.dtype.itemsize > source.dtype.itemsize


def _key(instruction: Instruction) -> Any:
    args = instruction.args
    if (
        instruction.op in COMMUTATIVE
        and type(args[0]) is Value
        and type(args[1]) is Value
        and id(args[0]) > id(args[1])
    ):
        args = (args[1], args[0])
    return instruction.op, key_of(args)
