"""Tensors that a traced function makes itself: written to in every way, with gradients, they are as eagerly."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.5, 1.5, 6, dtype=np.float32)


def in_a_loop(x: Any) -> Any:
    y = pb.zeros(6)
    for i in range(6):
        y[i] = pb.sin(x[i]) * (i + 1)
    return y


def one_from_the_one_before(x: Any) -> Any:
    y = pb.empty((6,))
    y[0] = x[0]
    for i in range(1, 6):
        y[i] = y[i - 1] * x[i] + y[0]
    return y


def rows(x: Any) -> Any:
    y = pb.ones((4, 6))
    y[1] = x * x
    y[2:, ::2] = pb.tanh(x[:3])
    y[3] *= x
    return y


def in_place_operators(x: Any) -> Any:
    y = pb.full(6, 2.0)
    y += x
    y *= x
    y -= 1.0
    y /= x + 3
    y **= 2
    return y


def at_indices(x: Any) -> Any:
    y = pb.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    y[np.array([1, 3, 5])] = x[:3] * 2
    y[pb.tensor([7, 0])] += x[4:]
    y[np.array([True, False] * 4)] = y[np.array([False, True] * 4)] * 2
    return y


def like_the_argument(x: Any) -> Any:
    y, z = pb.zeros_like(x), pb.arange(6, dtype=pb.float32)
    y[...] = x * z
    z[2:4] = y[2:4] * x[:2]
    return y + z


def through_numpy(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[:-1] * 3
    np.multiply(y, x, out=y)
    return y


def of_a_numpy_array(x: Any) -> Any:
    y = pb.tensor(np.arange(6, dtype=np.float32))
    z = pb.asarray(np.ones(6, np.float32))
    y[:3] = x[3:] ** 2
    z[0] = y[1]
    return y * z


def a_view_and_a_clone(x: Any) -> Any:
    y = pb.eye(6)
    row, copy = y[0], y.clone()
    row += x
    copy[1] = row * x
    y[2, 2] = copy[1, 1]
    return y + copy


def written_and_read_again(x: Any) -> Any:
    y = pb.linspace(0.0, 1.0, 6)
    first = y * x
    y[1] = x.sum()
    y[...] = y * y + first
    return y


FUNCTIONS: list[Callable[[Any], Any]] = [
    in_a_loop, one_from_the_one_before, rows, in_place_operators, at_indices, like_the_argument, through_numpy,
    of_a_numpy_array, a_view_and_a_clone, written_and_read_again,
]  # fmt: skip


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours.detach()), np.asarray(theirs.detach()), rtol=2e-5, atol=2e-5)


@pytest.fixture(params=FUNCTIONS, ids=lambda f: f.__name__)
def function(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_values(function: Any) -> None:
    compiled = pb.compile(function)
    for scale in (1.0, 0.5):
        x = pb.tensor(X * scale)
        close(compiled(x), function(x))


def test_gradients_inside(function: Any) -> None:
    def gradient(x: Any) -> Any:
        return pb.grad(lambda x: (function(x) ** 2).sum())(x)

    x = pb.tensor(X)
    close(pb.compile(gradient)(x), gradient(x))


def test_gradients_of_a_variable_from_outside(function: Any) -> None:
    def step() -> Any:
        loss = (function(w) ** 2).sum()
        loss.backward()
        return loss

    found = []
    for run in (step, pb.compile(step)):
        w = pb.tensor(X, requires_grad=True)
        for _ in range(3):
            run()
        found.append(w.grad)
    close(found[1], found[0])


def test_gradients_outside(function: Any) -> None:
    x = pb.tensor(X, requires_grad=True) * 1.0
    compiled = pb.compile(function)
    ours, theirs = (pb.backward((f(x) ** 2).sum(), wrt=x)[x] for f in (compiled, function))
    close(ours, theirs)
    close(pb.grad(lambda x: compiled(x).sum())(pb.tensor(X)), pb.grad(lambda x: function(x).sum())(pb.tensor(X)))


def test_second_order(function: Any) -> None:
    def second(x: Any) -> Any:
        return pb.grad(lambda x: (pb.grad(lambda x: (function(x) ** 2).sum())(x) ** 2).sum())(x)

    x = pb.tensor(X)
    ours, theirs = pb.compile(second)(x), second(x)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-4, atol=1e-3)


def test_forward_mode(function: Any) -> None:
    def tangent(x: Any) -> Any:
        return pb.jvp(function, (x,), (pb.ones(6),))[1]

    x = pb.tensor(X)
    close(pb.compile(tangent)(x), tangent(x))


@pytest.mark.parametrize("read", [
    lambda: pb.tensor([3, 1, 2]).tolist(), lambda: pb.arange(3).numpy().sum().item(), lambda: int(pb.tensor(4)),
    lambda: [5, 6, 7][pb.asarray(2)], lambda: 1 if pb.ones(()) else 2, lambda: float(pb.full((), 2.5)),
])  # fmt: skip
def test_what_the_function_made_of_plain_numbers_has_values(read: Any) -> None:
    def function(x: Any) -> Any:
        found = read()
        return x * (sum(found) if isinstance(found, list) else found)

    x = pb.tensor(X)
    close(pb.compile(function)(x), function(x))


def test_a_tensor_of_the_function_that_is_kept_says_so() -> None:
    kept: list[Any] = []

    @pb.compile(ignore=["kept"])
    def function(x: Any) -> Any:
        kept.append(pb.zeros(6))
        kept[0][0] = x[0]
        return x

    function(pb.tensor(X))
    with pytest.raises(pb.TraceError, match="Return it from the function"):
        kept[0] + 1
