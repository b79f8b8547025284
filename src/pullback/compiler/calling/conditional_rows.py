"""Rows that are written to an input at indices, and taken back row by row where a program's checks do not hold.

To choose between the whole new array and the whole old one would take a copy of it: a cache of keys and values would be
copied for every token. So the rows that were there are kept, and it is decided which of the two stay.
"""

from __future__ import annotations

from ..program import Instruction, Program, Value
from ..shapes import broadcast_shape


def with_conditional_rows(program: Program, condition: Value) -> tuple[Program, set[Value]]:
    """`program` with rows taken back unless `condition` holds, where that can be; and the inputs that this is done for.

    The condition is made by the program's instructions. Other values that are updated are left as they are.
    """
    definitions = {value: one for one in program.instructions for value in one.results}
    before: dict[Instruction, Instruction] = {}
    last: list[Instruction] = []
    updates: list[tuple[Value, Value]] = []
    done: set[Value] = set()
    for target, value in program.updates:
        made = definitions.get(value)
        shape = None if made is None else _shape_of_rows(made, target)
        if made is not None and shape is not None:
            _, rows, index = made.args
            old, chosen, final = (Value(size, target.dtype) for size in (shape, shape, target.shape))
            before[made] = Instruction("getitem", (target, index), (old,), made.site)
            last.append(Instruction("where", (condition, rows, old), (chosen,), made.site))
            last.append(Instruction("setitem", (value, chosen, index), (final,), made.site))
            done.add(target)
            value = final
        updates.append((target, value))
    instructions: list[Instruction] = []
    for one in program.instructions:
        if one in before:
            instructions.append(before[one])
        instructions.append(one)
    return Program(program.inputs, instructions + last, program.outputs, updates, program.constants), done


def _shape_of_rows(made: Instruction, target: Value) -> tuple[int, ...] | None:
    """The shape of what a `setitem` writes to an input at arrays of indices; None for any other instruction."""
    if made.op != "setitem" or made.args[0] is not target:
        return None
    _, rows, index = made.args
    parts = index if type(index) is tuple else (index,)
    if type(rows) is not Value or rows.dtype != target.dtype or not parts:
        return None
    if not all(type(part) is Value and part.dtype.kind in "iu" for part in parts):
        return None
    shape = (*broadcast_shape([part.shape for part in parts]), *target.shape[len(parts) :])
    return shape if rows.ndim <= len(shape) else None
