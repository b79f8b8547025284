"""Arrays without elements: batches of nothing, axes of length zero. Results and gradients have the right shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

NO_INDICES = np.zeros(0, int)
attention = pb.scaled_dot_product_attention
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], tuple[int, ...]]] = {
    "matmul, no samples": (pb.matmul, [(0, 3, 4), (4, 5)], (0, 3, 5)),
    "matmul, nothing to sum": (pb.matmul, [(5, 3, 0), (0, 2)], (5, 3, 2)),
    "matmul, vectors": (pb.matmul, [(0,), (0,)], ()),
    "linear, no samples": (pb.linear, [(0, 3), (2, 3), (2,)], (0, 2)),
    "linear, no inputs": (pb.linear, [(4, 0), (2, 0), (2,)], (4, 2)),
    "einsum": (lambda x, y, z: pb.einsum("ij,jk,kl->il", x, y, z), [(2, 0), (0, 4), (4, 3)], (2, 3)),
    "solve, no matrices": (pb.linalg.solve, [(0, 3, 3), (0, 3, 2)], (0, 3, 2)),
    "det of nothing": (pb.linalg.det, [(2, 0, 0)], (2,)),
    "svdvals": (pb.linalg.svdvals, [(0, 4, 2)], (0, 2)),
    "convolution, no samples": (lambda x, w: pb.conv2d(x, w, stride=2), [(0, 2, 5, 5), (4, 2, 3, 3)], (0, 4, 2, 2)),
    "convolution, no features": (pb.conv2d, [(2, 2, 5, 5), (0, 2, 3, 3)], (2, 0, 3, 3)),
    "max_pool": (lambda x: pb.max_pool2d(x, 2), [(0, 2, 4, 4)], (0, 2, 2, 2)),
    "attention, no samples": (attention, [(0, 2, 3, 4)] * 3, (0, 2, 3, 4)),
    "attention, no keys": (attention, [(2, 2, 3, 4), (2, 2, 0, 4), (2, 2, 0, 4)], (2, 2, 3, 4)),
    "attention, no width": (attention, [(2, 2, 3, 0)] * 3, (2, 2, 3, 0)),
    "attention, no width of values": (attention, [(2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 0)], (2, 2, 3, 0)),
    "softmax": (lambda x: pb.softmax(x, axis=-1), [(3, 0)], (3, 0)),
    "log_softmax": (lambda x: pb.log_softmax(x, axis=-1), [(3, 0)], (3, 0)),
    "layer_norm": (lambda x, w: pb.layer_norm(x, 4, w), [(0, 4), (4,)], (0, 4)),
    "cross_entropy": (lambda x: pb.cross_entropy(x, NO_INDICES, reduction="sum"), [(0, 4)], ()),
    "embedding": (lambda w: pb.embedding(NO_INDICES, w), [(4, 3)], (0, 3)),
    "take": (lambda x: pb.take(x, NO_INDICES, axis=0), [(0, 2)], (0, 2)),
    "cumulative_prod": (lambda x: pb.cumulative_prod(x, axis=0), [(0, 3)], (0, 3)),
    "ssm_scan": (lambda x, a: pb.ssm_scan(x, a, axis=-1), [(3, 0), (3, 0)], (3, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_of_nothing(name: str) -> None:
    function, shapes, expected = CASES[name]
    variables = [pb.ones(shape, dtype=pb.float64).set_requires_grad(True) for shape in shapes]
    out = function(*variables)
    assert out.shape == expected
    gradients = pb.backward(out, np.ones(out.shape))
    for variable in variables:
        assert gradients[variable].shape == variable.shape
        assert np.all(np.isfinite(gradients[variable]._raw))
