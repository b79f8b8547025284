"""Compiled functions that fill arrays of NumPy's anew, and arrays from outside that others fill between calls."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.borrowing import LARGEST_COPY

X = np.array([0.5, -1.0, 2.0])


def buffer_in_a_loop(x):
    buffer, total = np.zeros(3), 0.0
    for k in range(4):
        buffer[:] = np.sin(np.arange(3) + k)
        total = total + np.sum(buffer * x**2)
    return total


def written_after_its_use(x):
    a = np.ones(3)
    y = a * x
    a[0] = 7.0
    return np.sum(y * y)


def through_views(x):
    a = np.ones(6)
    y = a[:3] * x
    a[0] = 7.0
    z = a[:3] * x
    a.flags.writeable = False
    return np.sum(y * y) + np.sum(z * z * z)


def accumulated(x):
    t, total = np.array(0.0), 0.0
    for _ in range(3):
        t += 0.5
        total = total + np.sum(np.exp(-t * x))
    return total


def back_to_what_it_was(x):
    a = np.ones(3)
    total = a @ x
    a *= 2
    total = total + (a @ x) ** 2
    a /= 2
    return total + (a @ x) ** 3


FUNCTIONS = [buffer_in_a_loop, written_after_its_use, through_views, accumulated, back_to_what_it_was]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_operations_see_what_was_in_an_array_at_their_turn(function):
    compiled = pb.compile(pb.value_and_grad(function))
    for scale in (1.0, 1.5, -0.3):
        value, gradient = compiled(scale * X)
        np.testing.assert_allclose(value, function(scale * X), rtol=1e-12)
        np.testing.assert_allclose(gradient, pb.grad(function)(scale * X), rtol=1e-12)
    assert compiled.traces == 1


def test_an_array_from_outside_is_still_found_where_it_is():
    outside = np.arange(3.0)
    compiled = pb.compile(lambda x: x * outside)
    assert compiled(X).tolist() == (X * outside).tolist()
    outside[:] = 5.0
    assert compiled(X).tolist() == (X * 5.0).tolist()


def test_a_large_array_that_is_filled_anew_is_refused():
    size = LARGEST_COPY // 8 + 1

    def function(x):
        buffer, total = np.zeros(size), 0.0
        for k in range(2):
            buffer += k + 1
            total = total + np.sum(buffer * x)
        return total

    with pytest.raises(pb.TraceError, match="written in place after an operation had taken it"):
        pb.compile(function)(pb.tensor(2.0, dtype=pb.float64))
