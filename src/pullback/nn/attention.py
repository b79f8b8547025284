"""Attention with several heads."""

from __future__ import annotations

import math
from typing import Any

from ..autodiff.creation import asarray
from ..errors import ConfigurationError, DtypeError, ShapeError
from ..functions.attention import scaled_dot_product_attention
from ..functions.comparisons import logical_and, logical_not
from ..functions.filled import empty, eye, ones, tril, zeros
from ..functions.linear import linear
from ..functions.manipulation import permute_dims, reshape, split, swapaxes
from ..functions.sorting import where
from ..tensors.tensor import Tensor
from . import init
from .dropout import probability
from .linear import Linear
from .module import Module, Parameter


class MultiheadAttention(Module):
    """Attention of several heads between projections of query, key and value: (output, shares or None).

    It is called as `attention(query, key, value)`. Inputs are (length, samples, width); the samples may be left out. In
    `key_padding_mask` (samples, keys) and `attn_mask` (queries, keys) or (samples * heads, queries, keys), True
    *hides*, and floating-point numbers are added to the scores. `is_causal` hides the future, with or without a mask
    beside it. With `need_weights` the second result is the shares (before dropout), averaged over the heads unless
    `average_attn_weights=False`; without, attention is faster. A query that sees nothing gives the output of a zero.

    Parameters
    ----------
    embed_dim : int
        The width of queries and of outputs.
    num_heads : int
        The number of heads, which divides `embed_dim`.
    dropout : float
        The probability that a share is zero, in training.
    bias : bool
        Whether the projections have biases.
    kdim, vdim : int, optional
        The widths of keys and values, by default `embed_dim`.
    batch_first : bool
        Whether inputs and outputs are (samples, length, width) instead.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> attention = pb.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = pb.random.normal((3, 5, 8))
    >>> out, shares = attention(x, x, x, is_causal=True)
    >>> out.shape, shares.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ConfigurationError(
                f"MultiheadAttention: embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}."
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = probability("MultiheadAttention: dropout", dropout)
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first = batch_first

        def weight(outputs: int, inputs: int) -> Tensor:
            return Parameter(empty((outputs, inputs), dtype=dtype, device=device))

        together = self.kdim == embed_dim and self.vdim == embed_dim
        self.in_proj_weight = weight(3 * embed_dim, embed_dim) if together else None
        self.q_proj_weight = None if together else weight(embed_dim, embed_dim)
        self.k_proj_weight = None if together else weight(embed_dim, self.kdim)
        self.v_proj_weight = None if together else weight(embed_dim, self.vdim)
        self.in_proj_bias = Parameter(empty(3 * embed_dim, dtype=dtype, device=device)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the first values anew: Xavier's for the projections of the inputs, zeros for the biases."""
        self.out_proj.reset_parameters()
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend: (output, shares or None). Calling the module calls this.

        Parameters
        ----------
        query : array
            (length, samples, embed_dim), in the order that `batch_first` says; the samples may be left out.
        key : array
            (keys, samples, kdim), likewise; the same as `query` for self-attention.
        value : array
            (keys, samples, vdim), likewise.
        key_padding_mask : array, optional
            (samples, keys): True *hides* a key; numbers are added to its scores.
        need_weights : bool
            Whether to give the shares as well. Without them attention is faster.
        attn_mask : array, optional
            (queries, keys) or (samples * heads, queries, keys): True *hides*; numbers are added to the scores.
        average_attn_weights : bool
            Whether the shares are averaged over the heads.
        is_causal : bool
            Whether the future is hidden, with or without a mask beside it.

        Returns
        -------
        tuple
            The output in the shape of `query`, and the shares before dropout: (samples, queries, keys), or
            (samples, heads, queries, keys), or None.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.zeros((5, 3, 8))
        >>> out, shares = pb.nn.MultiheadAttention(8, 2)(x, x, x, need_weights=False)
        >>> out.shape, shares
        ((5, 3, 8), None)
        """
        if query is key is value:
            query = key = value = asarray(query)
        else:
            query, key, value = asarray(query), asarray(key), asarray(value)
        single = self._check_shapes(query, key, value)
        q, k, v = self._heads(query, key, value, single)
        mask = self._mask(q, k, key_padding_mask, attn_mask, is_causal, single)
        causal = is_causal and mask is None
        dropout = self.dropout if self.training else 0.0
        out = scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        samples, _, length, _ = out.shape
        out = self.out_proj(reshape(permute_dims(out, (0, 2, 1, 3)), (samples, length, self.embed_dim)))
        out = out[0] if single else out if self.batch_first else swapaxes(out, 0, 1)
        if not need_weights:
            return out, None
        # attention to the rows of the unit matrix is the shares themselves, under the same masks
        shares = scaled_dot_product_attention(q, k, eye(k.shape[-2], dtype=k.dtype, device=k.device), mask, 0.0, causal)
        if average_attn_weights:
            shares = shares.mean(axis=1)
        return out, shares[0] if single else shares

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether the axis of samples was left out."""
        shapes = [x.shape for x in (query, key, value)]
        widths = (self.embed_dim, self.kdim, self.vdim)
        of_samples, of_length = (0, 1) if self.batch_first else (1, 0)
        ndim = len(shapes[0])
        fits = ndim in (2, 3) and all(len(s) == ndim and s[-1] == n for s, n in zip(shapes, widths))
        if fits and ndim == 3:
            fits = len({s[of_samples] for s in shapes}) == 1 and shapes[1][of_length] == shapes[2][of_length]
        elif fits:
            fits = shapes[1][0] == shapes[2][0]
        if not fits:
            axes = "(samples, length, width)" if self.batch_first else "(length, samples, width)"
            raise ShapeError(
                f"MultiheadAttention: expected query, key and value {axes} or (length, width) of the widths {widths}, "
                f"got {shapes[0]}, {shapes[1]} and {shapes[2]}."
            )
        return ndim == 2

    def _heads(self, query: Tensor, key: Tensor, value: Tensor, single: bool) -> list[Tensor]:
        """Query, key and value as (samples, heads, length, width of a head)."""
        weights: list[Any] = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key is value:
            together = self._by_head(linear(query, self.in_proj_weight, bias), single)
            return list(split(together, 3, axis=1))
        if self.in_proj_weight is not None:
            weights = list(split(self.in_proj_weight, 3))
        biases = [None] * 3 if bias is None else list(split(bias, 3))
        inputs = zip((query, key, value), weights, biases)
        return [self._by_head(linear(x, weight, offset), single) for x, weight, offset in inputs]

    def _by_head(self, x: Tensor, single: bool) -> Tensor:
        if single:
            x = x[None]
        elif not self.batch_first:
            x = swapaxes(x, 0, 1)
        samples, length, width = x.shape
        return permute_dims(reshape(x, (samples, length, width // self.head_dim, self.head_dim)), (0, 2, 1, 3))

    def _mask(self, q: Tensor, k: Tensor, padding: Any, attention: Any, is_causal: bool, single: bool) -> Any:
        """One mask for the scores (samples, heads, queries, keys), or None: booleans that show, or what is added."""
        samples, queries, keys = q.shape[0], q.shape[2], k.shape[2]
        masks = []
        if padding is not None:
            padding = _hiding("key_padding_mask", padding)
            expected = (keys,) if single else (samples, keys)
            if padding.shape != expected:
                raise ShapeError(
                    f"MultiheadAttention: key_padding_mask has shape {padding.shape}, expected {expected}."
                )
            masks.append(reshape(padding, (samples, 1, 1, keys)))
        if attention is not None:
            attention = _hiding("attn_mask", attention)
            whole = (samples * self.num_heads, queries, keys)
            if attention.shape not in ((queries, keys), whole):
                raise ShapeError(
                    f"MultiheadAttention: attn_mask has shape {attention.shape}, expected {(queries, keys)} or {whole}."
                )
            if attention.ndim == 3:
                attention = reshape(attention, (samples, self.num_heads, queries, keys))
            masks.append(attention)
        if not masks:
            return None
        if is_causal:
            masks.append(logical_not(tril(ones((queries, keys), dtype="bool", device=q.device))))
        if all(mask.dtype.kind == "bool" for mask in masks):
            shown = [logical_not(mask) for mask in masks]
            combined = shown[0]
            for other in shown[1:]:
                combined = logical_and(combined, other)
            return combined
        return sum((_added(mask, q) for mask in masks[1:]), _added(masks[0], q))


def _hiding(name: str, mask: Any) -> Tensor:
    mask = asarray(mask)
    if mask.dtype.kind not in ("bool", "float"):
        raise DtypeError(
            f"MultiheadAttention: {name} must be boolean (True hides) or floating-point (added), got {mask.dtype.name}."
        )
    return mask


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add to the scores."""
    if mask.dtype.kind == "float":
        return asarray(mask, dtype=like.dtype)
    return where(mask, -math.inf, zeros((), dtype=like.dtype, device=like.device))
