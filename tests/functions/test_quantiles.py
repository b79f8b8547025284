"""Quantiles: NumPy's values by each of its methods, what is infinite or NaN, and shares that are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.functions.quantiles import _PLACES

SHARES: list[Any] = [0.5, [0.0, 0.1, 0.25, 0.3, 0.625, 0.75, 0.9, 1.0], [[0.5], [0.2]]]


@pytest.mark.parametrize("method", _PLACES)
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_values_are_numpys(method: str, count: int) -> None:
    x = np.random.default_rng(count).normal(size=(2, count, 3))
    for q in SHARES:
        for axis, keepdims in ((1, False), (None, True), ((0, 2), True), ((2, 0), False)):
            expected = np.quantile(x, q, axis=axis, method=method, keepdims=keepdims)
            found = pb.quantile(x, q, axis, method=method, keepdims=keepdims)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_dtypes() -> None:
    for dtype in (pb.float16, pb.float32):
        assert pb.quantile(pb.arange(5, dtype=dtype), 0.3).dtype == dtype
    assert pb.quantile([1, 2, 3, 4], 0.5).item() == 2.5
    assert pb.quantile([1, 2, 3, 4], 0.5, method="lower").dtype == pb.int64
    many = pb.arange(4000, dtype=pb.float16)
    assert pb.quantile(many, 0.5).item() == 2000  # the place has more digits than the numbers


def test_infinities_and_nan() -> None:
    x = np.array([[-np.inf, -np.inf, 1.0, np.inf, np.inf], [0.0, 1.0, np.nan, 2.0, 3.0]])
    with np.errstate(all="raise"):
        found = pb.quantile(x, [0.0, 0.125, 0.5, 0.875], axis=1)
    np.testing.assert_array_equal(found, [[-np.inf, np.nan], [-np.inf, np.nan], [1, np.nan], [np.inf, np.nan]])


def test_gradients_at_ties_and_ends() -> None:
    x = pb.tensor([2.0, 1.0, 2.0, 5.0], requires_grad=True)
    gradient = pb.backward(pb.quantile(x, 0.5))[x]
    assert gradient.sum().item() == 1 and gradient[[1, 3]].tolist() == [0, 0]
    assert pb.backward(pb.quantile(x, 1.0))[x].tolist() == [0, 0, 0, 1]
    assert pb.backward(pb.quantile(x, 0.0))[x].tolist() == [0, 1, 0, 0]


def test_shares_that_are_tensors_have_gradients() -> None:
    q = pb.tensor([0.25, 0.5], dtype=pb.float64, requires_grad=True)
    pb.quantile(np.array([0.0, 1.0, 4.0]), q).sum().backward()
    assert q.grad.tolist() == [2, 0]  # at an element itself there is no slope, as in PyTorch
    found = pb.compile(lambda q: pb.quantile(pb.asarray([0.0, 1.0, 4.0]), q))(pb.tensor([0.75]))
    assert found.tolist() == [2.5]


def test_what_is_refused() -> None:
    x = np.zeros(3)
    with pytest.raises(ValueError, match=r"from 0 to 1, got 1\.5"):
        pb.quantile(x, 1.5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        pb.quantile(x, np.nan)
    with pytest.raises(ValueError, match=r"linear, lower, .* got 'best'"):
        pb.quantile(x, 0.5, method="best")
    with pytest.raises(pb.ShapeError, match="no elements"):
        pb.quantile(np.zeros((0, 2)), 0.5, axis=0)
    with pytest.raises(pb.DtypeError, match="no order"):
        pb.quantile(np.zeros(3, complex), 0.5)
    with pytest.raises(pb.DtypeError, match="q must be"):
        pb.quantile(x, "half")
    with pytest.raises(pb.DtypeError, match="q must be floating-point"):
        pb.quantile(x, pb.asarray(1))
