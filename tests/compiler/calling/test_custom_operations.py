"""Operations of one's own inside a compiled function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb


def reversed_sum(g: Any) -> Any:
    return pb.flip(pb.cumulative_sum(pb.flip(g, axis=0), axis=0), axis=0)


def test_a_kernel_of_operators_is_traced() -> None:
    cube = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    slope = pb.compile(lambda x: pb.backward((cube(w) * x).sum())[w])
    for _ in range(2):
        assert slope(pb.tensor([1.0, 3.0])).tolist() == [3.0, 36.0]


def test_a_kernel_of_numpys_functions_is_called_as_it_is_if_its_shape_is_known() -> None:
    calls = []

    def running(x: Any) -> Any:
        calls.append(type(x))
        return np.cumsum(x)

    total = pb.custom_op(running, name="running", shape=lambda x: x, x=lambda g, x_shape: reversed_sum(g))
    w = pb.tensor([1.0, 2.0, 5.0], requires_grad=True)

    @pb.compile
    def both(x: Any) -> Any:
        result = total(w * x)
        return result.detach(), pb.backward((result * x).sum())[w]

    for x in ([1.0, 3.0, 2.0], [2.0, 1.0, 1.0]):
        values, gradient = both(pb.tensor(x))
        np.testing.assert_allclose(values.numpy(), np.cumsum(w.detach().numpy() * x), rtol=1e-6)
        np.testing.assert_allclose(gradient.numpy(), np.cumsum(x[::-1])[::-1] * x, rtol=1e-6)
    assert both.traces == 1 and set(calls) == {np.ndarray} and len(calls) == 2
    assert "running" in both.source


def test_several_results_of_other_dtypes_and_static_arguments() -> None:
    def largest(x: Any, *, count: int) -> Any:
        order = np.argsort(-x, kind="stable")[:count]
        return x[order], order

    top = pb.custom_op(
        largest, name="top", outputs="values order", shape=lambda x, count: [(count,), ((count,), "int64")]
    )
    run = pb.compile(lambda x: top(x, count=2))
    for x in ([1.0, 5.0, 3.0], [7.0, 5.0, 8.0]):
        values, order = run(pb.tensor(x))
        expected, places = top(pb.tensor(x), count=2)
        assert values.tolist() == expected.tolist() and order.tolist() == places.tolist()
        assert order.dtype == pb.int64


def test_a_kernel_that_needs_values_is_refused_without_a_shape() -> None:
    total = pb.custom_op(lambda x: np.cumsum(np.asarray(x)), name="running")
    with pytest.raises(pb.TraceError, match=r"test_custom_operations\.py:\d+"):
        pb.compile(lambda x: total(x))(pb.tensor([1.0, 2.0]))


def test_a_shape_that_is_none_says_so() -> None:
    broken = pb.custom_op(lambda x: x, name="broken", shape=lambda x: "wide")
    with pytest.raises(pb.ShapeError, match="broken: `shape` gives a tuple of lengths"):
        pb.compile(lambda x: broken(x))(pb.tensor([1.0, 2.0]))
