"""Samples of sorting and sets."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .sample import Sample
from .samples_reductions import numbers

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
    Sample("take", "unique values", pb.unique_values, (np.asarray([[3.0, 1.0], [2.0, 4.0]]),)),
]
