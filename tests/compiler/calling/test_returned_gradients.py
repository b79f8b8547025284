"""A `pb.Gradients` is a tree: compiled functions take and give it, by the tensors it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import require


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
def test_gradients_that_are_returned_have_values(device: str) -> None:
    require(device)
    weight = pb.tensor([[1.0, 2.0]], requires_grad=True, device=device)

    @pb.compile
    def step(x: Any, factor: Any) -> Any:
        loss = pb.sum(weight * x * factor)
        return loss, pb.backward(loss)

    for k in range(4):
        factor = pb.tensor(3.0, requires_grad=True, device=device)  # another one at each call
        _, grads = step(pb.full((2, 2), float(k), device=device), factor)
        assert len(grads) == 2
        assert grads[weight].tolist() == [[6.0 * k, 6.0 * k]]
        assert grads[factor].item() == 6.0 * k


def test_gradients_that_are_given() -> None:
    weight = pb.tensor([1.0, 2.0], requires_grad=True)
    other = pb.tensor([5.0, 5.0], requires_grad=True)

    @pb.compile
    def doubled(grads: Any) -> Any:
        return grads[weight] * 2 if other not in grads else grads[other]

    assert doubled(pb.backward(pb.sum(weight * weight))).tolist() == [4.0, 8.0]
    assert doubled(pb.backward(pb.sum(weight * other))).tolist() == [1.0, 2.0]


def test_an_object_with_slots_is_refused_as_any_other() -> None:
    class Pair:
        __slots__ = ("first",)

    @pb.compile
    def pair(x: Any) -> Any:
        made = Pair()
        made.first = x * 2
        return made

    with pytest.raises(pb.TraceError, match="first"):
        pair(np.ones(2))
