"""Checks in a program: a last output that says whether losses and gradients are finite, and indices in bounds.

Where they are not, no input is updated: the call has changed nothing, and can be made again operation by operation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..program import Instruction, Program, Value
from .conditional_rows import with_conditional_rows

_BOOL = np.dtype(bool)
_SINGLE = np.dtype(np.float32)
_SMALL = 1 << 16  # bytes of a value that is looked at together with others


def guarded(
    program: Program,
    checks: list[Value],
    bounds: list[tuple[Value, int, int]],
    requirements: list[Value],
    is_for_library: bool = False,
    is_for_gpu: bool = False,
) -> Program:
    """`program` with a check that these values are finite, these indices in their ranges, and all required true.

    Squares are added up, and the sum is finite unless one of them is not. A sum that overflows by itself is an alarm
    too; whoever then looks closely finds nothing. For a library, which has a kernel for every sum, those of many small
    values are one. On a GPU, where every reduction is a launch, what is required of arrays of one shape is one.
    """
    added: list[Instruction] = []

    def make(op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: Any) -> Value:
        value = Value(shape, dtype)
        added.append(Instruction(op, args, (value,)))
        return value

    def together(values: list[Value]) -> list[Value]:
        """These values, the small ones of a dtype as one."""
        small: dict[Any, list[Value]] = {}
        for value in values:
            small.setdefault(value.dtype if value.nbytes <= _SMALL else value, []).append(value)
        return [parts[0] if len(parts) == 1 else joined(parts) for parts in small.values()]

    def joined(values: list[Value]) -> Value:
        dtype, sizes = values[0].dtype, [math.prod(value.shape) for value in values]
        flat = [make("reshape", (value, (size,)), (size,), dtype) for value, size in zip(values, sizes)]
        return make("concat", (tuple(flat), 0), (sum(sizes),), dtype)

    sums: dict[Any, Value] = {}
    looked_at = list(dict.fromkeys(checks))
    for value in together(looked_at) if is_for_library else looked_at:
        if value.dtype.kind == "c":
            product = make(
                "multiply", (value, make("conj", (value,), value.shape, value.dtype)), value.shape, value.dtype
            )
            part = make("real", (product,), value.shape, np.dtype(f"f{value.dtype.itemsize // 2}"))
        else:
            if value.dtype.itemsize == 2:  # whose squares overflow early
                value = make("astype", (value, _SINGLE), value.shape, _SINGLE)
            part = make("square", (value,), value.shape, value.dtype)
        total = make("sum", (part, None, False), (), part.dtype)
        before = sums.get(total.dtype)
        sums[total.dtype] = total if before is None else make("add", (before, total), (), total.dtype)
    flags = [make("isfinite", (total,), (), _BOOL) for total in sums.values()]
    for indices, least, end in bounds:
        if indices.dtype.kind == "u":
            least = 0
        possible = np.iinfo(indices.dtype)  # numbers beyond it are none of the dtype, and nothing is beyond them
        fits = make("greater_equal", (indices, max(least, int(possible.min))), indices.shape, _BOOL)
        if end <= possible.max:
            below = make("less", (indices, end), indices.shape, _BOOL)
            fits = make("logical_and", (fits, below), indices.shape, _BOOL)
        flags.append(make("all", (fits, None, False), (), _BOOL))
    if is_for_gpu:
        alike: dict[Any, Value] = {}
        for required in requirements:
            before = alike.get(required.shape)
            if before is not None:
                required = make("logical_and", (before, required), required.shape, _BOOL)
            alike[required.shape] = required
        requirements = list(alike.values())
    for required in requirements:
        flags.append(make("all", (required, None, False), (), _BOOL))
    finite = flags[0]
    for flag in flags[1:]:
        finite = make("logical_and", (finite, flag), (), _BOOL)
    whole = Program(
        program.inputs, [*program.instructions, *added], [*program.outputs, finite], program.updates, program.constants
    )
    done: set[Value] = set()
    if not is_for_gpu:
        whole, done = with_conditional_rows(whole, finite)
    added = []
    updates = [
        (target, value if target in done else make("where", (finite, value, target), value.shape, value.dtype))
        for target, value in whole.updates
    ]
    return Program(whole.inputs, [*whole.instructions, *added], whole.outputs, updates, whole.constants)
