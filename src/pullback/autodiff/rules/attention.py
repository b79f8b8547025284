"""Attention and rotary embedding."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    # q is (..., heads, length, width), k and v have heads / n heads; a mask of any shape that broadcasts to the
    # scores is boolean (False hides) or added to them. `lse` is the logarithm of the softmax's denominator per row.
    # Dropout of the shares is that of the operation `dropout` on an array of all of them. The mask may have any dtype,
    # and a large number there must not overflow.
    op(
        "attention", "q k v mask", "is_causal scale dropout key offset", residuals="lse", composite=True, masking=True,
        autocast="half", converts=lambda *static: 3, real=True,
        joint=lambda g, q, k, v, mask, out, lse, needs, is_causal, scale, dropout, key, offset:
            xp.attention_gradient(g, q, k, v, mask, out, lse, needs, is_causal, scale, dropout, key, offset),
    )  # fmt: skip

    # x * cos + rotate(x) * sin, or the transpose of that in x, where rotate turns pairs (a, b) into (-b, a)
    op(
        "rotate_pairs", "x", "interleaved", batch="leading", linear="x", cheap=True, expands="always",
        x=lambda g, interleaved: -xp.rotate_pairs(g, interleaved),
    )  # fmt: skip

    def sine(g: Any, x: Any, sin_shape: Any, interleaved: bool, transposed: bool) -> Any:
        turned = x * xp.rotate_pairs(g, interleaved) if transposed else g * xp.rotate_pairs(x, interleaved)
        return xp.sum_to(turned, sin_shape)

    op(
        "rotary_embedding", "x cos sin", "interleaved transposed", batch="following", cheap=True, expands="always",
        x=lambda g, cos, sin, interleaved, transposed: xp.rotary_embedding(g, cos, sin, interleaved, not transposed),
        cos=lambda g, x, cos_shape: xp.sum_to(g * x, cos_shape),
        sin=sine,
    )  # fmt: skip
