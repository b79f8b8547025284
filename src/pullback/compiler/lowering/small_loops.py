"""Small loops of one size as one loop, for targets where launching a kernel costs more than what it does.

Weights are copied before anything else happens: what waits for nothing can be done together.
"""

from __future__ import annotations

from typing import Any

from .fusion import Group, join
from .views import c_strides

_MOST_NODES = 160
_MOST_ARRAYS = 36


def join_small(groups: list[Group], most: int) -> list[Group]:
    """Join loops over at most so many elements with others of their size that wait for nothing either."""
    found: dict[Any, list[Group]] = {}
    for group in groups:
        if _is_small(group, most) and not group.before:
            found.setdefault(tuple(group.sizes), []).append(group)
    for sizes, alike in found.items():
        places = list(c_strides(sizes))  # any strides that say which axes correspond: all of both
        open_ones: list[Group] = []
        for group in alike:
            if not any(join(one, group, places, places, _MOST_NODES, _MOST_ARRAYS) for one in open_ones):
                open_ones.append(group)
    return [group for group in groups if group.nodes]


def _is_small(group: Group, most: int) -> bool:
    size = 1
    for n in group.sizes:
        size *= n
    return group.loops and bool(group.sizes) and not group.reduces and group.inner is None and size <= most
