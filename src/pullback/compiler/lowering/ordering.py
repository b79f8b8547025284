"""The order of groups: roughly that of the program, so that values live about as long as they did there."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from .fusion import Group


def ordered(groups: list[Group]) -> list[Group]:
    """Groups in an order in which they can run: of those that can, the one whose last node came first."""
    waiting = {group: len(group.before) for group in groups}
    ready = [(_turn(group), group.index, group) for group in groups if not group.before]
    heapify(ready)
    out: list[Group] = []
    while ready:
        group = heappop(ready)[2]
        out.append(group)
        for other in group.after:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, (_turn(other), other.index, other))
    if len(out) != len(groups):
        raise AssertionError("the groups of a program depend on each other in a circle.")
    return out


def _turn(group: Group) -> int:
    """When a group should run: what only adds up arrays, as soon as these are there and still in the cache."""
    if group.loops and group.before and all(node.reduce == "total" for node in group.nodes if node.root.needed):
        return max(other.index for other in group.before)
    return group.index
