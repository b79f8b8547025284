"""Attention by cuDNN's fused kernels where JAX has them: on GPUs, in half precision, with no mask but the causal one.

JAX differentiates its kernel itself, which computes the forward pass once more; where both are in one program XLA finds
that they are the same. The residual is the logarithm of each row's denominator, as in the portable kernel.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

_HALF = (jnp.dtype(jnp.float16), jnp.dtype(jnp.bfloat16))
_MOST_WIDTH = 128  # of a head; a multiple of 8


def attention_kernels(general: Any, joined: Any) -> dict[str, Any]:
    """Attention and its gradient; `general(name)` is the portable kernel, `joined(function, static)` one call of it."""

    def forward(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float) -> Any:
        def portable(q: Any, k: Any, v: Any) -> Any:
            return general("attention")(q, k, v, mask, is_causal, scale, 0.0, 0, 0)

        if not _is_fused(q, k, v, mask, is_causal):
            return portable(q, k, v)
        return jax.lax.platform_dependent(q, k, v, cuda=partial(_forward, is_causal, scale), default=portable)

    def backward(
        g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any, is_causal: bool, scale: float
    ) -> Any:
        def portable(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any) -> Any:
            return general("attention_gradient")(g, q, k, v, mask, out, lse, needs, is_causal, scale, 0.0, 0, 0)

        if not _is_fused(q, k, v, mask, is_causal):
            return portable(g, q, k, v, out, lse)
        return jax.lax.platform_dependent(
            g, q, k, v, out, lse, cuda=partial(_backward, is_causal, scale), default=portable
        )

    one_forward, one_backward = joined(forward, (4, 5)), joined(backward, (7, 8, 9))

    def attention(
        q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, dropout: float, *random: Any
    ) -> Any:
        if dropout:  # where it begins to draw would be a part of the program
            return general("attention")(q, k, v, mask, is_causal, scale, dropout, *random)
        return one_forward(q, k, v, mask, is_causal, scale)

    def attention_gradient(
        g: Any, q: Any, k: Any, v: Any, mask: Any, out: Any, lse: Any, needs: Any, is_causal: bool, scale: float,
        dropout: float, *random: Any,
    ) -> Any:  # fmt: skip
        if dropout:
            return general("attention_gradient")(g, q, k, v, mask, out, lse, needs, is_causal, scale, dropout, *random)
        return one_backward(g, q, k, v, mask, out, lse, needs, is_causal, scale)

    return {"attention": attention, "attention_gradient": attention_gradient}


def _is_fused(q: Any, k: Any, v: Any, mask: Any, is_causal: bool) -> bool:
    """Whether cuDNN has a kernel for these arrays, should they be on a GPU."""
    return (
        _has_cudnn()
        and mask is None
        and q.ndim >= 3
        and q.size > 0
        and k.size > 0
        and q.shape[:-3] == k.shape[:-3]
        and v.shape == k.shape
        and q.dtype == k.dtype == v.dtype
        and q.dtype in _HALF
        and q.shape[-1] % 8 == 0
        and q.shape[-1] <= _MOST_WIDTH
        and (not is_causal or q.shape[-2] == k.shape[-2])
    )


def _has_cudnn() -> bool:
    """Whether there is a GPU of a kind that cuDNN has these kernels for: since Ampere."""
    capability = getattr(jax.devices()[0], "compute_capability", None)
    return capability is not None and float(capability) >= 8.0


def _attend(is_causal: bool, scale: float, q: Any, k: Any, v: Any) -> Any:
    """JAX's function wants (batch, length, heads, width)."""
    q, k, v = (jnp.swapaxes(x.reshape(-1, *x.shape[-3:]), 1, 2) for x in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=is_causal, implementation="cudnn")
    return jnp.swapaxes(out, 1, 2)


def _forward(is_causal: bool, scale: float, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    out, transposed = jax.vjp(partial(_attend, is_causal, scale), q, k, v)
    rows = out.shape[:-1]
    kept = [x for x in jax.tree.leaves(transposed) if x.dtype == jnp.float32 and x.shape == rows]
    lse = kept[0] if len(kept) == 1 else _denominators(is_causal, scale, q, k)
    return out.reshape(q.shape), lse.reshape(q.shape[:-1])


def _backward(is_causal: bool, scale: float, g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any) -> Any:
    made, transposed = jax.vjp(partial(_attend, is_causal, scale), q, k, v)
    return *transposed(g.reshape(made.shape).astype(q.dtype)), None


def _denominators(is_causal: bool, scale: float, q: Any, k: Any) -> Any:
    """For a version of JAX whose own rule keeps something else."""
    groups = q.shape[-3] // k.shape[-3]
    scores = jnp.matmul(q * scale, jnp.swapaxes(jnp.repeat(k, groups, -3), -1, -2), preferred_element_type=jnp.float32)
    if is_causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    return jax.nn.logsumexp(scores, -1)
