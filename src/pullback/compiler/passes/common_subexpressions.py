"""Compute the same thing once.

Kernels are functions of their arguments, random numbers too (of a key and a position), so instructions of the same
kernel with the same arguments have the same results.

What is expanded of inputs (weights that are stored in fewer bits) is expanded again by each walk over a graph: it would
else be kept, whole, from the forward pass to the backward pass.
"""

from __future__ import annotations

from typing import Any

from ..program import Instruction, Program, Value, mapped, values_in
from .operations import COMMUTATIVE, key_of, mentions

#: What numbers are unpacked and scaled with.
_EXPANDING = frozenset((
    "astype", "add", "subtract", "multiply", "divide", "bitwise_and", "equal", "not_equal", "where", "concat",
    "reshape", "broadcast_to", "exp", "getitem",
))  # fmt: skip
_CODES = frozenset("iu")  # kinds of dtypes


def without_common_subexpressions(program: Program) -> Program:
    """`program` in which no two instructions compute the same."""
    seen: dict[Any, Instruction] = {}
    substitutes: dict[Value, Value] = {}
    kept: list[Instruction] = []
    given, expanded = set(program.inputs), set[Value]()
    for instruction in program.instructions:
        if substitutes and mentions(instruction.args, substitutes):
            instruction = instruction.with_args(mapped(instruction.args, lambda value: substitutes.get(value, value)))
        walk = None
        if instruction.op in _EXPANDING and _expands(instruction, given, expanded):
            expanded.update(instruction.results)
            walk = instruction.mark.walk
        key = _key(instruction), walk
        first = seen.setdefault(key, instruction)
        if first is instruction:
            kept.append(instruction)
        else:
            substitutes.update(zip(instruction.results, first.results))
    return program.replaced(kept, substitutes) if substitutes else program


def _expands(instruction: Instruction, given: set[Value], expanded: set[Value]) -> bool:
    """Whether an instruction makes wider numbers of a whole input, or goes on with such in the same cheap way."""
    values = list(values_in(instruction.args))
    if not all([value in expanded or value in given for value in values]):
        return False
    if any([value in expanded for value in values]):
        return True
    source = values[0] if values else None
    if source is None or source.ndim < 2:
        return False
    if source.dtype.kind == "f":
        return instruction.op == "astype" and source.dtype.itemsize < instruction.result.dtype.itemsize
    return source.dtype.itemsize == 1 and source.dtype.kind in _CODES


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
