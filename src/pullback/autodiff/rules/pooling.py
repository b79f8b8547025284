"""Pooling and interpolation. `axes` describes what is read along each spatial axis (see backends/windows.py)."""

from __future__ import annotations

from typing import Any


def rules(xp: Any, op: Any) -> None:
    # averages and interpolations of any kind are linear; the transposed map is the gradient
    op(
        "resample", "x", "axes transposed", batch="samples", linear="x", masking=True,
        x=lambda g, axes, transposed: xp.resample(g, axes, not transposed),
    )  # fmt: skip

    # a maximum reads one element of every window; `indices` say which, counted along the spatial axes together
    op(
        "max_pool", "x", "axes", batch="samples", residuals="indices", masking=True,
        x=lambda g, indices, axes: xp.pool_scatter(g, indices, tuple(axis.size for axis in axes)),
    )  # fmt: skip
    op("max_pool_indices", "x", "axes", batch="samples")
    op(
        "pool_gather", "x indices", batch="samples", linear="x", masking=True,
        x=lambda g, x_shape, indices: xp.pool_scatter(g, indices, x_shape[2:]),
    )  # fmt: skip
    op(
        "pool_scatter",
        "x indices",
        "size",
        batch="samples",
        linear="x",
        x=lambda g, indices: xp.pool_gather(g, indices),
    )
