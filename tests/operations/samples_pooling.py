"""Pooling and interpolation: paddings, overlaps, incomplete windows, every mode and both ways to place corners."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.autodiff.tables import TENSORS

from .sample import Sample, rng

SAMPLES: list[Sample] = []

CASES: list[tuple[str, str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = [
    # operation, function, shape of x, arguments, options
    ("max_pool", "max_pool1d", (2, 2, 7), (3,), {"stride": 2, "padding": 1}),
    ("max_pool", "max_pool1d", (2, 5), (2,), {"stride": 1}),
    ("max_pool", "max_pool2d", (2, 2, 4, 6), (2,), {}),
    ("max_pool", "max_pool2d", (1, 2, 5, 6), ((3, 2),), {"stride": 1, "padding": 1, "dilation": (1, 2)}),
    ("max_pool", "max_pool2d", (1, 1, 5, 5), (2,), {"stride": 3, "ceil_mode": True}),
    ("max_pool", "max_pool3d", (1, 2, 4, 3, 4), (2,), {"stride": (2, 1, 2)}),
    ("max_pool", "adaptive_max_pool1d", (2, 2, 7), (3,), {}),
    ("max_pool", "adaptive_max_pool2d", (1, 2, 5, 4), ((2, 3),), {}),
    ("max_pool", "adaptive_max_pool3d", (1, 1, 4, 3, 2), ((2, None, 1),), {}),
    ("resample", "avg_pool1d", (2, 2, 7), (3,), {"stride": 2, "padding": 1}),
    ("resample", "avg_pool2d", (2, 2, 4, 6), (2,), {}),
    ("resample", "avg_pool2d", (1, 2, 5, 5), ((3, 2),), {"stride": 1, "padding": 1, "count_include_pad": False}),
    ("resample", "avg_pool2d", (1, 1, 5, 5), (2,), {"stride": 3, "ceil_mode": True, "divisor_override": 3}),
    ("resample", "avg_pool3d", (1, 2, 3, 4, 4), (2,), {"padding": 1, "ceil_mode": True}),
    ("resample", "adaptive_avg_pool1d", (2, 2, 7), (3,), {}),
    ("resample", "adaptive_avg_pool2d", (2, 5, 4), (1,), {}),
    ("resample", "adaptive_avg_pool3d", (1, 1, 4, 3, 2), ((2, None, 3),), {}),
    ("resample", "interpolate", (2, 2, 5), (), {"size": 8}),
    ("resample", "interpolate", (1, 2, 5, 3), (), {"scale_factor": (1.5, 0.7), "mode": "nearest-exact"}),
    ("resample", "interpolate", (2, 2, 5), (), {"scale_factor": 1.7, "mode": "linear"}),
    ("resample", "interpolate", (1, 2, 4, 3), (), {"size": (7, 2), "mode": "bilinear", "align_corners": True}),
    ("resample", "interpolate", (1, 1, 2, 3, 2), (), {"scale_factor": 2, "mode": "trilinear"}),
    ("resample", "interpolate", (1, 2, 4, 5), (), {"size": (6, 3), "mode": "bicubic"}),
    ("resample", "interpolate", (1, 1, 150), (), {"size": 151, "mode": "linear"}),
]


def _call(library: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    def function(x: Any) -> Any:
        if library == "torch":
            from torch.nn import functional as namespace
        else:
            namespace = pb
        return getattr(namespace, name)(x, *arguments, **options)

    return function


def _distinct(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that no small change makes equal: a maximum is smooth there."""
    count = int(np.prod(shape))
    return draw.permutation(np.linspace(-2, 2, count)).reshape(shape)


for number, (operation, name, shape, arguments, options) in enumerate(CASES):
    ours, theirs = (_call(library, name, arguments, options) for library in ("pullback", "torch"))
    SAMPLES.append(Sample(operation, f"{name}-{number}", ours, (_distinct(rng(name), shape),), torch=theirs))

INDICES = np.array([[[[0, 3], [5, 3]], [[1, 1], [2, 4]]]])

SAMPLES += [
    Sample(
        "pool_gather",
        "repeated",
        lambda x: TENSORS.pool_gather(x, pb.asarray(INDICES)),
        (_distinct(rng("a"), (1, 2, 2, 3)),),
    ),
    Sample(
        "pool_scatter",
        "repeated",
        lambda x: TENSORS.pool_scatter(x, pb.asarray(INDICES), (2, 3)),
        (_distinct(rng("b"), (1, 2, 2, 2)),),
    ),
    Sample(
        "pool_gather",
        "return_indices",
        lambda x: pb.max_pool2d(x, 2, stride=1, return_indices=True)[0],
        (_distinct(rng("c"), (1, 2, 3, 4)),),
    ),
    Sample(
        "resample",
        "complex",
        lambda x: pb.avg_pool1d(x, 2),
        (rng("d").standard_normal((1, 2, 4)) + 1j * rng("e").standard_normal((1, 2, 4)),),
    ),
]
