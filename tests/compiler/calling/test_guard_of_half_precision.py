"""Compiled steps in half precision are looked at as all others are: a NaN changes nothing, and is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import require


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_nan_in_a_gradient_changes_nothing(dtype: str, device: str) -> None:
    require(device, dtype)
    weight = pb.tensor([1.0, 2.0], dtype=dtype, requires_grad=True, device=device)
    optimizer = pb.optim.SGD([weight], 0.25)

    @pb.compile
    def step(x: Any) -> Any:
        loss = pb.sum(weight * x)
        optimizer.step(pb.backward(loss))
        return loss

    good = pb.tensor([1.0, 1.0], dtype=dtype, device=device)
    step(good)
    step(good)
    before = weight.tolist()
    assert before == [0.5, 1.5]
    for bad in (np.nan, np.inf):
        with pytest.raises(pb.NumericalInstabilityError):
            step(pb.tensor([1.0, bad], dtype=dtype, device=device)).item()
        assert weight.tolist() == before
    step(good)
    assert weight.tolist() == [0.25, 1.25]
