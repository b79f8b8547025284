"""The order of groups: roughly that of the program, so that values live about as long as they did there."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Callable

from .fusion import Group


def ordered(groups: list[Group]) -> list[Group]:
    """Groups in an order in which they can run: of those that can, the one whose last node came first.

    One that was joined with something much later (a check of what it makes) does not hold up those that read it:
    meanwhile all would run that waits for nothing, such as the conversion of every weight of a model.
    """
    waiting = {group: len(group.before) for group in groups}
    turns: dict[Group, int] = {}
    for group in reversed(_after_each_other(groups)):
        turns[group] = min([_turn(group), *[turns[reader] for reader in group.after]])
    ready = [(turns[group], group.index, group) for group in groups if not group.before]
    heapify(ready)
    out: list[Group] = []
    while ready:
        group = heappop(ready)[2]
        out.append(group)
        for other in group.after:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (turns[other], other.index, other))
    return out


def _after_each_other(groups: list[Group]) -> list[Group]:
    """Groups in any order in which they can run."""
    waiting = {group: len(group.before) for group in groups}
    out = [group for group in groups if not group.before]
    for group in out:
        for other in group.after:
            waiting[other] -= 1
            if not waiting[other]:
                out.append(other)
    if len(out) != len(groups):
        raise AssertionError("the groups of a program depend on each other in a circle.")
    return out


def linked(groups: list[Group], is_wanted: Callable[[Group], bool]) -> list[Group]:
    """The groups that are wanted, in an order in which they can run, each waiting only for what it reads.

    After some values are computed again where they are read, nobody may read them where they were made: what else is
    made there can then come later.
    """
    order = [group for group in ordered(groups) if is_wanted(group)]
    there = set(order)
    for group in order:
        group.before, group.after, group.ancestors = set(), set(), 0
    for group in order:
        for node in group.nodes:
            writers = [writer for operand in node.operands for writer in operand.root.writers]
            for writer in (*writers, *node.after, *node.waits):
                if writer.group is not group and writer.group in there:
                    group.comes_after(writer.group)
    return order


def _turn(group: Group) -> int:
    """When a group should run: what only adds up arrays, as soon as these are there and still in the cache."""
    if group.loops and group.before and all(node.reduce == "total" for node in group.nodes if node.root.needed):
        return max(other.index for other in group.before)
    return group.index
