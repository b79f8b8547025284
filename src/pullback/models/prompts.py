"""Prompts as they may be given: tokens of one text, or of several of any lengths, checked before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autodiff.base import values_of
from ..errors import DtypeError, IndexingError, ShapeError
from ..tensors.tensor import Tensor


def as_prompts(prompts: Any, vocabulary: int) -> tuple[list[Any], bool]:
    """Arrays of tokens, one for each text, and whether only one was given, by itself.

    >>> from pullback.models.prompts import as_prompts
    >>> as_prompts([1, 2, 3], vocabulary=10)
    ([array([1, 2, 3])], True)
    >>> as_prompts([[1, 2, 3], [4]], vocabulary=10)
    ([array([1, 2, 3]), array([4])], False)
    """
    if isinstance(prompts, str):
        raise DtypeError(f"a prompt is numbers of tokens, got the text {prompts!r:.40}. Encode it with its tokenizer.")
    if isinstance(prompts, Tensor):
        prompts = values_of(prompts.detach())
    try:
        parts = list(prompts)
    except TypeError:
        raise DtypeError(f"a prompt is a list or an array of tokens, got {type(prompts).__name__}.") from None
    is_single = all(np.ndim(part) == 0 for part in parts)
    made = [_tokens(part, vocabulary) for part in ([parts] if is_single else parts)]
    return made, is_single


def _tokens(part: Any, vocabulary: int) -> Any:
    if isinstance(part, Tensor):
        part = values_of(part.detach())
    tokens = np.asarray(part)
    if tokens.ndim != 1:
        raise ShapeError(f"a prompt has one axis, of tokens, or two: (texts, tokens); got shape {tokens.shape} in it.")
    if not len(tokens):
        raise ShapeError("a prompt is empty; it needs at least one token, such as the one that a text begins with.")
    if tokens.dtype.kind not in "iu":
        raise DtypeError(f"tokens are integers, got {tokens.dtype}: {tokens[:4].tolist()!r:.60}.")
    wrong = tokens[(tokens < 0) | (tokens >= vocabulary)]
    if len(wrong):
        raise IndexingError(
            f"token {wrong[0]} of a prompt is out of range: the model has {vocabulary} tokens, from 0 on. "
            "Is it another model's tokenizer?"
        )
    return tokens.astype(np.int64)
