"""Cross-entropy of PyTorch's arrays without more than one array of the logits' size at a time."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec as _find_spec
from typing import Any

import torch

find_spec = cache(_find_spec)
_ROWS_BYTES = 1 << 27  # of logarithms of probabilities that are made at once


def loss_kernels(general: Any) -> dict[str, Any]:
    def is_plain(x: Any, weight: Any, label_smoothing: float) -> bool:
        return x.ndim == 2 and x.numel() > 0 and x.is_floating_point() and weight is None and not label_smoothing

    def cross_entropy(
        x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float
    ) -> tuple[Any, Any, Any]:
        if not is_plain(x, weight, label_smoothing):
            return general("cross_entropy")(x, target, weight, ignore_index, reduction, label_smoothing)
        wide = torch.float32 if x.dtype.itemsize == 2 else x.dtype
        counts, place = _places(target, ignore_index)
        fused = _fused(x)
        if fused is not None:
            losses, lse = fused.losses_and_lse(x, target, ignore_index)
        else:
            losses = torch.where(counts, _losses(x, place, wide), 0)
            own = x.gather(1, place).squeeze(1).to(wide)
            lse = torch.where(torch.isfinite(own) & counts, own + losses, 0)
        normalizer = counts.sum().to(wide)
        if reduction != "none":
            losses = losses.sum()
        if reduction == "mean":
            losses = losses / normalizer.clamp(min=1)
        return losses.to(x.dtype), lse, normalizer

    def cross_entropy_gradient(
        g: Any, x: Any, target: Any, weight: Any, lse: Any, normalizer: Any, ignore_index: int, reduction: str,
        label_smoothing: float,
    ) -> Any:  # fmt: skip
        if not is_plain(x, weight, label_smoothing):
            return general("cross_entropy_gradient")(
                g, x, target, weight, lse, normalizer, ignore_index, reduction, label_smoothing
            )
        scale = g.to(lse.dtype)
        if reduction == "mean":
            scale = scale / normalizer.clamp(min=1)
        fused = _fused(x)
        if fused is not None:
            return fused.gradient(scale, x, target, lse, ignore_index)
        counts, place = _places(target, ignore_index)
        scale = torch.where(counts, scale, 0).unsqueeze(1)
        own = torch.expm1(x.gather(1, place).to(lse.dtype) - lse.unsqueeze(1))  # exact also where it is almost 0
        out = torch.softmax(x, 1).mul_(scale)
        out.scatter_(1, place, (own * scale).to(out.dtype))
        return out.masked_fill_(~counts.unsqueeze(1), 0)  # what is ignored may be infinite

    return {"cross_entropy": cross_entropy, "cross_entropy_gradient": cross_entropy_gradient}


def _losses(x: Any, place: Any, dtype: Any) -> Any:
    """Minus the logarithms of the softmax at `place`, a column for each row."""
    losses = torch.empty(len(x), dtype=dtype, device=x.device)
    rows = max(_ROWS_BYTES // (x.shape[1] * dtype.itemsize), 1)
    for first in range(0, len(x), rows):
        part = slice(first, first + rows)
        losses[part] = torch.log_softmax(x[part], 1, dtype=dtype).gather(1, place[part]).squeeze(1)
    return losses.neg_()


def _fused(x: Any) -> Any:
    """The module of kernels that do it in one pass, on GPUs where Triton is installed."""
    if not x.is_cuda or find_spec("triton") is None:
        return None
    from . import torch_triton

    return torch_triton if torch_triton.takes(x) else None


def _places(target: Any, ignore_index: int) -> tuple[Any, Any]:
    """Which rows count, and the column of each row's class."""
    counts = target != ignore_index
    return counts, torch.where(counts, target, 0).to(torch.int64).unsqueeze(1)
