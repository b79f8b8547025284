"""Products of loops for all steps at once: one large product before or after a loop in place of one in every step.

A slice times a constant matrix is computed before the loop; an output that is such a product, and sums over all steps
of products and of rows (the gradients of weights and biases), after it, from stacks of what they are made of.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..program import Instruction, Value
from .loop_parts import LoopParts

_EXACT = ("float32", "float64")  # half precision would be rounded elsewhere
#: How many times the bytes of what is there already a stack may have that is made for this.
_MOST_GROWTH = 4


class Products:
    """What can be taken out of a loop: instructions for before and for after it."""

    def __init__(self, loop: LoopParts) -> None:
        self.loop = loop
        self.steps = loop.iteration.steps
        self.before: list[Instruction] = []
        self.after: list[Instruction] = []
        self.makers = {value: one for one in loop.body.instructions for value in one.results}
        self.uses = Counter(value for one in loop.body.instructions for value in one.values())
        self.uses.update(loop.body.outputs)

    def take_out(self) -> None:
        self._slices_first()
        self._outputs_last()
        self._sums_last()

    # -- before the loop ---------------------------------------------------------------------------------

    def _slices_first(self) -> None:
        loop = self.loop
        kept: list[Instruction] = []
        for one in loop.body.instructions:
            product = self._by_constant(one)
            if product is None or product[0] not in loop.slices or not self._fits(one.result, [product[0]]):
                kept.append(one)
                continue
            x, matrix = product
            loop.slices[one.result] = self._product(self.before, loop.slices[x], matrix(self.before), one)
        if len(kept) < len(loop.body.instructions):
            loop.replace(loop.body.outputs, kept)

    def _by_constant(self, one: Instruction) -> tuple[Value, Any] | None:
        """A product of an array with one or two axes by a constant matrix: the array, and what makes the matrix."""
        if one.op != "matmul" or one.result.dtype.name not in _EXACT:
            return None
        x, y = one.args
        if x.ndim not in (1, 2) or y.ndim != 2 or not x.dtype == y.dtype == one.result.dtype:
            return None
        if y in self.loop.constants:
            return x, lambda instructions: self.loop.constants[y]
        turned = self.makers.get(y)
        if turned is not None and turned.op == "permute_dims" and turned.args[0] in self.loop.constants:
            inner = self.loop.constants[turned.args[0]]
            return x, lambda instructions: _made(instructions, "permute_dims", (inner, (1, 0)), y.shape, y, one.site)
        return None

    def _product(self, instructions: list[Instruction], stack: Value, matrix: Value, one: Instruction) -> Value:
        """The products of all steps."""
        rows, size = stack.size // max(stack.shape[-1], 1), one.result.shape[-1]
        flat = _made(
            instructions, "reshape", (stack, (rows, stack.shape[-1])), (rows, stack.shape[-1]), stack, one.site
        )
        whole = _made(instructions, "matmul", (flat, matrix), (rows, size), stack, one.site)
        shape = (self.steps, *one.result.shape)
        return _made(instructions, "reshape", (whole, shape), shape, stack, one.site)

    def _fits(self, made: Value, others: list[Value]) -> bool:
        return made.nbytes <= _MOST_GROWTH * max(sum(value.nbytes for value in others), 1)

    # -- after the loop ----------------------------------------------------------------------------------

    def _stack(self, value: Value) -> Value:
        """The values of all steps, as something that the loop is given or makes."""
        loop = self.loop
        if value in loop.slices:
            return loop.slices[value]
        outputs = loop.body.outputs[len(loop.carry) :]
        if value in outputs:
            return loop.results[len(loop.carry) + outputs.index(value)]
        stack = Value((self.steps, *value.shape), value.dtype, value.site)
        loop.results.append(stack)
        loop.replace([*loop.body.outputs, value])
        return stack

    def _is_of_steps(self, value: Value) -> bool:
        loop = self.loop
        return value in loop.slices or value in loop.carry or value in self.makers

    def _outputs_last(self) -> None:
        loop = self.loop
        for value in list(loop.body.outputs[len(loop.carry) :]):
            one = self.makers.get(value)
            product = None if one is None or self.uses[value] != 1 else self._by_constant(one)
            if one is None or product is None or not self._is_of_steps(product[0]):
                continue
            x, matrix = product
            if x not in loop.body.outputs and x not in loop.slices and not self._fits(x, [value]):
                continue
            place = len(loop.carry) + loop.body.outputs[len(loop.carry) :].index(value)
            result = loop.results.pop(place)
            loop.replace([*loop.body.outputs[:place], *loop.body.outputs[place + 1 :]])
            self._product(self.after, self._stack(x), matrix(self.after), one)
            self.after[-1].results = (result,)

    def _sums_last(self) -> None:
        loop = self.loop
        for value in list(loop.carry):
            place = list(loop.carry).index(value)
            terms = self._terms(loop.body.outputs[place], value)
            if not terms or not all(self._is_taken(term) for term in terms):
                continue
            total = loop.carry.pop(value)
            result = loop.results.pop(place)
            loop.replace([*loop.body.outputs[:place], *loop.body.outputs[place + 1 :]])
            for term in terms:
                part = self._total(term)
                site = self.makers[term].site
                total = _made(self.after, "add", (total, part), result.shape, result, site)
            self.after[-1].results = (result,)

    def _terms(self, total: Value, value: Value) -> list[Value]:
        """What is added to a part of the carry that is used for nothing else; nothing where that is not so."""
        if self.uses[value] != 1 or value.dtype.name not in _EXACT:
            return []
        found: list[Value] = []
        waiting = [total]
        while waiting:
            part = waiting.pop()
            one = self.makers.get(part)
            if one is not None and one.op == "add" and self.uses[part] == 1:
                if not all(type(x) is Value and (x.shape, x.dtype) == (value.shape, value.dtype) for x in one.args):
                    return []
                waiting += one.args
            elif part is not value:
                found.append(part)
        return found

    def _is_taken(self, term: Value) -> bool:
        """Whether a term is the product of two arrays of steps, or the sum of one's rows."""
        factors = self._factors(term)
        return self.uses[term] == 1 and bool(factors) and all(map(self._is_of_steps, factors))

    def _factors(self, term: Value) -> list[Value]:
        one = self.makers.get(term)
        if one is None:
            return []
        if one.op == "sum" and one.args[1] in ((-2,), (0,)) and not one.args[2] and one.args[0].ndim == 2:
            return [one.args[0]] if one.args[0].dtype == term.dtype else []
        if one.op == "matmul":
            turned, y = self.makers.get(one.args[0]), one.args[1]
            if turned is not None and turned.op == "permute_dims" and y.ndim == one.args[0].ndim == 2:
                x = turned.args[0]
                return [x, y] if x.dtype == y.dtype == term.dtype else []
        return []

    def _total(self, term: Value) -> Value:
        """The sum of a term over all steps."""
        one, (x, *others) = self.makers[term], self._factors(term)
        rows = self.steps * x.shape[0]

        def flat(value: Value) -> Value:
            stack, shape = self._stack(value), (rows, value.shape[1])
            return _made(self.after, "reshape", (stack, shape), shape, value, one.site)

        first = flat(x)
        if not others:
            return _made(self.after, "sum", (first, (-2,), False), term.shape, term, one.site)
        turned = _made(self.after, "permute_dims", (first, (1, 0)), (x.shape[1], rows), x, one.site)
        return _made(self.after, "matmul", (turned, flat(others[0])), term.shape, term, one.site)


def _made(
    instructions: list[Instruction], op: str, args: tuple[Any, ...], shape: tuple[int, ...], like: Value, site: str
) -> Value:
    value = Value(shape, like.dtype, site)
    instructions.append(Instruction(op, args, (value,), site))
    return value
