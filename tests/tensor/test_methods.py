"""Methods that are more than a function under NumPy's name."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


def test_a_copy_of_a_variable_can_be_written():
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    y = w.copy()
    y[0] = 5.0
    (y * y * w).sum().backward()
    assert np.array_equal(w.detach().numpy(), [1, 2])
    assert np.array_equal(w.grad.numpy(), [25, 12])


def test_a_copy_in_forward_mode():
    def f(x):
        y = x.copy()
        y[0] = 0.0
        return y * y

    x, direction = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    assert np.array_equal(pb.jvp(f, (x,), (direction,))[1], [0, 20])
    assert np.array_equal(pb.hessian(lambda t: f(t).sum())(x), [[0, 0], [0, 2]])


def test_a_copy_under_no_grad_is_the_same_variable():
    w = pb.tensor([1.0], requires_grad=True)
    with pb.no_grad():
        assert w.copy().grad_cell is w.grad_cell


class TestSort:
    def test_is_in_place_and_recorded(self):
        w = pb.tensor(np.array([3.0, 1.0, 2.0]), requires_grad=True)
        y = w * 1.0
        view = y[:2]
        assert y.sort() is None
        (y * np.array([1.0, 10.0, 100.0])).sum().backward()
        assert np.array_equal(y.detach().numpy(), [1, 2, 3]) and np.array_equal(view.detach().numpy(), [3, 1])
        assert np.array_equal(w.grad.numpy(), [100, 1, 10])

    def test_along_an_axis(self):
        values = np.random.default_rng(0).standard_normal((3, 4))
        x = pb.tensor(values)
        x.sort(axis=0)
        assert np.array_equal(x.numpy(), np.sort(values, axis=0))

    def test_of_a_variable_is_refused(self):
        w = pb.tensor([3.0, 1.0], requires_grad=True)
        with pytest.raises(pb.GradientError, match="no_grad"):
            w.sort()
