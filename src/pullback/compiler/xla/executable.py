"""A program that XLA has compiled: what is given to it, what it may write over, and what is drawn on the host first."""

from __future__ import annotations

import threading
from typing import Any, Callable

import numpy as np

from ...targets import target_for
from ..drawing_first import DrawnFirst
from ..passes.rematerialization import rematerialized, saved_bytes
from ..program import Program, Value
from .evaluation import evaluate

_MOST_EMBEDDED = 1024  # bytes of a constant that becomes part of the program, or of an array that is copied


class XlaExecutable:
    """`run(inputs)` gives the outputs of a program and the new values of the inputs that it updates."""

    def __init__(self, program: Program, library: Any, device: str) -> None:
        self._drawn = DrawnFirst(program)
        drawn = frozenset(self._drawn.values)
        self.program = rematerialized(program, drawn)
        self.saved_bytes = saved_bytes(self.program, program, drawn)
        program = self.program
        self.lock = threading.RLock()  # who has it may run the program: its numbers are for one run at a time
        self._compile: Any = target_for(device).compile  # type: ignore[union-attr]
        self._run: Any = None
        self._moved = lambda array: library.asarray(array, None, device, None)
        self._placed = library.namespace.asarray  # wherever others are
        constants = {value: self._moved(array) for value, array in program.constants.items()}
        embedded = {value: array for value, array in constants.items() if value.nbytes <= _MOST_EMBEDDED}
        held = {value: array for value, array in constants.items() if value not in embedded}
        donated = [target for target, _ in program.updates]
        given = [value for value in program.inputs if value not in constants and value not in set(donated)]
        self._held = list(held.values())
        numbers = {value: i for i, value in enumerate(program.inputs)}
        self._given_numbers = [numbers[value] for value in given]
        self._donated_numbers = [numbers[value] for value in donated]
        self._function = _function_of(program, library.xp, [*given, *self._drawn.values, *held], donated, embedded)

    def run(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run once on arrays of JAX's or NumPy's, in the order of the program's inputs; updated ones are donated."""
        given, donated = self._split(inputs)
        if self._run is None:
            if any(map(_is_spread, (*given, *donated))):  # what is on one device alone does not go with these
                self._held = [np.asarray(array) for array in self._held]
                given, donated = self._split(inputs)
            self._run = self._compile(self._function, _shardings(donated))
        outputs, updates = self._run(given, donated)
        return outputs, updates

    def interpret(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """The same without compiling, and without writing over anything."""
        given, donated = self._split(inputs)
        move = self._placed if any(map(_is_spread, (*given, *donated))) else self._moved
        return self._function([move(array) if type(array) is np.ndarray else array for array in given], donated)

    def _split(self, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
        # JAX reads an array of NumPy's where it lies, when it gets to it: the next call's numbers may be there then.
        given = [_own(inputs[number]) for number in self._given_numbers]
        if self._drawn:
            given += self._drawn.draw(inputs)
        given += self._held
        return given, [inputs[number] for number in self._donated_numbers]


def _function_of(
    program: Program, xp: Any, given: list[Value], donated: list[Value], constants: dict[Value, Any]
) -> Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]:
    """A program as a function of two lists of arrays, which gives two lists: outputs and new values of inputs.

    What is given may have been made on the host: instructions for that are left out.
    """
    made = set(given)
    instructions = [one for one in program.instructions if not made.issuperset(one.results)]
    outputs, updates = list(program.outputs), [value for _, value in program.updates]

    def function(arrays: list[Any], replaced: list[Any]) -> tuple[list[Any], list[Any]]:
        known = {**constants, **dict(zip(given, arrays)), **dict(zip(donated, replaced))}
        evaluate(instructions, known, xp)
        return [known[value] for value in outputs], [known[value] for value in updates]

    return function


def _own(array: Any) -> Any:
    """An array that nobody writes to: a copy of a small one of NumPy's, as those are whose contents change by calls."""
    is_small = type(array) is np.ndarray and array.nbytes <= _MOST_EMBEDDED
    return np.array(array) if is_small else array


def _shardings(arrays: list[Any]) -> Any:
    """How arrays are spread over devices, if any is spread over more than one: what replaces them is to be so too."""
    spread = [array.sharding if _is_spread(array) else None for array in arrays]
    return None if all(sharding is None for sharding in spread) else spread


def _is_spread(array: Any) -> bool:
    """Whether an array lies on several devices."""
    return type(array) is not np.ndarray and len(array.devices()) > 1
