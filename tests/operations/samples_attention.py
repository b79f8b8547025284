"""Attention with every kind of mask, and rotary embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng

draw = rng("attention")


def _random(*shape: int) -> np.ndarray:
    return draw.standard_normal(shape)


def _attention(**options: Any) -> Any:
    def function(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        given = options.get("attn_mask", mask)
        return pb.scaled_dot_product_attention(q, k, v, **{**options, "attn_mask": given})

    return function


def _in_torch(**options: Any) -> Any:
    def function(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        given = options.get("attn_mask", mask)
        if isinstance(given, np.ndarray):
            given = torch.from_numpy(given)
        return scaled_dot_product_attention(q, k, v, **{**options, "attn_mask": given})

    return function


def _sample(case: str, *arguments: np.ndarray, torch: bool = True, **options: Any) -> Sample:
    reference = _in_torch(**options) if torch else None
    return Sample("attention", case, _attention(**options), arguments, torch=reference)


BOOLEAN = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
HIDDEN_ROW = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, True]])


def _with_dropout(q: Any, k: Any, v: Any) -> Any:
    with pb.random.using(3):
        return pb.scaled_dot_product_attention(q, k, v, dropout_p=0.4, is_causal=True)


def _partly_hidden(q: Any, k: Any, v: Any, bias: Any) -> Any:
    mask = TENSORS.where(pb.asarray(BOOLEAN), bias, TENSORS.full((3, 4), -np.inf, np.float64, bias))
    return pb.scaled_dot_product_attention(q, k, v, mask)


def _rotary_in_torch(x: Any, cos: Any, sin: Any) -> Any:
    import torch

    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


SAMPLES: list[Sample] = [
    _sample("plain", _random(2, 2, 3, 4), _random(2, 2, 5, 4), _random(2, 2, 5, 3)),
    _sample("matrices", _random(3, 2), _random(4, 2), _random(4, 3), scale=0.7),
    _sample("causal", _random(1, 2, 4, 3), _random(1, 2, 4, 3), _random(1, 2, 4, 2), is_causal=True),
    _sample("causal-more-queries", _random(2, 5, 3), _random(2, 3, 3), _random(2, 3, 2), is_causal=True),
    _sample("boolean", _random(2, 3, 2), _random(2, 4, 2), _random(2, 4, 2), attn_mask=BOOLEAN),
    _sample("hidden-row", _random(2, 3, 2), _random(2, 4, 2), _random(2, 4, 2), attn_mask=HIDDEN_ROW, torch=False),
    _sample("additive", _random(2, 2, 3, 2), _random(2, 2, 4, 2), _random(2, 2, 4, 3), _random(2, 1, 3, 4)),
    _sample("additive-per-key", _random(2, 2, 3, 2), _random(2, 2, 4, 2), _random(2, 2, 4, 3), _random(1, 4)),
    _sample("grouped", _random(1, 4, 3, 2), _random(1, 2, 4, 2), _random(1, 2, 4, 3), enable_gqa=True),
    _sample(
        "grouped-mask", _random(2, 4, 2, 2), _random(2, 2, 3, 2), _random(2, 2, 3, 2), _random(4, 2, 3), enable_gqa=True
    ),
    _sample("broadcast", _random(2, 1, 3, 2), _random(3, 4, 2), _random(4, 2)),
    Sample(
        "attention", "hidden-by-addition", _partly_hidden, (_random(3, 2), _random(4, 2), _random(4, 2), _random(3, 4))
    ),
    Sample("attention", "dropout", _with_dropout, (_random(2, 3, 2), _random(2, 3, 2), _random(2, 3, 2))),
    Sample(
        "rotary_embedding", "halves", pb.rotary_embedding, (_random(2, 3, 4), _random(3, 4), _random(2, 1, 4)),
        torch=_rotary_in_torch,
    ),
    Sample(
        "rotary_embedding", "interleaved", lambda x, cos, sin: pb.rotary_embedding(x, cos, sin, interleaved=True),
        (_random(2, 3, 4), _random(3, 4), _random(3, 4)),
    ),
    Sample(
        "rotary_embedding", "transposed", lambda x, cos, sin: TENSORS.rotary_embedding(x, cos, sin, False, True),
        (_random(2, 3, 4), _random(3, 4), _random(1, 4)),
    ),
    Sample("rotate_pairs", "halves", lambda x: TENSORS.rotate_pairs(x, False), (_random(2, 4),)),
    Sample("rotate_pairs", "interleaved", lambda x: TENSORS.rotate_pairs(x, True), (_random(2, 4),)),
]  # fmt: skip
