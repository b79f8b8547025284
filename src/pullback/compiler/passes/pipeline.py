"""All passes, in an order in which each leaves work for the next."""

from __future__ import annotations

from ..program import Program
from . import algebra, layout, parts, shrink_reductions
from .common_subexpressions import without_common_subexpressions
from .constants import with_folded_constants
from .dead_code import without_dead_code
from .loops import with_simpler_loops
from .rewriting import merged, rewritten
from .sums_of_steps import with_joined_steps

#: Arithmetic, reductions and movement in one walk: each makes room for the others.
SIMPLIFICATION = merged(algebra.FILLED, layout.RULES, parts.RULES, shrink_reductions.RULES, algebra.ELEMENTWISE)

_ROUNDS = 4  # one finds nearly everything; more only follow as long as something changes


def optimize(program: Program) -> Program:
    """A program that computes the same with less. What it is given and gives is the same, too."""
    program = with_simpler_loops(without_dead_code(program), optimize)
    for rounds in range(_ROUNDS):
        simpler = rewritten(program, SIMPLIFICATION)
        if simpler is program and rounds:
            break  # the other passes have seen this program, and leave nothing to themselves
        program = with_folded_constants(simpler)
        program = without_common_subexpressions(program)
        program = without_dead_code(program)
    joined = with_joined_steps(program)
    return program if joined is program else without_dead_code(without_common_subexpressions(joined))
