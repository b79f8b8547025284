"""The instruction `linear_cross_entropy`: what it means, and in how many chunks of rows it is computed.

It is what remains of a matrix product whose results are the logits of a cross-entropy, and of the products of the
logits' gradient: the logits themselves, the largest arrays of a language model by far, are not among its results. Rows
do not need each other: a target has the logits of a chunk of them at a time, and makes all that needs these at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host import HOST, provide
from ..program import Value

#: Logits that are in memory at once, in bytes.
CHUNK_BYTES = 1 << 28
#: Chunks have a multiple of so many rows: products of matrices go in tiles.
MULTIPLE = 128


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers of a dtype are added up."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def rows_at_once(rows: int, classes: int, dtype: np.dtype[Any]) -> int:
    """How many rows of logits a chunk has."""
    chunks = min(-(-rows * classes * dtype.itemsize // CHUNK_BYTES), rows)
    chunk = -(-rows // chunks)
    return chunk if chunk < MULTIPLE else min(-(-chunk // MULTIPLE) * MULTIPLE, rows)


def summed_in(dtype: np.dtype[Any], rows: int, chunk: int) -> np.dtype[Any]:
    """The dtype of what is added up over chunks: one sum is rounded as it is, several only when all are added."""
    return dtype if chunk >= rows else wide(dtype)


def linear_cross_entropy(
    x: Any, y: Any, bias: Any, target: Any, weight: Any, scale: Any, ignored: int, smoothing: float, rights: Any,
    lefts: Any, sums: bool, chunk: int,
) -> tuple[Any, ...]:  # fmt: skip
    """The losses of rows with logits x @ y + bias, and products of the gradient g that `scale` times these losses have.

    First the losses, one for each row, then g @ right for each of `rights`, g^T @ left for each (left, is_turned) of
    `lefts`, or left^T @ g if it is turned, and the sum of g's rows if `sums`. Without `scale` there are losses alone.
    What is kept wide (losses, and sums over rows in several chunks) is so for half precision.
    """
    dtype = x.dtype
    logits = HOST.matmul(x, y).astype(wide(dtype))
    if bias is not None:
        logits = logits + bias.astype(logits.dtype)
    losses, lse, total = HOST.cross_entropy(logits, target, weight, ignored, "none", smoothing)
    if scale is None:
        return (losses,)
    g = HOST.cross_entropy_gradient(
        np.broadcast_to(scale, target.shape), logits, target, weight, lse, total, ignored, "none", smoothing
    ).astype(dtype)
    made = [losses, *[HOST.matmul(g, right) for right in rights]]
    kept = summed_in(dtype, len(x), chunk)
    for left, is_turned in lefts:
        factors = (left.T, g) if is_turned else (g.T, left)
        made.append(HOST.matmul(*[one.astype(wide(dtype)) for one in factors]).astype(kept))
    if sums:
        made.append(np.add.reduce(g.astype(wide(dtype)), 0).astype(wide(dtype)))
    return tuple(made)


provide(linear_cross_entropy)


def forms(
    x: Value, y: Value, rights: tuple[Value, ...], lefts: tuple[tuple[Value, bool], ...], sums: bool, chunk: int
) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    """The shapes and dtypes of what it makes."""
    (rows, _), classes, dtype = x.shape, y.shape[1], x.dtype
    made = [((rows,), wide(dtype)), *[((rows, right.shape[1]), dtype) for right in rights]]
    for left, is_turned in lefts:
        shape = (left.shape[1], classes) if is_turned else (classes, left.shape[1])
        made.append((shape, summed_in(dtype, rows, chunk)))
    return [*made, ((classes,), wide(dtype))] if sums else made
