"""Loops in programs: an instruction whose body is a program of its own, run once for each step.

`iterate(iteration, constants, carry, xs)` makes the last carry and the stacked outputs. The body is a program of the
constants, of the carry and of one slice of each array in `xs`; it gives the next carry and a slice of each output.
"""

from __future__ import annotations

from typing import Iterable, Iterator

from .program import Instruction, Program, Value

ITERATE = "iterate"


class Iteration:
    """The body of a loop, and how it is run.

    `body.inputs` are constants, then the carry, then slices (then what folding has added); `body.outputs` the next
    carry, then a slice of each output. With `reverse` the last slices come first; outputs lie where their slices do.
    """

    __slots__ = ("body", "constants", "carry", "steps", "reverse")

    def __init__(self, body: Program, constants: int, carry: int, steps: int, reverse: bool) -> None:
        self.body = body
        self.constants = constants  # how many of the body's inputs are the same at every step
        self.carry = carry  # how many go from step to step
        self.steps = steps
        self.reverse = reverse

    def __repr__(self) -> str:
        return f"{self.steps} steps" + (" from the last to the first" if self.reverse else "")

    def order(self) -> Iterable[int]:
        """The numbers of the slices in the order of the steps."""
        return reversed(range(self.steps)) if self.reverse else range(self.steps)

    def split(self) -> tuple[list[Value], list[Value], list[Value], list[Value], list[Value]]:
        """Of the body: constants, carry, slices; next carry, outputs."""
        first, second = self.constants, self.constants + self.carry
        given, made = self.body.inputs, self.body.outputs
        last = len(given) - sum(value in self.body.constants for value in given)
        return given[:first], given[first:second], given[second:last], made[: self.carry], made[self.carry :]


def iterations(program: Program) -> list[Instruction]:
    """The loops of a program, without those inside of them."""
    return [one for one in program.instructions if one.op == ITERATE]


def every_instruction(program: Program, times: int = 1) -> Iterator[tuple[Instruction, int]]:
    """The instructions of a program and of the bodies of its loops, and how often each is run; not the loops."""
    for one in program.instructions:
        if one.op == ITERATE:
            yield from every_instruction(one.args[0].body, times * one.args[0].steps)
        else:
            yield one, times
