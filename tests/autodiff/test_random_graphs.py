"""Gradients of random programs against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from tests.autodiff.random_graphs import Pullback, program
from tests.backends.installed import optional

torch = optional("torch")


class Torch:
    tanh, exp, matmul, where, concat, sum = torch.tanh, torch.exp, torch.matmul, torch.where, torch.cat, torch.sum

    @staticmethod
    def variable(array: np.ndarray) -> Any:
        return torch.tensor(array, requires_grad=True)

    @staticmethod
    def constant(array: np.ndarray) -> Any:
        return torch.tensor(array)

    @staticmethod
    def transpose(x: Any) -> Any:
        return x.mT


def tracked(values: list[Any]) -> list[int]:
    return [i for i, value in enumerate(values) if value.requires_grad]


@pytest.mark.parametrize("seed", range(40))
def test_gradients_of_variables_and_intermediates(seed: int) -> None:
    variables, values, total = program(Pullback, seed)
    _, peer_values, peer_total = program(Torch, seed)
    which = tracked(peer_values)
    assert which == tracked(values)
    peers = [peer_values[i] for i in which]
    expected = torch.autograd.grad(peer_total, peers, allow_unused=True)
    grads = pb.backward(total, wrt=[values[i] for i in which], retain_graph=True)
    for i, gradient in zip(which, expected):
        if gradient is None:
            assert values[i] not in grads
        else:
            np.testing.assert_allclose(grads[values[i]]._raw, gradient.numpy(), rtol=1e-10, atol=1e-12)
    alone = pb.backward(total)
    for i, variable in enumerate(variables):
        if variable in alone:
            np.testing.assert_allclose(alone[variable]._raw, grads[values[i]]._raw, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(15))
def test_second_order(seed: int) -> None:
    variables, _, total = program(Pullback, seed, length=20)
    peers, _, peer_total = program(Torch, seed, length=20)
    firsts = torch.autograd.grad(peer_total, peers, create_graph=True, allow_unused=True, materialize_grads=True)
    seconds = torch.autograd.grad(
        sum((g * g).sum() for g in firsts if g.requires_grad), peers, allow_unused=True, materialize_grads=True
    )
    grads = pb.backward(total, create_graph=True)
    loss = sum(pb.sum(grads[v] * grads[v]) for v in variables if v in grads)
    second = pb.backward(loss)
    for variable, expected in zip(variables, seconds):
        if variable in second:
            np.testing.assert_allclose(second[variable]._raw, expected.numpy(), rtol=1e-9, atol=1e-11)
        else:
            assert not expected.abs().max() > 0
