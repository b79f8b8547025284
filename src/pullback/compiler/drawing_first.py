"""Random numbers that a program draws by the host's kernels: they are drawn before it runs, and given to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import TraceError
from .host import HOST
from .program import Instruction, Program, Value, described, mapped

_OF_PLACES = ("getitem", "moved_on", "add", "draw")  # instructions that say where in a stream to draw


class DrawnFirst:
    """What must be run on the host before a program: `values` are then inputs of what is left of it."""

    def __init__(self, program: Program) -> None:
        self._inputs = program.inputs
        self._instructions, self.values = _needed(program)

    def __bool__(self) -> bool:
        return bool(self.values)

    def draw(self, inputs: list[Any]) -> list[Any]:
        """The numbers for a run with these inputs, of which only NumPy's arrays are looked at."""
        arrays = dict(zip(self._inputs, inputs))
        for one in self._instructions:
            made = getattr(HOST, one.op)(*mapped(one.args, arrays.__getitem__))
            arrays[one.result] = np.asarray(made)
        return [arrays[value] for value in self.values]


def _needed(program: Program) -> tuple[list[Instruction], list[Value]]:
    """Instructions that find where in a stream to draw, and draw; and what they draw."""
    makers = {value: one for one in program.instructions for value in one.results}
    needed: dict[Instruction, None] = {}

    def need(value: Value) -> None:
        if value in makers:
            for part in makers[value].values():
                need(part)
            if makers[value].op not in _OF_PLACES:
                raise TraceError(
                    f"{makers[value].site}: random numbers of {described(value)} are drawn with values that are "
                    "computed on the device. Draw them outside of the compiled function, and pass them in."
                )
            needed[makers[value]] = None

    draws = [one for one in program.instructions if one.op == "draw"]
    for one in draws:
        need(one.result)
    return list(needed), [one.result for one in draws]
