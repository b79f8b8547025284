"""Numbers of four bits on PyTorch: looked up in a table, in place of chosen bit by bit in dozens of passes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable

import torch

from .portable.quantized import NF4_LEVELS


def quantized_kernels() -> dict[str, Callable[..., Any]]:
    return {"unpack_nf4": unpack_nf4}


def unpack_nf4(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """`level * scale` of rows of codes, two in a byte; a scale for each row."""
    half = codes.shape[-1]
    out = torch.empty((*codes.shape[:-1], 2 * half), dtype=scales.dtype, device=codes.device)
    levels = _levels(scales.dtype, codes.device)
    for part, place in ((codes & 15, out[..., :half]), (codes >> 4, out[..., half:])):
        torch.mul(levels[part.to(torch.int32)], scales, out=place)
    return out


@lru_cache
def _levels(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(NF4_LEVELS, dtype=dtype, device=device)
