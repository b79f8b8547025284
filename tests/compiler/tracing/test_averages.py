"""Means of half precision are summed up in single, in loops."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb
from tests.backends.installed import needs_llvmlite

MEANS: dict[str, Callable[[Any], Any]] = {
    "over all": pb.mean,
    "over an axis": lambda x: pb.mean(x, (1, -1), keepdims=True),
    "of windows": lambda x: pb.avg_pool2d(x, (3, 4)),
    "of everything in a plane": lambda x: pb.adaptive_avg_pool2d(x, 1),
    "of a few windows": lambda x: pb.adaptive_avg_pool2d(x, (2, 3)),
}


@needs_llvmlite
@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means_of_half_precision_are_the_eager_ones(name: str, dtype: str) -> None:
    numbers = np.random.default_rng(0).normal(size=(2, 3, 12, 12)).astype(np.float32)
    x = (pb.asarray(numbers) + 600).astype(dtype)  # the sum of a plane is beyond the largest number of float16

    def gradient(x: Any) -> Any:
        return pb.grad(lambda x: (MEANS[name](x) * 0.01).sum())(x)

    for function in (MEANS[name], gradient):
        compiled = pb.compile(function)
        found, expected = (made.astype("float64").numpy() for made in (compiled(x), function(x)))
        np.testing.assert_allclose(found, expected, {"float16": 1e-3, "bfloat16": 8e-3}[dtype])
        assert np.isfinite(found).all() and "numpy" not in repr(compiled.kernels)
