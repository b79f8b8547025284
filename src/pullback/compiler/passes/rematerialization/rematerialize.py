"""Programs in which walks compute again what checkpointing strategies do not keep for them."""

from __future__ import annotations

from typing import Any

from ....autodiff.checkpointing.budget import BudgetCheckpointing
from ....autodiff.checkpointing.strategies import BalancedCheckpointing
from ...program import Instruction, Program, Value
from ..dead_code import without_dead_code
from .budget import within_budgets
from .choices import drop_cheap, dropped_by_regions
from .emission import Emission, peak_bytes
from .flow import FLOPS_PER_BYTE, Flow, is_free, is_view, standing_alone


def rematerialized(
    program: Program, given: frozenset[Value] = frozenset(), flops_per_byte: int = FLOPS_PER_BYTE
) -> Program:
    """`program` with what its strategies drop made again where walks need it; itself if there is no strategy.

    `given` are values that are there before the program runs, though it has instructions for them; `flops_per_byte`
    is how much work on a product takes as long as reading a byte.
    """
    if all(one.mark.strategy is None for one in program.instructions):
        return program
    flow = Flow(without_dead_code(program), given, flops_per_byte)
    dropped = dropped_by_regions(flow)
    strategies = strategies_of(flow)
    drop_cheap(flow, dropped, [one for one in strategies if isinstance(one, BalancedCheckpointing)])
    budgets = [one for one in strategies if isinstance(one, BudgetCheckpointing)]
    if budgets:
        instructions = within_budgets(flow, dropped, budgets)
    else:
        instructions = Emission(flow, dropped).instructions if dropped else flow.instructions
    if instructions is flow.instructions:
        return program
    made = without_dead_code(program.replaced(instructions, {}))  # what walks alone have used, and views of it
    return made.replaced(_waiting(made.instructions), {})


def _waiting(instructions: list[Instruction]) -> list[Instruction]:
    """Instructions that wait for what is there: where that is gone, for what others have waited for before."""
    there: set[Value] = set()
    token: Value | None = None
    found = []
    for one in instructions:
        if one.after is not None:
            token = one.after if one.after in there else token
            one = one.waiting_for(token)
        there.update(one.results)
        found.append(one)
    return found


def walk_apart(program: Program, walk: int, given: frozenset[Value] = frozenset()) -> list[Instruction] | None:
    """What is left of a program's last walk, for a program of its own, when strategies have dropped what they drop.

    Views and numbers that it uses are made in it. None where nothing is made again.
    """
    made = rematerialized(program, given)
    if made is program:
        return None
    before = {value: one for one in program.instructions if is_view(one) or is_free(one) for value in one.results}
    known: set[Value] = set()
    apart: list[Instruction] = []

    def add(one: Instruction) -> None:
        one = standing_alone(one)
        for value in one.values():
            if value in before and value not in known:
                add(before[value])
        known.update(one.results)
        apart.append(one.waiting_for(None))

    for one in made.instructions:
        if one.mark.walk == walk and not known.issuperset(one.results):
            add(one)
    return apart


def strategies_of(flow: Flow) -> list[Any]:
    """The strategies under which anything was made that a walk needs."""
    return list(dict.fromkeys(flow.strategy_of(root) for root in flow.made() if flow.saved_uses(root)))


def saved_bytes(program: Program, before: Program, given: frozenset[Value] = frozenset()) -> int:
    """The most bytes that a program keeps for walks at a time: of what was made before, and of what they make again.

    `before` is the program as it was before anything was made again.
    """
    flow = Flow(before, given)
    return peak_bytes(program.instructions, flow, lambda root: root not in flow.wanted)
