"""Sums over the steps of an unrolled loop, from what is stacked: one product or sum in place of one for each step.

The gradient of a weight that every step uses is x1^T g1 + x2^T g2 + ..., and that of a bias sums of g1, g2, ... Where
the program stacks these arrays anyway (the steps' outputs, and the gradients of the steps' inputs), it is one product
of the stacks: it reads and writes the sum once, and is large enough to share.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..program import Instruction, Program, Value

#: Terms from which on a sum is worth it.
FEWEST = 4


class _Place(NamedTuple):
    """Where a value is among those of a stack along the first axis."""

    stack: Value
    step: int


class _Term(NamedTuple):
    """A term x^T y of a sum, or the sum over x's rows if there is no y, with the places of both in stacks."""

    x: _Place
    y: _Place | None


class _Run(NamedTuple):
    """Terms of a sum that are those of neighbouring steps in stacks, from `x` and `y` on."""

    terms: list[Value]
    x: _Place
    y: _Place | None


def with_joined_steps(program: Program) -> Program:
    """`program` with the sums over many steps of products and of rows made from stacks."""
    search = _Search(program)
    joined = {}
    for instruction in program.instructions:
        if instruction.op == "add" and not search.is_inside(instruction.result):
            terms = search.terms(instruction.result)
            run = search.longest_run(terms) if len(terms) >= FEWEST else None
            if run is not None and search.are_stacks_ready(run, instruction.result):
                joined[instruction.result] = (terms, run)
    return _rewritten(program, search, joined) if joined else program


class _Search:
    def __init__(self, program: Program) -> None:
        self.made: dict[Value, Instruction] = {}
        self.position: dict[Value, int] = {}
        self.first_use: dict[Value, int] = {}
        self.uses: Counter[Value] = Counter(program.wanted())
        self.added: set[Value] = set()  # what an addition uses
        self.places: dict[Value, list[_Place]] = {}
        for number, instruction in enumerate(program.instructions):
            for value in instruction.values():
                self.uses[value] += 1
                self.first_use.setdefault(value, number)
                if instruction.op == "add" and value.shape == instruction.result.shape:
                    self.added.add(value)
            for value in instruction.results:
                self.made[value] = instruction
                self.position[value] = number
            if instruction.op == "stack" and instruction.args[1] in (0, -instruction.result.ndim):
                for step, value in enumerate(instruction.args[0]):
                    self.places.setdefault(value, []).append(_Place(instruction.result, step))

    def is_inside(self, value: Value) -> bool:
        """Whether a value is nothing but a part of a larger sum."""
        return self.uses[value] == 1 and value in self.added

    def terms(self, total: Value) -> list[Value]:
        """What is added up to a value."""
        found, waiting = [], [total]
        while waiting:
            value = waiting.pop()
            instruction = self.made.get(value)
            if instruction is not None and instruction.op == "add" and (value is total or self.is_inside(value)):
                parts = instruction.args
                if all(type(p) is Value and p.shape == total.shape and p.dtype == total.dtype for p in parts):
                    waiting.extend(parts)
                    continue
            found.append(value)
        return found

    def longest_run(self, terms: list[Value]) -> _Run | None:
        """The most terms that are those of neighbours in the same stacks."""
        groups: dict[tuple[Value, Value | None, int], dict[int, tuple[Value, _Term]]] = {}
        for value in terms:
            for term in self._described(value):
                shift = 0 if term.y is None else term.y.step - term.x.step
                key = (term.x.stack, None if term.y is None else term.y.stack, shift)
                groups.setdefault(key, {})[term.x.step] = (value, term)
        best: list[tuple[Value, _Term]] = []
        for group in groups.values():
            run: list[tuple[Value, _Term]] = []
            for step in sorted(group):
                value, term = group[step]
                run = [*run, (value, term)] if run and run[-1][1].x.step == step - 1 else [(value, term)]
                best = max(best, run, key=len)
        if len(best) < FEWEST:
            return None
        return _Run([value for value, _ in best], *best[0][1])

    def _described(self, value: Value) -> list[_Term]:
        """How a value may be read as a term from stacks; nothing where it is used elsewhere, too."""
        instruction = self.made.get(value)
        if instruction is None or self.uses[value] != 1 or value.dtype.name not in ("float32", "float64"):
            return []
        if instruction.op == "sum" and instruction.args[1:] == ((-2,), False) and instruction.args[0].ndim == 2:
            return [_Term(place, None) for place in self.places.get(instruction.args[0], ())]
        if instruction.op != "matmul" or any(factor.ndim != 2 for factor in instruction.args):
            return []
        turned, y = self.made.get(instruction.args[0]), instruction.args[1]
        if turned is None or turned.op != "permute_dims" or not turned.args[0].dtype == y.dtype == value.dtype:
            return []
        of_x, of_y = self.places.get(turned.args[0], ()), self.places.get(y, ())
        return [_Term(one, other) for one in of_x for other in of_y]

    def are_stacks_ready(self, run: _Run, total: Value) -> bool:
        """Whether the stacks are made before the sum is first used."""
        made = max(self.position[place.stack] for place in (run.x, run.y) if place is not None)
        return made < self.first_use.get(total, made + 1)


def _rewritten(program: Program, search: _Search, joined: dict[Value, tuple[list[Value], _Run]]) -> Program:
    """The program with each of these sums made after its stacks and before its first use."""
    at_end = len(program.instructions)
    due: dict[int, list[Value]] = {}
    for total in joined:
        due.setdefault(search.first_use.get(total, at_end), []).append(total)
    kept: list[Instruction] = []
    for number, instruction in enumerate([*program.instructions, None]):
        for total in due.get(number, ()):
            _join(kept, total, *joined[total], like=search.made[total])
        if instruction is not None and not any(value in joined for value in instruction.results):
            kept.append(instruction)
    return program.replaced(kept, {})


def _join(kept: list[Instruction], total: Value, terms: list[Value], run: _Run, like: Instruction) -> None:
    """Append instructions that make a sum: of the terms that are left, and of those in the run together."""

    def make(op: str, args: tuple[object, ...], shape: tuple[int, ...], result: Value | None = None) -> Value:
        made = Value(shape, total.dtype, like.site) if result is None else result
        kept.append(Instruction(op, args, (made,), like.site, like.mark))
        return made

    def steps(place: _Place) -> Value:
        first, last = place.step, place.step + len(run.terms)
        if (first, last) == (0, place.stack.shape[0]):
            return place.stack
        return make("getitem", (place.stack, (slice(first, last, None),)), (last - first, *place.stack.shape[1:]))

    gone = set(run.terms)
    left = [term for term in terms if term not in gone]
    whole = None if left else total
    x = steps(run.x)
    if run.y is None:
        part = make("sum", (x, (-3, -2), False), total.shape, whole)
    else:
        y = steps(run.y)
        rows = x.shape[0] * x.shape[1]
        flat_x, flat_y = (make("reshape", (v, (rows, v.shape[2])), (rows, v.shape[2])) for v in (x, y))
        turned = make("permute_dims", (flat_x, (1, 0)), (x.shape[2], rows))
        part = make("matmul", (turned, flat_y), total.shape, whole)
    for number, term in enumerate(left):
        part = make("add", (part, term), total.shape, total if number == len(left) - 1 else None)
