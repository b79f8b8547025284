"""Portable kernels: linear layers with products of two thin matrices beside their weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from .core import raw_dtype
from .packed import Packed, expanded


class LowRank(NamedTuple):
    """The arrays of one projection: (outputs, inputs), (outputs,), (rank, inputs), (outputs, rank), (outputs,)."""

    weight: Any
    bias: Any
    down: Any
    up: Any
    factor: Any


def low_rank_linear(xp: Any, xs: Any, scales: Any, chances: Any, places: Any, forms: Any) -> tuple[Any, ...]:
    """The projections of `x`: factor * (x weight^T + scale * (x down^T) up^T) + bias each, without axes in between.

    With a chance of dropout, everything but x weight^T + bias has its own mask on `x`.
    """
    x, projections = low_rank_parts(xs, forms)
    *leading, _ = x.shape
    x = as_matrix(xp, x)
    seen = seen_inputs(xp, x, chances, places)
    outs = []
    for part, own, hidden, scale in zip(projections, seen, hidden_values(xp, seen, projections), scales):
        change = xp.matmul(hidden * scale, xp.matrix_transpose(part.up))
        weight = expanded(xp, part.weight, raw_dtype(x))
        if part.factor is None:
            out = xp.linear(x, weight, part.bias)
            dtype = raw_dtype(out)
            out = out + change
        else:
            out = xp.linear(own, weight, None)
            dtype = raw_dtype(out)
            out = (out + change) * part.factor
            if own is not x:
                out = out + xp.linear(x - own, weight, part.bias)
            elif part.bias is not None:
                out = out + part.bias
        outs.append(xp.reshape(xp.narrowed(out, dtype), (*leading, part.weight.shape[0])))
    return tuple(outs)


def low_rank_parts(xs: Any, forms: Any) -> tuple[Any, list[LowRank]]:
    """What is in the operation's list of arrays, also in one of flags instead: x, and the arrays of each projection.

    Of packed weights (those that have a form) the first part is with these, the others are behind all of them.
    """
    count = len(LowRank._fields)
    projections = [LowRank(*xs[1 + count * i : 1 + count * (i + 1)]) for i in range(len(forms))]
    rest = iter(xs[1 + count * len(forms) :])
    for i, form in enumerate(forms):
        if form is not None:
            parts = (projections[i].weight, *[next(rest) for _ in form.part_names[1:]])
            projections[i] = projections[i]._replace(weight=Packed(parts, form))
    return xs[0], projections


def first_parts(scales: Any, chances: Any, places: Any, forms: Any) -> int:
    """How many arrays of the list come before the other parts of packed weights."""
    return 1 + len(LowRank._fields) * len(forms)


def as_matrix(xp: Any, x: Any) -> Any:
    """All axes but the last one made one."""
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return x if len(x.shape) == 2 else xp.reshape(x, (rows, x.shape[-1]))


def dropped(xp: Any, x: Any, chance: float, place: Any) -> Any:
    """`x` without what the numbers at a place of a random stream say; `x` itself where the chance is none."""
    if not chance:
        return x
    result = xp.dropout(x, chance, *place)
    return result[0] if isinstance(result, tuple) else result  # a raw kernel's has the residual too


def seen_inputs(xp: Any, x: Any, chances: Any, places: Any) -> list[Any]:
    """What is left of `x` for each projection."""
    return [dropped(xp, x, chance, place) for chance, place in zip(chances, places)]


def hidden_values(xp: Any, seen: Any, projections: Any) -> list[Any]:
    """x down^T for each projection; those with the same `x` read it once."""
    if not share_input(seen):
        return [xp.matmul(x, xp.matrix_transpose(part.down)) for x, part in zip(seen, projections)]
    return list(
        xp.split(xp.matmul(seen[0], xp.matrix_transpose(stacked_downs(xp, projections))), ranks(projections), -1)
    )


def share_input(seen: Any) -> bool:
    return len(seen) > 1 and all(x is seen[0] for x in seen)


def stacked_downs(xp: Any, projections: Any) -> Any:
    return xp.concat([part.down for part in projections], -2)


def ranks(projections: Any) -> tuple[int, ...]:
    return tuple([part.down.shape[0] for part in projections])
