"""What a program makes, where that is used, and what of it is kept for walks."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from ....autodiff.checkpointing.strategies import Region
from ....operations import OPERATIONS
from ...program import Instruction, Program, Value

#: The elements of the first argument where they are: these take no memory, and are made wherever they are used.
_VIEWS = frozenset(
    ("reshape", "permute_dims", "matrix_transpose", "expand_dims", "squeeze", "broadcast_to", "flip", "diagonal",
     "unstack")
)  # fmt: skip
#: Numbers that follow from a shape: the same.
_FREE = frozenset(("full", "zeros", "ones", "zeros_like", "ones_like", "arange"))
#: Of these only the form of the argument matters.
_LIKE = {"zeros_like": 0, "ones_like": 1}
#: A function of the user's own runs once.
_ONCE = frozenset(("call_custom",))
FLOPS_PER_BYTE = 16  # that a processor computes in a product while it reads a byte
_WHOLE = 4  # times the bytes of what is no loop


class Flow:
    """The values of a program by where they are made and used. Views stand for what they are views of, their roots.

    Values that are `given` are there before the program runs, whatever it says of them.
    """

    def __init__(
        self, program: Program, given: frozenset[Value] = frozenset(), flops_per_byte: int = FLOPS_PER_BYTE
    ) -> None:
        self.instructions = program.instructions
        self.given = given
        self._flops_per_byte = flops_per_byte
        self.makers: dict[Value, Instruction] = {}
        self.position: dict[Value, int] = {}
        self.roots: dict[Value, Value] = {}
        self.uses: dict[Value, list[int]] = {}  # of roots: the positions of what is no view and uses them
        for number, one in enumerate(self.instructions):
            view = is_view(one)
            if not view:
                for root in dict.fromkeys(self.root(value) for value in values_read(one)):
                    self.uses.setdefault(root, []).append(number)
            for value in one.results:
                if value not in given:
                    self.makers[value], self.position[value] = one, number
                    if view:
                        self.roots[value] = self.root(one.args[0])
        self.wanted = {self.root(value) for value in program.wanted()}
        self.walks = sorted({one.mark.walk for one in self.instructions} - {0})
        self.local = self._local()

    def _local(self) -> set[int]:
        """The positions of walks' instructions that follow only from something earlier than others of the walk do.

        Such as the slope of an activation, which could be computed along with that. A walk's cotangents follow from
        what came last before it.
        """
        local: set[int] = set()
        walk, furthest = 0, -1
        reaches: dict[Value, int] = {}  # of what this walk has made: the last position before it that it follows from
        for position, one in enumerate(self.instructions):
            if not one.mark.walk or is_view(one):
                continue
            if one.mark.walk != walk:
                walk, furthest, reaches = one.mark.walk, -1, {}
            made = [root for value in values_read(one) if (root := self.root(value)) in self.position]
            reach = max([reaches.get(root, self.position[root]) for root in made], default=-1)
            reaches.update(dict.fromkeys(one.results, reach))
            furthest = max(furthest, reach)
            if reach < furthest:
                local.add(position)
        return local

    def root(self, value: Value) -> Value:
        """What a value is a view of; most are views of themselves."""
        return self.roots.get(value, value)

    def made(self) -> Iterator[Value]:
        """The roots that the program makes, in order, without those that take no memory."""
        for value, maker in self.makers.items():
            if value not in self.roots and not is_free(maker):
                yield value

    def operands(self, root: Value) -> Iterator[Value]:
        """The roots that a root is computed from."""
        for value in values_read(self.makers[root]):
            yield self.root(value)

    def walk_of(self, root: Value) -> int:
        return self.makers[root].mark.walk

    def is_made(self, root: Value) -> bool:
        """Whether the program computes a root, rather than being given it."""
        return root in self.makers

    def is_free(self, root: Value) -> bool:
        return is_free(self.makers[root])

    def saved_uses(self, root: Value) -> list[int]:
        """Where walks use a root that they have not made themselves."""
        own = self.walk_of(root)
        found = self.uses.get(root, ())
        return [use for use in found if self.instructions[use].mark.walk not in (0, own)]

    def can_run_again(self, root: Value) -> bool:
        return self.makers[root].op not in _ONCE

    def strategy_of(self, root: Value) -> Any:
        """The strategy that a root was made under: of a region, the one around it."""
        strategy = self.makers[root].mark.strategy
        while isinstance(strategy, Region):
            strategy = strategy.outer
        return strategy

    def region_of(self, root: Value) -> Region | None:
        strategy = self.makers[root].mark.strategy
        return strategy if isinstance(strategy, Region) else None

    def cost(self, root: Value) -> float:
        """About what computing a root takes, in bytes of memory that could be read meanwhile."""
        one = self.makers[root]
        operation = OPERATIONS.get(one.op)
        nbytes = sum(value.nbytes for value in one.results)
        if operation is not None and operation.cheap:
            return float(nbytes)
        read = sum(value.nbytes for value in one.values())
        if operation is not None and operation.reduces:
            return float(read)
        flops = _flops(one)
        return nbytes + read + flops / self._flops_per_byte if flops else float(_WHOLE * (nbytes + read))


def is_view(instruction: Instruction) -> bool:
    """Whether an instruction makes nothing but another form of its argument."""
    if instruction.op != "getitem":
        return instruction.op in _VIEWS
    index = instruction.args[1]
    parts = index if type(index) is tuple else (index,)
    return all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)


def values_read(instruction: Instruction) -> Iterable[Value]:
    """The values whose elements an instruction needs."""
    return () if instruction.op in _LIKE else instruction.values()


def standing_alone(instruction: Instruction) -> Instruction:
    """An instruction that mentions no value for its form alone."""
    if instruction.op not in _LIKE:
        return instruction
    result = instruction.result
    number = result.dtype.type(_LIKE[instruction.op]).item()
    args = (result.shape, number, result.dtype, None)
    return Instruction("full", args, instruction.results, instruction.site, instruction.mark, instruction.after)


def is_free(instruction: Instruction) -> bool:
    """Whether an instruction makes nothing that would take memory."""
    return instruction.op in _FREE


def is_loop(instruction: Instruction) -> bool:
    """Whether an instruction can be part of a loop with others: elementwise work, and reductions."""
    operation = OPERATIONS.get(instruction.op)
    return operation is not None and (operation.scalar or operation.reduces)


def _flops(one: Instruction) -> int:
    """The multiplications and additions of products; 0 where it is not known."""
    values = list(one.values())
    if one.op == "matmul":
        return 2 * one.result.size * values[0].shape[-1]
    if one.op == "attention":
        return 4 * values[0].size * values[1].shape[-2]
    if one.op in ("convolution", "biased_convolution"):
        return 2 * one.result.size * values[1].size // max(values[1].shape[0], 1)
    return 0
