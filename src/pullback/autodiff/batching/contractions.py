"""Forms of products: stacks are stacks of matrices, or one more label of an einsum."""

from __future__ import annotations

import math
from typing import Any

from .call import Call
from .forms import form

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@form
def matmul(call: Call) -> Any:
    x, y = call.xs
    rank_x, rank_y = call.rank(0), call.rank(1)
    if rank_x == 1 and call.stacked[0] and not call.stacked[1]:
        if rank_y <= 2:  # the examples are the rows of one matrix
            return call.xp.matmul(x, y)
    elif call.stacked[0] and not call.stacked[1] and rank_y == 2:
        rows = call.xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
        return call.xp.reshape(call.xp.matmul(rows, y), (*x.shape[:-1], y.shape[-1]))
    elif call.stacked[1] and not call.stacked[0] and rank_x == 2 and rank_y == 1:
        return call.xp.matmul(y, call.xp.matrix_transpose(x))
    rank = max(rank_x, rank_y, 2)
    x = call.xp.expand_dims(x, (-2,)) if rank_x == 1 else x
    y = call.xp.expand_dims(y, (-1,)) if rank_y == 1 else y
    both = call.like([x, y])
    out = call.xp.matmul(both.aligned(0, rank), both.aligned(1, rank))
    dropped = tuple([axis for axis, rank in ((-2, rank_x), (-1, rank_y)) if rank == 1])
    return call.xp.squeeze(out, dropped) if dropped else out


@form
def outer(call: Call) -> Any:
    rank = max(call.rank(0), call.rank(1))
    return call.xp.outer(call.aligned(0, rank), call.aligned(1, rank))


@form
def linear(call: Call) -> Any:
    if call.stacked[1] or call.stacked[2]:
        return None
    return call.run(call.xs, call.static)


@form
def solve(call: Call) -> Any:
    x, y = call.xs
    if call.rank(1) != 1:
        return aligned_matrices(call)
    columns = call.xp.expand_dims(y, (-1,))
    return call.xp.squeeze(aligned_matrices(call.like([x, columns])), (-1,))


def aligned_matrices(call: Call) -> Any:
    rank = max(call.rank(0), call.rank(1))
    return call.run([call.aligned(0, rank), call.aligned(1, rank)], call.static)


@form
def tensordot(call: Call) -> Any:
    axes_x, axes_y = call.static[0]
    rank_x, rank_y = call.rank(0), call.rank(1)
    labels_x = list(_LETTERS[:rank_x])
    labels_y = list(_LETTERS[rank_x : rank_x + rank_y])
    for a, b in zip(axes_x, axes_y):
        labels_y[b] = labels_x[a]
    free = [n for a, n in enumerate(labels_x) if a - rank_x not in axes_x]
    free += [n for a, n in enumerate(labels_y) if a - rank_y not in axes_y]
    return _einsum(call, [labels_x, labels_y], free)


@form
def einsum(call: Call) -> Any:
    inputs, output = call.static[0].split("->")
    return _einsum(call, [list(term) for term in inputs.split(",")], list(output))


def _einsum(call: Call, terms: list[list[str]], output: list[str]) -> Any:
    used = set(output).union(*terms)
    label = next(letter for letter in _LETTERS if letter not in used)
    named = ["".join([label, *term] if flag else term) for term, flag in zip(terms, call.stacked)]
    return call.xp.einsum(call.xs, f"{','.join(named)}->{label}{''.join(output)}")
