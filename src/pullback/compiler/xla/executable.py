"""A program that XLA has compiled: what is given to it, what it may write over, and what is drawn on the host first."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...errors import TraceError
from ...targets import target_for
from ..host import HOST
from ..program import Instruction, Program, Value, described, mapped
from .evaluation import evaluate

_MOST_EMBEDDED = 1024  # bytes of a constant that becomes part of the program


class XlaExecutable:
    """`run(inputs)` gives the outputs of a program and the new values of the inputs that it updates."""

    def __init__(self, program: Program, library: Any, device: str) -> None:
        self.program = program
        self.lock = threading.RLock()  # who has it may run the program: its numbers are for one run at a time
        self._xp = library.xp
        self._compile: Any = target_for(device).compile  # type: ignore[union-attr]
        self._run: Any = None
        self._moved = lambda array: library.asarray(array, None, device, None)
        numbers = {value: i for i, value in enumerate(program.inputs)}
        self._constants = {value: self._moved(array) for value, array in program.constants.items()}
        self._embedded = {value: array for value, array in self._constants.items() if value.nbytes <= _MOST_EMBEDDED}
        self._held = {value: array for value, array in self._constants.items() if value not in self._embedded}
        self._donated = [target for target, _ in program.updates]
        donated = set(self._donated)
        self._given = [value for value in program.inputs if value not in donated and value not in self._constants]
        self._given_numbers = [numbers[value] for value in self._given]
        self._donated_numbers = [numbers[value] for value in self._donated]
        self._drawing, self._drawn = _drawn_on_the_host(program)
        drawn = set(self._drawn)
        self._instructions = [one for one in program.instructions if not drawn.issuperset(one.results)]
        self._arguments = [*self._given, *self._drawn, *self._held]

    def run(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run once on arrays of JAX's or NumPy's, in the order of the program's inputs; updated ones are donated."""
        given, donated = self._split(inputs)
        if self._run is None:
            self._run = self._compile(self.function, _shardings(donated))
        outputs, updates = self._run(given, donated)
        return outputs, updates

    def interpret(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """The same without compiling, and without writing over anything."""
        given, donated = self._split(inputs)
        moved = [self._moved(array) if type(array) is np.ndarray else array for array in given]
        return self.function(moved, donated)

    def function(self, given: list[Any], donated: list[Any]) -> tuple[list[Any], list[Any]]:
        """The program as a function of arrays."""
        arrays = dict(self._embedded)
        arrays.update(zip(self._arguments, given))
        arrays.update(zip(self._donated, donated))
        evaluate(self._instructions, arrays, self._xp)
        return [arrays[value] for value in self.program.outputs], [arrays[value] for _, value in self.program.updates]

    def _split(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        given = [inputs[number] for number in self._given_numbers]
        if self._drawing:
            given += _drawn(self._drawing, self._drawn, dict(zip(self.program.inputs, inputs)))
        given += self._held.values()
        return given, [inputs[number] for number in self._donated_numbers]


def _shardings(arrays: list[Any]) -> Any:
    """How arrays are spread over devices, if any is spread over more than one: what replaces them is to be so too."""
    spread = [array.sharding if len(array.devices()) > 1 else None for array in arrays]
    return None if all(sharding is None for sharding in spread) else spread


# -- random numbers of the host ----------------------------------------------------------------------


def _drawn_on_the_host(program: Program) -> tuple[list[Instruction], list[Value]]:
    """Instructions that find where in a stream to draw, and draw; and what they draw, which is given to the program."""
    makers = {value: one for one in program.instructions for value in one.results}
    needed: dict[Instruction, None] = {}

    def need(value: Value) -> None:
        if value in makers:
            for part in makers[value].values():
                need(part)
            if makers[value].op not in ("getitem", "moved_on", "draw"):
                raise TraceError(
                    f"{makers[value].site}: random numbers of {described(value)} are drawn with values that are "
                    "computed on the device. Draw them outside of the compiled function, and pass them in."
                )
            needed[makers[value]] = None

    draws = [one for one in program.instructions if one.op == "draw"]
    for one in draws:
        need(one.result)
    return list(needed), [one.result for one in draws]


def _drawn(instructions: list[Instruction], wanted: list[Value], arrays: dict[Value, Any]) -> list[Any]:
    for one in instructions:
        made = getattr(HOST, one.op)(*mapped(one.args, arrays.__getitem__))
        arrays[one.result] = np.asarray(made)
    return [arrays[value] for value in wanted]
