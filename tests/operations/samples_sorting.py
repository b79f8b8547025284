"""Samples of sorting and sets."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from .sample import Sample
from .samples_reductions import numbers

TORCHS_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _torch_quantile(method: str) -> Any:
    def function(x: Any) -> Any:
        import torch

        return torch.quantile(x, torch.tensor([0.15, 0.5, 1.0], dtype=x.dtype), dim=0, interpolation=method)

    return function


def _jax_quantile(method: str) -> Any:
    def function(x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.quantile(x, jnp.asarray([0.15, 0.5, 1.0]), axis=0, method=method)

    return function


def _jax_running(name: str, axis: int) -> Any:
    def function(x: Any) -> Any:
        import jax.lax

        return getattr(jax.lax, name)(x, axis)

    return function


SAMPLES = [
    Sample("sort", "vector", pb.sort, (numbers("sort", (5,)),), torch=lambda x: x.sort().values),
    Sample(
        "sort", "axis=0", lambda x: pb.sort(x, axis=0), (numbers("sort0", (3, 2)),), torch=lambda x: x.sort(0).values
    ),
    Sample(
        "sort",
        "descending",
        lambda x: pb.sort(x, axis=1, descending=True),
        (numbers("sortd", (2, 3, 2)),),
        torch=lambda x: x.sort(1, descending=True).values,
    ),
    Sample("sort", "not stable", lambda x: pb.sort(x, stable=False), (numbers("sorts", (2, 4)),)),
    Sample("sort", "empty", pb.sort, (np.zeros((2, 0)),)),
    Sample(
        "take_along_axis",
        "topk",
        lambda x: pb.topk(x, 2)[0],
        (numbers("topk", (2, 4)),),
        torch=lambda x: x.topk(2).values,
    ),
    Sample(
        "take_along_axis",
        "topk smallest, axis=0",
        lambda x: pb.topk(x, 2, axis=0, largest=False)[0],
        (numbers("topk0", (4, 2)),),
        torch=lambda x: x.topk(2, dim=0, largest=False).values,
    ),
    *[
        Sample(
            name,
            case,
            lambda x, name=name, axis=axis: getattr(pb, name)(x, axis=axis)[0],
            (numbers(name + case, shape),),
            torch=lambda x, name=name, axis=axis: getattr(x, name)(axis).values,
            jax=_jax_running(name, axis),
        )
        for name in ("cummax", "cummin")
        for case, shape, axis in (("vector", (6,), 0), ("axis=0", (4, 2), 0), ("axis=1", (2, 4, 2), 1))
    ],
    *[
        Sample(
            "quantile",
            method,
            lambda x, method=method: pb.quantile(x, [0.15, 0.5, 1.0], axis=0, method=method),
            (numbers("quantile", (5, 2)),),
            torch=_torch_quantile(method) if method in TORCHS_METHODS else None,
            jax=_jax_quantile(method) if method in TORCHS_METHODS else None,
        )
        for method in (*TORCHS_METHODS, "hazen", "averaged_inverted_cdf")
    ],
    Sample("quantile", "all, keepdims", lambda x: pb.quantile(x, 0.3, keepdims=True), (numbers("quantiles", (3, 2)),)),
    Sample(
        "quantile",
        "differentiable shares",
        lambda x, q: pb.quantile(x, q, axis=(0, 2)),
        (numbers("quantile of", (3, 2, 2)), np.array([[0.13], [0.64]])),
        torch=lambda x, q: x.movedim(1, 2).reshape(6, 2).quantile(q[:, 0], dim=0).unsqueeze(1),
    ),
    Sample("take", "unique values", pb.unique_values, (np.asarray([[3.0, 1.0], [2.0, 4.0]]),)),
]
