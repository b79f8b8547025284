"""What is computed again where it is read is the same, however long the chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize("steps", [20, 33, 35, 37, 60, 90])
def test_long_chains_of_cheap_steps(steps: int) -> None:
    """Each step of the gradient reads a value of the chain that follows in cheap steps from the one before."""

    def function(h: Any) -> Any:
        for i in range(steps):
            h = h - 0.1 * pb.grad(lambda a, h=h: (h * h * a).sum())(np.ones(3) + i * 1e-3)
        return h.sum()

    start = np.array([0.1, 0.4, 0.7])
    h, expected = start.copy(), np.ones(3)
    for _ in range(steps):
        expected *= 1 - 0.2 * h
        h = h - 0.1 * h * h
    found = pb.compile(pb.grad(function))(pb.asarray(start)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
