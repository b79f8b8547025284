"""Which of the values that walks need are dropped: by regions, and where what is cheap is computed again."""

from __future__ import annotations

from typing import Any, Callable, Container

from ....autodiff.checkpointing.strategies import Region
from ....operations import OPERATIONS
from ...program import Value
from .flow import Flow

#: Instructions that balanced checkpointing has run again at most, to make one value: a norm or an activation takes up
#: to ten.
LONGEST = 24

_SUMMARY = 8  # times as large as what regions keep of a reduction is what was reduced, at least


class Again:
    """What it takes to make a value again: the roots to compute, and those that have to be kept for that.

    Roots of which `is_there` is true are kept at any rate; those of which `may_run` is not cannot be computed again.
    """

    def __init__(
        self, flow: Flow, root: Value, is_there: Callable[[Value], bool], may_run: Callable[[Value], bool], most: int
    ) -> None:
        self.computed: dict[Value, None] = {}
        self.kept: dict[Value, None] = {}  # which would not be there otherwise
        self.is_possible = may_run(root)
        stack = [root]
        while stack and self.is_possible:
            current = stack.pop()
            if current in self.computed:
                continue
            self.computed[current] = None
            self.is_possible = len(self.computed) <= most
            for operand in flow.operands(current):
                if not flow.is_made(operand) or flow.is_free(operand) or is_there(operand):
                    continue
                if may_run(operand):
                    stack.append(operand)
                else:
                    self.kept[operand] = None


def dropped_by_regions(flow: Flow) -> set[Value]:
    """What regions make and nobody uses outside of them but walks."""
    dropped = set()
    for root in flow.made():
        region = flow.region_of(root)
        if region is None or root in flow.wanted or not flow.can_run_again(root) or _is_summary(flow, root):
            continue
        *_, outermost = region.around()
        own = flow.walk_of(root)
        uses = [flow.instructions[use].mark for use in flow.uses.get(root, ())]
        if all(mark.walk not in (0, own) or _is_within(mark.strategy, outermost) for mark in uses):
            dropped.add(root)
    return dropped


def _is_summary(flow: Flow, root: Value) -> bool:
    """Whether a root is a mean or the like, which takes little memory and another pass over what it was made of."""
    one = flow.makers[root]
    operation = OPERATIONS.get(one.op)
    is_reduction = operation is not None and operation.reduces
    return is_reduction and _SUMMARY * root.nbytes <= sum(value.nbytes for value in one.values())


def _is_within(strategy: object, region: Region) -> bool:
    return isinstance(strategy, Region) and region in strategy.around()


def drop_cheap(flow: Flow, dropped: set[Value], strategies: Container[Any]) -> None:
    """Add to `dropped` what was made under one of these and follows cheaply from less memory than it takes."""
    kept: set[Value] = set(flow.wanted)

    def is_cheap(root: Value) -> bool:
        operation = OPERATIONS.get(flow.makers[root].op)
        return operation is not None and operation.cheap and flow.strategy_of(root) in strategies

    for root in flow.made():
        if root in dropped or root in kept or not flow.saved_uses(root):
            continue
        if not is_cheap(root):
            kept.add(root)
            continue
        again = Again(flow, root, kept.__contains__, is_cheap, LONGEST)
        if again.is_possible and sum(value.nbytes for value in again.kept) < root.nbytes:
            dropped.update(again.computed)
            kept.update(again.kept)
        else:
            kept.add(root)
