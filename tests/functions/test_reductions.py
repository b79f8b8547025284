"""Reductions, running totals, sorting, searching and sets: values, dtypes, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(7).normal(size=(3, 4, 2))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "var", "std", "all", "any", "median"])
def test_reductions_agree_with_numpy(name: str, axis: Any, keepdims: bool) -> None:
    expected = getattr(np, name)(X, axis=axis, keepdims=keepdims) if (name, axis) != ("median", ()) else X
    found = getattr(pb, name)(pb.asarray(X), axis=axis, keepdims=keepdims)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_small_integers_are_summed_as_large_ones() -> None:
    assert pb.sum(pb.asarray([100, 100], dtype=pb.int8)).item() == 200
    assert pb.sum(pb.ones(3, dtype=pb.bool)).dtype == pb.int64
    assert pb.prod(pb.ones(3, dtype=pb.uint8)).dtype == pb.uint64
    assert pb.sum(pb.ones(3, dtype=pb.int8), dtype=pb.int8).dtype == pb.int8
    assert pb.cumulative_sum(pb.ones(3, dtype=pb.int8)).dtype == pb.int64


@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_variance_takes_a_correction(correction: float) -> None:
    np.testing.assert_allclose(pb.var(pb.asarray(X), 1, correction=correction).numpy(), np.var(X, 1, ddof=correction))


def test_too_few_elements_for_a_variance_give_nan_without_warnings() -> None:
    assert np.isnan(pb.var(pb.ones(1), correction=1).item())
    assert np.isnan(pb.std(pb.ones(0)).item())
    assert np.isnan(pb.mean(pb.ones(0)).item())


def test_the_largest_of_nothing_is_an_error() -> None:
    with pytest.raises(pb.ShapeError, match="max"):
        pb.max(pb.ones(0))
    with pytest.raises(pb.ShapeError, match="median"):
        pb.median(pb.ones((0, 2)), axis=0)


def test_axes_that_are_not_there_are_refused() -> None:
    with pytest.raises(pb.ShapeError, match="axis 3"):
        pb.sum(pb.ones((2, 3)), axis=3)
    with pytest.raises(pb.ShapeError, match="twice"):
        pb.sum(pb.ones((2, 3)), axis=(0, -2))
    with pytest.raises(pb.DtypeError, match="integer"):
        pb.sum(pb.ones((2, 3)), axis=0.5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_totals_agree_with_numpy(axis: int) -> None:
    x = pb.asarray(X)
    np.testing.assert_allclose(pb.cumulative_sum(x, axis=axis).numpy(), np.cumsum(X, axis))
    np.testing.assert_allclose(pb.cumulative_prod(x, axis=axis).numpy(), np.cumprod(X, axis))
    with_initial = pb.cumulative_prod(x, axis=axis, include_initial=True)
    assert with_initial.shape[axis] == X.shape[axis] + 1
    np.testing.assert_array_equal(np.take(with_initial.numpy(), 0, axis), 1)
    np.testing.assert_allclose(pb.diff(x, axis=axis).numpy(), np.diff(X, axis=axis))


def test_numpys_running_totals_flatten() -> None:
    x = np.arange(1, 7, dtype=np.int8).reshape(2, 3)
    for name in ("cumsum", "cumprod"):
        for options in ({}, {"axis": 0}, {"axis": 1, "dtype": np.float32}, {"dtype": np.int16}):
            expected = getattr(np, name)(x, **options)
            for found in (getattr(pb, name)(x, **options), getattr(pb.asarray(x), name)(**options)):
                np.testing.assert_array_equal(found, expected)
                assert found.dtype == expected.dtype
        assert getattr(pb, name)(np.array(3.0)).tolist() == [3]
        assert getattr(pb, name)(np.zeros((0, 2))).shape == (0,)
    assert pb.amax(x, axis=0).tolist() == [4, 5, 6] and pb.amin(x).item() == 1


def test_running_totals_without_an_axis_need_one_axis() -> None:
    with pytest.raises(pb.ShapeError, match="axis="):
        pb.cumulative_sum(pb.asarray(X))
    np.testing.assert_allclose(pb.asarray(X).cumsum().numpy(), np.cumsum(X))


@pytest.mark.parametrize("name", ["argmax", "argmin", "count_nonzero"])
@pytest.mark.parametrize("axis", [None, 0, 2])
def test_places_agree_with_numpy(name: str, axis: int | None) -> None:
    expected = getattr(np, name)(X, axis=axis, keepdims=True)
    np.testing.assert_array_equal(getattr(pb, name)(pb.asarray(X), axis=axis, keepdims=True).numpy(), expected)


def test_the_median_of_nan_is_nan() -> None:
    assert np.isnan(pb.median(pb.asarray([1.0, pb.nan, 2.0])).item())


def test_equal_largest_elements_share_the_gradient() -> None:
    x = pb.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    np.testing.assert_allclose(pb.backward(x.max(1).sum())[x].numpy(), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6)


# -- sorting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sorting_agrees_with_numpy(axis: int, descending: bool) -> None:
    x = pb.asarray(X)
    expected = np.sort(X, axis)
    found = pb.sort(x, axis=axis, descending=descending)
    np.testing.assert_array_equal(found.numpy(), np.flip(expected, axis) if descending else expected)
    order = pb.argsort(x, axis=axis, descending=descending)
    np.testing.assert_array_equal(np.take_along_axis(X, order.numpy(), axis), found.numpy())


def test_stable_sorting_keeps_the_order_of_equal_elements() -> None:
    x = pb.asarray([1, 0, 1, 0, 1])
    np.testing.assert_array_equal(pb.argsort(x).numpy(), [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(pb.argsort(x, descending=True).numpy(), [0, 2, 4, 1, 3])


def test_topk() -> None:
    values, places = pb.topk(pb.asarray([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]), 2)
    np.testing.assert_array_equal(values.numpy(), [[3, 2], [6, 5]])
    np.testing.assert_array_equal(places.numpy(), [[0, 2], [1, 2]])
    values, _ = pb.topk(pb.asarray([3.0, 1.0, 2.0]), 2, largest=False)
    np.testing.assert_array_equal(values.numpy(), [1, 2])
    with pytest.raises(pb.ShapeError, match="k is 4"):
        pb.topk(pb.ones(3), 4)


def test_complex_numbers_are_not_sorted() -> None:
    with pytest.raises(pb.DtypeError, match="no order"):
        pb.sort(pb.asarray([1j]))


# -- searching and sets --------------------------------------------------------------------------


def test_searchsorted() -> None:
    x, values = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[2.0, 0.0], [9.0, 3.0]])
    for side in ("left", "right"):
        found = pb.searchsorted(pb.asarray(x), pb.asarray(values), side=side)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(x, values, side))
    order = pb.argsort(pb.asarray(x[::-1].copy()))
    found = pb.searchsorted(pb.asarray(x[::-1].copy()), pb.asarray(values), sorter=order)
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(x, values))
    assert pb.searchsorted(pb.asarray(x), 4.0).item() == 3


def test_where_and_nonzero() -> None:
    x = pb.asarray([0.0, 3.0, -1.0])
    np.testing.assert_array_equal(pb.where(x > 0, x, -x).numpy(), [0, 3, 1])
    assert pb.where(x > 0, 1.0, 0.0).dtype == pb.float32
    assert pb.where(x > 0, x, 0).dtype == pb.float32
    np.testing.assert_array_equal(pb.nonzero(x)[0].numpy(), [1, 2])
    with pytest.raises(pb.ShapeError, match="0-d"):
        pb.nonzero(pb.asarray(1.0))


def test_sets() -> None:
    x = pb.asarray([[3.0, 1.0], [3.0, pb.nan]])
    values, places, inverse, counts = pb.unique_all(x)
    np.testing.assert_array_equal(values.numpy(), [1, 3, np.nan])
    np.testing.assert_array_equal(counts.numpy(), [1, 2, 1])
    np.testing.assert_array_equal(inverse.numpy(), [[1, 0], [1, 2]])
    np.testing.assert_array_equal(places.numpy(), [1, 0, 3])
    assert pb.unique_values(pb.asarray([pb.nan, pb.nan])).size == 2
    np.testing.assert_array_equal(
        pb.isin(pb.asarray([1, 2, 3]), pb.asarray([2]), invert=True).numpy(), [True, False, True]
    )
    np.testing.assert_array_equal(pb.isin(pb.asarray([1, 2, 3]), 2).numpy(), [False, True, False])


# -- methods -------------------------------------------------------------------------------------


def test_functions_are_methods_under_numpys_names() -> None:
    x = pb.asarray(X)
    np.testing.assert_allclose(x.sum(0).numpy(), X.sum(0))
    np.testing.assert_allclose(x.mean(axis=(0, 1), keepdims=True).numpy(), X.mean(axis=(0, 1), keepdims=True))
    np.testing.assert_array_equal(x.T.numpy(), X.T)
    np.testing.assert_array_equal(x.mT.numpy(), X.swapaxes(-1, -2))
    for shaped in (x.reshape(2, 12), x.reshape((2, 12)), x.reshape(2, -1)):
        np.testing.assert_array_equal(shaped.numpy(), X.reshape(2, 12))
    np.testing.assert_array_equal(x.transpose(2, 0, 1).numpy(), X.transpose(2, 0, 1))
    np.testing.assert_array_equal(x.transpose().numpy(), X.transpose())
    np.testing.assert_array_equal(x.clip(-1, 1).numpy(), X.clip(-1, 1))
    np.testing.assert_array_equal(x.argmax(1).numpy(), X.argmax(1))
    np.testing.assert_array_equal(x.cumprod(1).numpy(), X.cumprod(1))
    assert x.astype(pb.float32).dtype == pb.float32
    z = pb.asarray([1 + 2j])
    assert (z.real.item(), z.imag.item(), z.conj().item()) == (1, 2, 1 - 2j)
