"""Cross-entropy of JAX's arrays: as XLA joins it into few passes over the logits, none of whose size is kept.

What is ignored is masked row by row: another array of the logits' size would be read, and forward and backward pass
would not have the same sums, which XLA computes once where both are in one program.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def loss_kernels(general: Any) -> dict[str, Any]:
    """Cross-entropy and its gradient; `general(name)` is the portable kernel for what these leave out."""

    def is_plain(x: Any, weight: Any, label_smoothing: float) -> bool:
        return (
            x.ndim == 2 and x.size > 0 and jnp.issubdtype(x.dtype, jnp.floating) and weight is None
        ) and not label_smoothing

    def cross_entropy(
        x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float
    ) -> tuple[Any, Any, Any]:
        if not is_plain(x, weight, label_smoothing):
            return general("cross_entropy")(x, target, weight, ignore_index, reduction, label_smoothing)
        counts = target != ignore_index
        highest, total = _sums(x)
        own = jnp.take_along_axis(x, jnp.where(counts, target, 0)[:, None], 1).astype(total.dtype)
        rest = jnp.log(total)
        losses = jnp.where(counts, (rest - (own - highest))[:, 0], 0)  # not lse - own: `lse` is rounded
        lse = jnp.where(counts, (rest + highest)[:, 0], 0)
        normalizer = counts.sum(dtype=total.dtype)
        if reduction != "none":
            losses = losses.sum()
        if reduction == "mean":
            losses = losses / jnp.maximum(normalizer, 1)
        return losses.astype(x.dtype), lse, normalizer

    def cross_entropy_gradient(
        g: Any, x: Any, target: Any, weight: Any, lse: Any, normalizer: Any, ignore_index: int, reduction: str,
        label_smoothing: float,
    ) -> Any:  # fmt: skip
        if not is_plain(x, weight, label_smoothing):
            return general("cross_entropy_gradient")(
                g, x, target, weight, lse, normalizer, ignore_index, reduction, label_smoothing
            )
        counts = target != ignore_index
        highest, total = _sums(x)
        scale = g.astype(total.dtype)
        if reduction == "mean":
            scale = scale / jnp.maximum(normalizer, 1)
        share = jnp.exp(x.astype(total.dtype) - highest) / total
        one_hot = jnp.arange(x.shape[1], dtype=target.dtype) == target[:, None]
        row = scale[:, None] if scale.ndim else scale
        grad = row * (share - one_hot.astype(share.dtype))
        return jnp.where(counts[:, None], grad, 0).astype(x.dtype)

    return {"cross_entropy": cross_entropy, "cross_entropy_gradient": cross_entropy_gradient}


def _sums(x: Any) -> tuple[Any, Any]:
    """The highest logit of each row, and the sum of the exponentials of what is below it; in float32 at least."""
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    highest = wide.max(1, keepdims=True)
    return highest, jnp.exp(wide - highest).sum(1, keepdims=True)
