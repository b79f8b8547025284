"""Loops with less in them: what nobody needs, what is the same at every step, and what is there already is left out.

The body is optimised like any program. What it computes of constants alone is computed once, before the loop.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable

from ..iteration import ITERATE
from ..program import Instruction, Program, Value, mapped
from .loop_parts import LoopParts
from .loop_products import Products
from .operations import mentions


def with_simpler_loops(program: Program, optimize: Callable[[Program], Program]) -> Program:
    """`program` with less to do in its loops; `optimize` is applied to what they repeat."""
    if not any(one.op == ITERATE for one in program.instructions):
        return program
    uses = Counter(value for one in program.instructions for value in one.values())
    uses.update(program.wanted())
    substitutes: dict[Value, Value] = {}
    kept: list[Instruction] = []
    constants: dict[Value, Any] = {}
    for one in program.instructions:
        if substitutes and mentions(one.args, substitutes):
            one = one.with_args(mapped(one.args, lambda value: substitutes.get(value, value)))
        if one.op != ITERATE:
            kept.append(one)
            continue
        loop = LoopParts(one)
        loop.fix_what_stays(substitutes)
        loop.drop_unneeded({value for value in one.results if uses[value]})
        loop.body = optimize(loop.body)
        loop.share_outputs(substitutes)
        kept += loop.take_out_what_stays()
        products = Products(loop)
        products.take_out()
        kept += products.before
        uses.update([value for after in products.after for value in after.values()])
        loop.drop_unneeded({value for value in loop.results if uses[value]})
        constants |= loop.take_out_constants()
        if loop.results:
            kept.append(loop.instruction())
        kept += products.after
    made = program.replaced(kept, substitutes)
    return Program([*made.inputs, *constants], kept, made.outputs, made.updates, {**made.constants, **constants})
