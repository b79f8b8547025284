"""Sorting, searching and sets."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    def sort_x(g: Any, x: Any, axis: Any, descending: bool, stable: bool) -> Any:
        order = xp.argsort(x, axis, descending, stable)
        place = xp.argsort(order, axis, False, False)  # the inverse of a permutation sorts it
        return xp.take_along_axis(g, place, axis[0])

    op("sort", "x", "axis descending=False stable=True", batch="leading", x=sort_x)
    op("argsort", "x", "axis descending=False stable=True", batch="leading")
    op(
        "top_indices", "x", "k axis largest=True", batch="leading"
    )  # of the k largest (smallest) elements, the first of them first
    # of the largest (smallest) element so far, the last of equal ones
    op("running_indices", "x", "axis largest=True", batch="leading")
    op(
        "nonzero",
        "x",
        batch="refused",
        outputs="*indices",
        instead="pb.where(condition, x, y), or multiply by the mask",
    )
    op("searchsorted", "x values sorter", "side")
    op(
        "unique", "x", outputs="indices inverse counts",  # of a flat array; `indices` are those of first occurrences
        batch="refused",
        instead="a fixed number of classes, and `pb.equal` against each",
    )  # fmt: skip
    op("isin", "x values", "invert=False")
