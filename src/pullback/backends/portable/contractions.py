"""Portable kernels: sums of products over chosen axes, as the matrix products that they are."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np


def einsum(xp: Any, xs: Any, subscripts: str) -> Any:
    """A product of arrays in canonical form (see functions/linear.py), pair by pair, in the order NumPy would take."""
    inputs, output = subscripts.split("->")
    terms = list(zip(inputs.split(","), xs))
    path: list[tuple[int, ...]] = [tuple(range(len(terms)))]
    if len(terms) > 2:
        shapes = [np.broadcast_to(0.0, x.shape) for x in xs]
        path = np.einsum_path(subscripts, *shapes, optimize="greedy")[0][1:]
    for positions in path:
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)]
        while len(chosen) > 1:
            first, second = chosen.pop(), chosen.pop()
            needed = set(output).union(*(labels for labels, _ in (*terms, *chosen)))
            chosen.append(_contracted(xp, first, second, needed))
        terms.append(chosen[0])
    labels, out = terms[0]
    return _permuted(xp, out, [labels.index(label) for label in output])


def tensordot(xp: Any, x: Any, y: Any, axes: Any) -> Any:
    """The product summed over pairs of axes; then come the other axes of x, and those of y."""
    over_x, over_y = [[axis % n for axis in side] for side, n in zip(axes, (len(x.shape), len(y.shape)))]
    kept_x = [axis for axis in range(len(x.shape)) if axis not in over_x]
    kept_y = [axis for axis in range(len(y.shape)) if axis not in over_y]
    shape = [x.shape[axis] for axis in kept_x], [x.shape[axis] for axis in over_x], [y.shape[axis] for axis in kept_y]
    left = xp.reshape(_permuted(xp, x, [*kept_x, *over_x]), (prod(shape[0]), prod(shape[1])))
    right = xp.reshape(_permuted(xp, y, [*over_y, *kept_y]), (prod(shape[1]), prod(shape[2])))
    return xp.reshape(xp.matmul(left, right), (*shape[0], *shape[2]))


def _contracted(xp: Any, first: Any, second: Any, needed: set[str]) -> tuple[str, Any]:
    """The product of two terms, summed over the labels that are not needed, as a batch of matrix products."""
    (left, x), (right, y) = first, second
    batch = [label for label in left if label in right and label in needed]
    summed = [label for label in left if label in right and label not in needed]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    size = dict(zip(left, x.shape)) | dict(zip(right, y.shape))
    sizes, m, k, n = (
        [size[label] for label in batch], *(prod([size[label] for label in part]) for part in (rows, summed, columns)),
    )  # fmt: skip
    x = xp.reshape(_permuted(xp, x, [left.index(label) for label in (*batch, *rows, *summed)]), (*sizes, m, k))
    y = xp.reshape(_permuted(xp, y, [right.index(label) for label in (*batch, *summed, *columns)]), (*sizes, k, n))
    labels = "".join((*batch, *rows, *columns))
    out = xp.matmul(x, y) if summed else x * y
    return labels, xp.reshape(out, tuple([size[label] for label in labels]))


def _permuted(xp: Any, x: Any, order: list[int]) -> Any:
    return x if order == sorted(order) else xp.permute_dims(x, tuple(order))
