"""Programs for tests: a function of symbols written down instruction by instruction, with NumPy saying the shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.program import Instruction, Program, Value, mapped
from tests.compiler.meaning import kernel


class Building:
    """Adds instructions to a program; each is run at once to know the shapes and dtypes of its results."""

    def __init__(self) -> None:
        self.arrays: dict[Value, Any] = {}
        self.inputs: list[Value] = []
        self.instructions: list[Instruction] = []

    def input(self, array: Any) -> Value:
        array = np.asarray(array)
        value = Value(array.shape, array.dtype)
        self.inputs.append(value)
        self.arrays[value] = array
        return value

    def __getattr__(self, op: str) -> Any:
        if op.startswith("__"):
            raise AttributeError(op)

        def add(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                made = kernel(op)(*mapped(args, self.arrays.__getitem__))
            several = isinstance(made, (tuple, list))
            arrays = [np.asarray(array) for array in (made if several else (made,))]
            results = tuple(Value(array.shape, array.dtype) for array in arrays)
            self.arrays.update(zip(results, arrays))
            self.instructions.append(Instruction(op, args, results, f"test.py:{len(self.instructions)}"))
            return results if several else results[0]

        return add

    def program(self, outputs: Any, updates: Any = (), constants: Any = None) -> Program:
        return Program(self.inputs, self.instructions, list(outputs), list(updates), constants)

    def given(self) -> list[Any]:
        return [self.arrays[value] for value in self.inputs]
