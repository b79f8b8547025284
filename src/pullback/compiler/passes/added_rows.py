"""Rows that are added to zeros, and then to an array, are added to the array itself.

The gradient of a table of embeddings is such an array of zeros, as large as the table, of which a step touches a few
rows. Where the table is also the matrix of the last layer, the two gradients are added: then those few rows are.
In half precision both are rounded before they are added. Here the sum is rounded.
"""

from __future__ import annotations

from typing import Any

from ..program import Instruction, Program, Value
from .dead_code import without_dead_code

_FLOATS = frozenset(("float32", "float64"))


def with_added_rows(program: Program) -> Program:
    """`program` with additions of `take_transposed` as `index_add`."""
    made: dict[Value, Instruction] = {}
    users: dict[Value, int] = dict.fromkeys(program.wanted(), 1)
    for instruction in program.instructions:
        made.update((value, instruction) for value in instruction.results)
        for value in instruction.values():
            users[value] = users.get(value, 0) + 1
    instructions: list[Instruction] = []
    for instruction in program.instructions:
        found = _added(instruction, made, users) if instruction.op == "add" else None
        instructions += [instruction] if found is None else found
    if len(instructions) == len(program.instructions):
        return program
    return without_dead_code(program.replaced(instructions, {}))


def _added(addition: Instruction, made: dict[Value, Instruction], users: dict[Value, int]) -> list[Instruction] | None:
    """Instructions that make a sum by adding rows to one of its terms; None where the other is not made of rows."""
    result = addition.result
    wide: list[Any] = [_wide(arg, result, made, users) for arg in addition.args]
    for onto, rows in (wide, wide[::-1]):
        taken = None if rows is None else made.get(rows)
        if taken is None or onto is None or taken.op != "take_transposed" or users[rows] != 1:
            continue
        value, indices, _, axis = taken.args
        if type(indices) is not Value or indices.ndim != 1 or type(value) is not Value or onto.dtype != rows.dtype:
            continue
        if onto.shape != result.shape or rows.shape != result.shape or rows.dtype.name not in _FLOATS:
            continue
        index = (*[slice(None)] * (axis % rows.ndim), indices)
        total = Value(result.shape, rows.dtype, result.site)
        return [
            Instruction("index_add", (onto, value, index), (total,), taken.site),
            Instruction("astype", (total, result.dtype), (result,), addition.site),
        ]
    return None


def _wide(arg: Any, result: Value, made: dict[Value, Instruction], users: dict[Value, int]) -> Value | None:
    """A term of a sum, or what it was rounded from if it is of half precision and nobody else needs it rounded."""
    if type(arg) is not Value or arg.dtype != result.dtype:
        return None
    rounded = made.get(arg)
    if result.dtype.itemsize == 2 and rounded is not None and rounded.op == "astype" and users[arg] == 1:
        source: Value = rounded.args[0]
        return source if source.dtype.name == "float32" else None
    return arg
