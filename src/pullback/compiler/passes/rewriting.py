"""One walk over a program, forwards, in which rules put simpler values in the place of what instructions make.

A rule is a function of the walk and an instruction. It returns a value that is as good as the instruction's result,
made by earlier instructions or by new ones (`walk.make`), or None. What a rule makes is itself simplified, so one walk
goes a long way. Rules must make programs smaller in some sense, for else the walk would not end.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ..program import PLAIN, Instruction, Program, Value, mapped, values_in
from .operations import is_number, key_of, mentions

Rule = Callable[["Walk", Instruction], Any]
Table = Mapping[str, Sequence[Rule]]

_LARGEST_CONSTANT_SEARCHED = 1 << 16  # bytes of a constant that are compared to see if it is one number everywhere


class Walk:
    """The program that is being written, and what is known about its values."""

    def __init__(self, program: Program, table: Table) -> None:
        self.definitions: dict[Value, Instruction] = {}
        self.changed = False
        self.depth = 0  # of rules inside of rules
        self._table = table
        self._constants = program.constants
        self._numbers: dict[Value, Any] = {}  # of the values that are the same number everywhere; None: known not to be
        self._fulls: dict[Any, Value] = {}
        self._instructions: list[Instruction] = []
        self._substitutes: dict[Value, Value] = {}
        self._uses = Counter(value for instruction in program.instructions for value in instruction.values())
        self._uses.update(program.wanted())
        self._site, self._mark = "", PLAIN

    def run(self, program: Program) -> Program:
        substitutes, instructions = self._substitutes, self._instructions
        for instruction in program.instructions:
            if substitutes and mentions(instruction.args, substitutes):
                instruction = instruction.with_args(mapped(instruction.args, self._current))
                self.changed = True
            self._site, self._mark = instruction.site, instruction.mark
            simpler = self._simplified(instruction)
            if simpler is not None:
                substitutes[instruction.result] = simpler
                self._uses[simpler] += self._uses[instruction.result]
                self.changed = True
            else:
                instructions.append(instruction)
                self._define(instruction)
        return program.replaced(instructions, substitutes) if self.changed else program

    def _current(self, value: Value) -> Value:
        return self._substitutes.get(value, value)

    def _define(self, instruction: Instruction) -> None:
        for value in instruction.results:
            self.definitions[value] = instruction
        if instruction.op == "full" and is_number(instruction.args[1]) and instruction.args[3] is None:
            shape, number, dtype, _ = instruction.args
            self._numbers[instruction.result] = number
            self._fulls.setdefault((shape, dtype, key_of(number)), instruction.result)

    def _simplified(self, instruction: Instruction) -> Value | None:
        rules = self._table.get(instruction.op)
        if rules is None or len(instruction.results) != 1:
            return None
        for rule in rules:
            simpler = rule(self, instruction)
            if simpler is not None:
                result = instruction.result
                if simpler.shape != result.shape or simpler.dtype != result.dtype:
                    raise AssertionError(f"{rule.__name__} made {simpler!r} of {instruction!r}")
                return simpler
        return None

    # -- what rules ask ----------------------------------------------------------------------------

    def definition(self, arg: Any, op: str) -> Instruction | None:
        """The instruction that made `arg`, if it is a value made by `op`."""
        if type(arg) is not Value:
            return None
        instruction = self.definitions.get(arg)
        return instruction if instruction is not None and instruction.op == op else None

    def number(self, arg: Any) -> Any:
        """The number that `arg` is, or is everywhere, as a Python number; else None."""
        if type(arg) is not Value:
            return arg if is_number(arg) else None
        if arg not in self._numbers and arg in self._constants:
            self._numbers[arg] = _number_everywhere(self._constants[arg])
        return self._numbers.get(arg)

    def uses(self, value: Value) -> int:
        """How often a value is used, for those of the program as it was before the walk."""
        return self._uses[value]

    # -- what rules make ---------------------------------------------------------------------------

    def make(self, op: str, args: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Value:
        """The result of an instruction, simplified."""
        instruction = Instruction(op, args, (Value(shape, dtype, self._site),), self._site, self._mark)
        self.depth += 1
        simpler = self._simplified(instruction)
        self.depth -= 1
        if simpler is None:
            self._instructions.append(instruction)
            self._define(instruction)
            simpler = instruction.result
            self._uses.update(values_in(args))
        return simpler

    def full(self, shape: tuple[int, ...], number: Any, dtype: np.dtype[Any]) -> Value:
        """An array that is `number` everywhere."""
        number = as_number(np.asarray(number).astype(dtype))
        known = self._fulls.get((shape, dtype, key_of(number)))
        return self.make("full", (shape, number, dtype, None), shape, dtype) if known is None else known

    def broadcast(self, value: Value, shape: tuple[int, ...]) -> Value:
        return value if value.shape == shape else self.make("broadcast_to", (value, shape), shape, value.dtype)

    def reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        return value if value.shape == shape else self.make("reshape", (value, shape), shape, value.dtype)

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        return value if value.dtype == dtype else self.make("astype", (value, dtype), value.shape, dtype)

    def as_result(self, arg: Any, instruction: Instruction) -> Value:
        """`arg`, which has the result's elements, in the shape and dtype of the result."""
        result = instruction.result
        if type(arg) is not Value:
            return self.full(result.shape, arg, result.dtype)
        return self.broadcast(self.cast(arg, result.dtype), result.shape)


def as_number(array: Any) -> Any:
    """The one element of an array as a Python number: exactly, as every dtype is contained in one of those."""
    kind = array.dtype.kind
    element = array.reshape(())[()]
    return (
        bool(element) if kind == "b"
        else int(element) if kind in "iu"
        else complex(element) if kind == "c"
        else float(element)
    )  # fmt: skip


def _number_everywhere(array: Any) -> Any:
    """The number that all elements of a constant are, to the last bit; else None."""
    array = np.asarray(array)
    if not 0 < array.nbytes <= _LARGEST_CONSTANT_SEARCHED:
        return None
    if array.size > 1:
        elements = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
        if (elements != elements[0]).any():
            return None
        array = array.reshape(-1)[:1]
    return as_number(array)


def rewritten(program: Program, table: Table) -> Program:
    """`program` with the rules of `table` (by the names of operations) applied; itself if none applies."""
    return Walk(program, table).run(program)


def merged(*tables: Table) -> Table:
    """The rules of several tables, those of the first ones first."""
    whole: dict[str, list[Rule]] = {}
    for table in tables:
        for op, rules in table.items():
            whole.setdefault(op, []).extend(rules)
    return whole
