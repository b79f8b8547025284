"""Attention, and the rotary embedding of positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..autodiff.apply import apply
from ..autodiff.base import values_of
from ..autodiff.creation import default_dtype, given as asarray
from ..autodiff.fast import call_for
from ..dtypes import REAL
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["rotary_embedding", "rotary_tables", "scaled_dot_product_attention"]

_attention = call_for("attention")
_rotary_embedding = call_for("rotary_embedding")


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.mT * scale + attn_mask) @ value, for arrays (..., heads, length, width).

    The scores are never in memory all at once. A query that sees no key gives zeros.

    Parameters
    ----------
    query : array
        (..., heads, queries, width).
    key : array
        (..., heads, keys, width).
    value : array
        (..., heads, keys, width of values).
    attn_mask : array, optional
        It broadcasts to the scores (..., heads, queries, keys). Truth values: True is seen. Numbers are added to
        the scores, and may have a gradient.
    dropout_p : float
        The probability that a share is set to zero. It counts whenever it is not 0.
    is_causal : bool
        Whether query i sees keys 0 to i only.
    scale : float, optional
        What scores are multiplied by, by default 1 / sqrt(width).
    enable_gqa : bool
        Whether key and value may have fewer heads, each for several heads of query in a row.

    Returns
    -------
    Tensor
        (..., heads, queries, width of values).

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> pb.scaled_dot_product_attention(x, x, pb.tensor([[1.0], [3.0]]), is_causal=True, scale=0.0)
    tensor([[1.],
            [2.]])
    """
    q, k, v = asarray(query), asarray(key), asarray(value)
    shape = q._raw.shape
    if (
        shape == k._raw.shape == v._raw.shape  # self-attention, with nothing to bring together
        and len(shape) > 2
        and attn_mask is None
        and not (dropout_p or enable_gqa)
        and q._raw.dtype in REAL
        and k._raw.dtype in REAL
        and v._raw.dtype in REAL
    ):
        factor = 1.0 / math.sqrt(shape[-1] or 1) if scale is None else float(scale)
        return _attention(q, k, v, None, bool(is_causal), factor, 0.0, 0, 0)
    given = f"got query {q.shape}, key {k.shape}, value {v.shape}"
    name = "scaled_dot_product_attention"
    for x in (q, k, v):
        if x.dtype.kind != "float":
            raise DtypeError(f"{name}: query, key and value must be floating-point, got {x.dtype.name}.")
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"{name}: query, key and value must have at least two axes, (length, width); {given}.")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{name}: query and key must have the same width (last axis); {given}.")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{name}: key and value must have the same length (last axis but one); {given}.")
    if not 0.0 <= dropout_p <= 1.0:
        raise ShapeError(f"{name}: dropout_p must be a probability, from 0 to 1, got {dropout_p!r}.")
    if attn_mask is not None and is_causal:
        raise ShapeError(f"{name}: give attn_mask or is_causal, not both; a mask can hide the future itself.")
    heads = [x.shape[-3] if x.ndim > 2 else 1 for x in (q, k, v)]
    if enable_gqa and not (heads[1] == heads[2] and heads[1] and heads[0] % heads[1] == 0):
        raise ShapeError(f"{name}: the heads of query must be a multiple of those of key and value; {given}.")
    try:
        batch = _broadcast([x.shape[:-3] for x in (q, k, v)])
        common = heads if enable_gqa else _broadcast([(n,) for n in heads]) * 3
    except ValueError:
        hint = "" if enable_gqa else " (for fewer heads of key and value pass enable_gqa=True)"
        raise ShapeError(f"{name}: the axes before the last two must be equal or broadcast{hint}; {given}.") from None
    single = max(q.ndim, k.ndim, v.ndim) == 2
    q, k, v = (_to(x, (*batch, n, *x.shape[-2:])) for x, n in zip((q, k, v), common))
    mask = None if attn_mask is None else _mask(name, attn_mask, (*q.shape[:-1], k.shape[-2]))
    factor = 1.0 / math.sqrt(q.shape[-1] or 1) if scale is None else float(scale)
    key_of_chance, offset = (0, 0)
    if dropout_p:
        from ..random import next_key

        key_of_chance, offset = next_key(math.prod(q.shape[:-1]) * k.shape[-2])
    static = (bool(is_causal), factor, float(dropout_p), key_of_chance, offset)
    out = _attention(q, k, v, mask, *static)
    return _to(out, out.shape[-2:]) if single else out


def _mask(name: str, attn_mask: Any, scores: tuple[int, ...]) -> Tensor:
    mask = asarray(attn_mask)
    if mask.dtype.kind not in ("bool", "float"):
        raise DtypeError(f"{name}: attn_mask must be boolean or floating-point, got {mask.dtype.name}.")
    try:
        fits = _broadcast([mask.shape, scores]) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"{name}: attn_mask of shape {mask.shape} does not broadcast to the scores' {scores}.")
    return mask


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to; ValueError if they do not."""
    import numpy as np

    return np.broadcast_shapes(*shapes)


def _to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` with axes of length 1 added or taken away before, then repeated to `shape`."""
    if x.shape == shape:
        return x
    if math.prod(x.shape) == math.prod(shape):
        return apply(OPERATIONS["reshape"], (x,), (shape,))
    return apply(OPERATIONS["broadcast_to"], (x,), (shape,))


def rotary_tables(
    length: Any,
    width: int,
    base: float = 10000.0,
    interleaved: bool = False,
    dtype: Any = None,
    device: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The cosines and sines (positions, width) that `rotary_embedding` turns pairs of elements by.

    Pair i turns by position / base ** (2 i / width). `length` is a number of positions from 0 on, or the positions.
    With `interleaved` the elements of a pair are neighbours.

    >>> import pullback as pb
    >>> cos, sin = pb.rotary_tables(3, 4)
    >>> cos.shape, sin[0, 0].item()
    ((3, 4), 0.0)
    """
    import numpy as np

    if not isinstance(width, int) or width < 2 or width % 2:
        raise ShapeError(f"rotary_tables: width must be even, it counts elements in pairs; got {width!r}.")
    places = np.arange(length) if isinstance(length, int) else _numbers(length)
    angles = places[..., None] * base ** (-np.arange(0, width, 2) / width)
    angles = np.repeat(angles, 2, -1) if interleaved else np.concatenate([angles, angles], -1)
    chosen = default_dtype() if dtype is None else dtype
    cos, sin = (asarray(f(angles), dtype=chosen, device=device) for f in (np.cos, np.sin))
    return cos, sin


def _numbers(positions: Any) -> Any:
    return values_of(asarray(positions).detach()).astype("float64")


def rotary_embedding(x: ArrayLike, cos: Any, sin: Any, interleaved: bool = False) -> Tensor:
    """Turn pairs of elements of `x` (..., length, width) by angles that grow with the position.

    The result is x * cos + rotate(x) * sin, where rotate makes (-b, a) of a pair (a, b).

    Parameters
    ----------
    x : array
        (..., length, width).
    cos, sin : array
        Tables (length, width) that broadcast to `x`, as `rotary_tables` makes them.
    interleaved : bool
        Whether the elements of a pair are neighbours; otherwise they are width / 2 apart.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rotary_embedding(pb.tensor([[1.0, 2.0]]), pb.tensor([[0.0, 0.0]]), pb.tensor([[1.0, 1.0]]))
    tensor([[-2.,  1.]])
    """
    x, cos, sin = asarray(x), asarray(cos), asarray(sin)
    given = f"got x {x.shape}, cos {cos.shape}, sin {sin.shape}"
    for array in (x, cos, sin):
        if array.dtype.kind != "float":
            raise DtypeError(f"rotary_embedding: x, cos and sin must be floating-point, got {array.dtype.name}.")
    if x.ndim < 1 or x.shape[-1] % 2:
        raise ShapeError(f"rotary_embedding: the last axis of x must be even, it counts elements in pairs; {given}.")
    for table in (cos, sin):
        try:
            fits = table.shape[-1:] == x.shape[-1:] and _broadcast([table.shape, x.shape]) == x.shape
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"rotary_embedding: cos and sin must have the width of x and broadcast to it; {given}. "
                "Make them with `pb.rotary_tables(length, width)`."
            )
    return _rotary_embedding(x, cos, sin, bool(interleaved), False)
