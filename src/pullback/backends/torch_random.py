"""Philox on PyTorch's GPUs: the words of a key's stream are made where they are used, and are NumPy's.

On a CPU NumPy's own kernel makes them; on a GPU one of Triton's, or, where that is not installed, PyTorch's integers of
64 bits, which hold products of two words. See `numpy/random.py`.
"""

from __future__ import annotations

from typing import Any

import torch

from .torch_losses import find_spec

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_MASK = 0xFFFFFFFF


def random_kernels(general: Any) -> dict[str, Any]:
    def dropout(x: Any, p: float, key: int, offset: int) -> tuple[Any, Any]:
        scale, threshold = 0.0 if p == 1 else 1 / (1 - p), threshold_of(p)
        if x.is_cuda and x.numel() and find_spec("triton") is not None:
            from . import torch_triton_random

            if torch_triton_random.takes(x, threshold, offset):
                return torch_triton_random.dropout(x, threshold, scale, key, offset)
        kept = dropout_mask(x, p, key, offset)
        return torch.where(kept, x * scale, 0), kept

    def dropout_mask(x: Any, p: float, key: int, offset: int) -> Any:
        if not x.is_cuda:
            return general("dropout_mask")(x, p, key, offset)
        threshold = threshold_of(p)
        if threshold > _MASK:
            return torch.zeros(x.shape, dtype=torch.bool, device=x.device)
        return (words(key, offset, x.numel(), x.device) >= threshold).reshape(x.shape)

    return {"dropout": dropout, "dropout_mask": dropout_mask}


def threshold_of(p: float) -> int:
    """The words below it drop their element."""
    return round(p * 2**32)


def words(key: int, offset: int, count: int, device: Any) -> Any:
    """Words `offset` to `offset + count` of the stream of `key`, as int64."""
    first = offset // 4
    blocks = -(-(offset + count) // 4) - first
    number = torch.arange(blocks, dtype=torch.int64, device=device)
    # what is added is below 2**63, so that the sum has one carry at most
    low = number + (first & _MASK)
    a, b = low & _MASK, (low >> 32) + (first >> 32) & _MASK
    c = d = torch.zeros_like(a)
    key_low, key_high = key & _MASK, key >> 32
    for _ in range(_ROUNDS):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]  # wrap around: the bits are those of unsigned products
        a = (right >> 32 & _MASK) ^ b ^ key_low
        b = right & _MASK
        c = (left >> 32 & _MASK) ^ d ^ key_high
        d = left & _MASK
        key_low, key_high = key_low + _KEY_STEPS[0] & _MASK, key_high + _KEY_STEPS[1] & _MASK
    skip = offset - 4 * first
    return torch.stack((a, b, c, d), 1).reshape(-1)[skip : skip + count]
