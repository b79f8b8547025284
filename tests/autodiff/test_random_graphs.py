"""Random programs: many shared nodes, views, masks and dead ends, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pullback as pb

SIZE = 3


class Pullback:
    """The instructions in terms of tensors."""

    tanh, exp, matmul, where, concat, sum = pb.tanh, pb.exp, pb.matmul, pb.where, pb.concat, pb.sum

    @staticmethod
    def variable(array: np.ndarray) -> Any:
        return pb.tensor(array, requires_grad=True)

    @staticmethod
    def constant(array: np.ndarray) -> Any:
        return pb.asarray(array)

    @staticmethod
    def transpose(x: Any) -> Any:
        return pb.matrix_transpose(x)


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


def program(library: Any, seed: int, length: int = 40) -> tuple[list[Any], list[Any], Any]:
    """Variables, all values and the result of a random program on square matrices, the same for both libraries."""
    generator = np.random.default_rng(seed)
    variables = [library.variable(generator.standard_normal((SIZE, SIZE)) / 2) for _ in range(3)]
    values = list(variables)
    values.append(library.constant(generator.standard_normal((SIZE, SIZE)) / 2))
    for _ in range(length):
        a, b = (values[i] for i in generator.integers(0, len(values), 2))
        kind = generator.integers(0, 12)
        mask = library.constant(generator.random((SIZE, SIZE)) > 0.5)
        number = float(generator.uniform(0.5, 1.5))
        if kind == 0:
            new = a + b
        elif kind == 1:
            new = a - b * number
        elif kind == 2:
            new = library.tanh(a * b)
        elif kind == 3:
            new = library.matmul(library.tanh(a), library.tanh(b)) * 0.3
        elif kind == 4:
            new = library.transpose(a)
        elif kind == 5:
            new = library.where(mask, a, b)
        elif kind == 6:
            new = library.concat([a[1:], b[:1]])
        elif kind == 7:
            new = a[:, :1] * number + library.tanh(b)
        elif kind == 8:
            new = library.exp(-a * a) / (b * b + 1.0)
        elif kind == 9:
            new = a + library.sum(library.tanh(b)) * 0.1
        elif kind == 10:
            new = library.tanh(a.reshape(SIZE * SIZE))[None, :SIZE] * b
        else:
            new = library.tanh(a) ** 2
        values.append(new)
    tail = values[-6:]
    total = library.sum(library.tanh(tail[0]))
    for value in tail[1:]:
        total = total + library.sum(library.tanh(value) * value)
    return variables, values, total


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
            np.testing.assert_allclose(grads[values[i]]._data, gradient.numpy(), rtol=1e-10, atol=1e-12)
    alone = pb.backward(total)
    for i, variable in enumerate(variables):
        if variable in alone:
            np.testing.assert_allclose(alone[variable]._data, grads[values[i]]._data, rtol=1e-12, atol=1e-14)


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
            np.testing.assert_allclose(second[variable]._data, expected.numpy(), rtol=1e-9, atol=1e-11)
        else:
            assert not expected.abs().max() > 0
