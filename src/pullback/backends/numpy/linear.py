"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as _np

from ...errors import ShapeError as _ShapeError
from .precision import is_half as _is_half

_float32 = _np.float32


def matmul(x: Any, y: Any) -> Any:
    try:
        if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous and x.size:  # one product, not many
            return matmul(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
        if x.dtype.itemsize == 2 and _is_half(x) and _is_half(y):  # no BLAS for these
            return _np.matmul(x.astype(_float32), y.astype(_float32)).astype(_np.result_type(x, y))
        return _np.matmul(x, y)
    except (ValueError, AttributeError) as error:  # a Python number has no axes at all
        a, b = getattr(x, "shape", ()), getattr(y, "shape", ())
        raise _ShapeError(
            f"matmul: shapes {a} and {b} do not fit: the last axis of the first must be as long as the "
            f"{'last but one' if len(b) > 1 else 'only'} axis of the second, and neither may have no axes at all."
        ) from error


def linear(x: Any, weight: Any, bias: Any) -> Any:
    out = matmul(x, weight.T)
    if bias is None:
        return out
    if out.ndim and bias.dtype == out.dtype:
        out += bias
        return out
    return out + bias


def vecdot(x: Any, y: Any, axis: int) -> Any:
    if _is_half(x) and _is_half(y):
        return _np.vecdot(x.astype(_float32), y.astype(_float32), axis=axis).astype(_np.result_type(x, y))
    return _np.vecdot(x, y, axis=axis)


def tensordot(x: Any, y: Any, axes: Any) -> Any:
    if _is_half(x) and _is_half(y):
        return _np.tensordot(x.astype(_float32), y.astype(_float32), axes).astype(_np.result_type(x, y))
    return _np.tensordot(x, y, axes)


def diagonal(x: Any, offset: int) -> Any:
    return _np.diagonal(x, offset, -2, -1)


def place_diagonal(value: Any, shape: Any, offset: int) -> Any:
    """Zeros with `value` on a diagonal."""
    out = _np.zeros(shape, value.dtype)
    first = _np.arange(value.shape[-1])
    out[..., first + max(-offset, 0), first + max(offset, 0)] = value
    return out


def einsum(xs: Any, subscripts: str) -> Any:
    """A product of arrays in canonical form (see functions/linear.py), pair by pair."""
    inputs, output = subscripts.split("->")
    terms = list(zip(inputs.split(","), xs))
    if len(terms) > 2:
        path = _np.einsum_path(subscripts, *xs, optimize="greedy")[0][1:]
    else:
        path = [tuple(range(len(terms)))]
    for positions in path:
        chosen = [terms.pop(i) for i in sorted(positions, reverse=True)]
        while len(chosen) > 1:
            first, second = chosen.pop(), chosen.pop()
            needed = set(output).union(*(labels for labels, _ in (*terms, *chosen)))
            chosen.append(_contract(first, second, needed))
        terms.append(chosen[0])
    labels, out = terms[0]
    return _np.transpose(out, [labels.index(label) for label in output])


def _contract(first: Any, second: Any, needed: set[str]) -> tuple[str, Any]:
    """The product of two terms, summed over the labels that are not needed, as a batch of matrix products."""
    (left, x), (right, y) = first, second
    batch = [label for label in left if label in right and label in needed]
    summed = [label for label in left if label in right and label not in needed]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    size = dict(zip(left, x.shape)) | dict(zip(right, y.shape))

    def sizes(labels: list[str]) -> list[int]:
        return [size[label] for label in labels]

    def count(labels: list[str]) -> int:
        return int(_np.prod(sizes(labels), dtype=int))

    x = _np.transpose(x, [left.index(label) for label in (*batch, *rows, *summed)])
    y = _np.transpose(y, [right.index(label) for label in (*batch, *summed, *columns)])
    if summed:
        x = x.reshape(*sizes(batch), count(rows), count(summed))
        y = y.reshape(*sizes(batch), count(summed), count(columns))
        out = matmul(x, y)
    else:
        x = x.reshape(*sizes(batch), count(rows), 1)
        y = y.reshape(*sizes(batch), 1, count(columns))
        out = x * y
    labels = (*batch, *rows, *columns)
    return "".join(labels), out.reshape(sizes(list(labels)))
