"""A loop that is being rewritten."""

from __future__ import annotations

from typing import Any

from ..iteration import ITERATE, Iteration
from ..program import Instruction, Program, Value, mapped
from .operations import MOVEMENT

#: Kernels that take no memory and no time, or that the loop's own kernels do along with others.
_STAYING = MOVEMENT | {"full", "zeros", "arange", "broadcast_to", "zeros_like", "ones_like", "getitem"}
#: What may not be called another number of times.
_NOT_MOVED = frozenset(("call_custom", "draw"))


class LoopParts:
    """A loop that is being rewritten: what its body is given and gives beside what is given to it and what it makes."""

    def __init__(self, instruction: Instruction) -> None:
        self.iteration: Iteration = instruction.args[0]
        self.site = instruction.site
        self.body = self.iteration.body
        constants, carry, slices, *_ = self.iteration.split()
        _, of_constants, of_carry, of_slices = instruction.args
        self.constants: dict[Value, Value] = dict(zip(constants, of_constants))
        self.carry: dict[Value, Value] = dict(zip(carry, of_carry))
        self.slices: dict[Value, Value] = dict(zip(slices, of_slices))
        self.results = list(instruction.results)

    def split(self) -> tuple[list[Value], list[Value]]:
        """The next carry and the outputs."""
        return self.body.outputs[: len(self.carry)], self.body.outputs[len(self.carry) :]

    def replace(self, outputs: list[Value], instructions: list[Instruction] | None = None) -> None:
        """Give the body these outputs, and these instructions, with what it is given as it is now."""
        body = self.body
        folded = dict(body.constants)
        self.body = Program(
            [*self.constants, *self.carry, *self.slices, *folded],
            body.instructions if instructions is None else instructions,
            outputs,
            [],
            folded,
        )

    def instruction(self) -> Instruction:
        iteration = Iteration(
            self.body, len(self.constants), len(self.carry), self.iteration.steps, self.iteration.reverse
        )
        given = [tuple(part.values()) for part in (self.constants, self.carry, self.slices)]
        return Instruction(ITERATE, (iteration, *given), tuple(self.results), self.site)

    def fix_what_stays(self, substitutes: dict[Value, Value]) -> None:
        """A part of the carry that every step passes on is a constant."""
        next_carry, outputs = self.split()
        kept = []
        for value, after, result in zip(list(self.carry), next_carry, list(self.results)):
            if value is after:
                self.constants[value] = substitutes[result] = self.carry.pop(value)
                self.results.remove(result)
            else:
                kept.append(after)
        self.replace([*kept, *outputs])

    def share_outputs(self, substitutes: dict[Value, Value]) -> None:
        """Outputs that are slices, or of which there are two, are there already."""
        next_carry, outputs = self.split()
        known = dict(self.slices)
        kept, results = [], self.results[: len(self.carry)]
        for value, result in zip(outputs, self.results[len(self.carry) :]):
            if value in known:
                substitutes[result] = known[value]
            else:
                known[value] = result
                kept.append(value)
                results.append(result)
        self.results = results
        self.replace([*next_carry, *kept])

    def drop_unneeded(self, used: set[Value]) -> None:
        """Leave out outputs that nobody uses, and parts of the carry that only they, or each other, need."""
        next_carry, _ = self.split()
        pairs = list(zip(self.results, self.body.outputs))
        needed = {value for result, value in pairs if result in used}
        size = -1
        while size != len(needed):
            size = len(needed)
            for one in reversed(self.body.instructions):
                if not needed.isdisjoint(one.results):
                    needed.update(one.values())
            needed.update([after for value, after in zip(self.carry, next_carry) if value in needed])
        count = len(self.carry)
        live = [
            value in needed or result in used for (result, _), value in zip(pairs[:count], self.carry)
        ] + [result in used for result, _ in pairs[count:]]  # fmt: skip
        self.carry = {value: start for (value, start), is_live in zip(self.carry.items(), live) if is_live}
        self.constants = {value: given for value, given in self.constants.items() if value in needed}
        self.slices = {value: given for value, given in self.slices.items() if value in needed}
        self.results = [result for (result, _), is_live in zip(pairs, live) if is_live]
        instructions = [one for one in self.body.instructions if not needed.isdisjoint(one.results)]
        self.replace([value for (_, value), is_live in zip(pairs, live) if is_live], instructions)

    def take_out_what_stays(self) -> list[Instruction]:
        """The instructions that only use constants, to be run before the loop."""
        inside = dict(self.constants)  # what is the same at every step, and what it is outside
        taken: list[Instruction] = []
        kept: list[Instruction] = []
        moved: dict[Value, Value] = {}
        for one in self.body.instructions:
            values = list(one.values())
            if one.op in _NOT_MOVED or not values or any(value not in inside for value in values):
                kept.append(one)
                continue
            results = [Value(value.shape, value.dtype, value.site) for value in one.results]
            taken.append(Instruction(one.op, mapped(one.args, inside.__getitem__), tuple(results), one.site))
            inside.update(zip(one.results, results))
            if one.op in _STAYING:
                kept.append(one)
            else:
                moved.update(zip(one.results, results))
        if not moved:
            return []
        self.constants.update(moved)
        self.replace(self.body.outputs, kept)
        return taken

    def take_out_constants(self) -> dict[Value, Any]:
        """Arrays that folding has made in the body, which are the program's; numbers stay, as part of the code."""
        large = {value: array for value, array in self.body.constants.items() if value.size != 1}
        if large:
            self.constants.update({value: value for value in large})
            for value in large:
                del self.body.constants[value]
            self.replace(self.body.outputs)
        return large
