"""Programs written directly, without tensors: each instruction is run by NumPy's kernels while it is put in.

So shapes and dtypes are what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.program import Instruction, Program, Value, mapped
from tests.compiler.meaning import kernel


class Builder:
    """A program that grows, with the arrays that its values have for one choice of inputs."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.inputs: list[Value] = []
        self.constants: dict[Value, Any] = {}
        self.instructions: list[Instruction] = []
        self.arrays: dict[Value, Any] = {}
        self.exact: set[Value] = set()  # computed without rounding

    def input(self, array: Any, constant: bool = False) -> Value:
        array = np.asarray(array)
        value = Value(array.shape, array.dtype)
        self.inputs.append(value)
        self.arrays[value] = array
        self.exact.add(value)
        if constant:
            self.constants[value] = array
        return value

    def make_all(self, op: str, *args: Any) -> tuple[Value, ...]:
        """The values that an instruction makes; its kernel says how many, of which shapes and dtypes."""
        with np.errstate(all="ignore"):
            returned = kernel(op)(*mapped(args, self.arrays.__getitem__))
        made = [np.asarray(array) for array in (returned if isinstance(returned, tuple) else (returned,))]
        results = tuple(Value(array.shape, array.dtype) for array in made)
        instruction = Instruction(op, args, results, f"random.py:{len(self.instructions) + 1}")
        self.instructions.append(instruction)
        self.arrays.update(zip(results, made))
        moved = op in _EXACT and all(value in self.exact for value in instruction.values())
        if moved or all(result.dtype.kind in "iub" for result in results):
            self.exact.update(results)
        return results

    def make(self, op: str, *args: Any) -> Value:
        (value,) = self.make_all(op, *args)
        return value

    def program(self, outputs: list[Value], updates: list[tuple[Value, Value]] | None = None) -> Program:
        return Program(list(self.inputs), list(self.instructions), outputs, updates, dict(self.constants))

    def given(self) -> list[Any]:
        return [self.arrays[value] for value in self.inputs]


_EXACT = frozenset(
    [
        "reshape", "permute_dims", "matrix_transpose", "expand_dims", "squeeze", "broadcast_to", "flip", "roll",
        "repeat", "tile", "pad", "concat", "stack", "unstack", "tril", "triu", "diagonal", "place_diagonal", "getitem",
        "setitem", "place", "take", "take_along_axis", "put_along_axis", "zeros", "full", "arange", "zeros_like",
        "ones_like", "where", "negative", "positive", "abs", "max", "min", "shift", "maximum", "minimum", "sign",
        "floor", "ceil", "round", "trunc",
    ]
)  # fmt: skip
