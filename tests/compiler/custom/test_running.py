"""Running sums and products, and positions of extremes, against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy import reductions
from pullback.targets.custom_kernels import Extreme, Running
from pullback.targets.llvm.kernels import running

from .native import laid_out, run, strides

SHAPES = [
    ((3, 5, 33), 1),
    ((4, 33), -1),
    ((300, 3), 0),
    ((5,), 0),
    ((2, 1, 3), 1),
    ((2, 0, 3), 1),
    ((0, 3), 1),
    ((20, 37), 1),
    ((1, 70), 1),
    ((70, 2), 0),
]


def _numbers(shape: Any, dtype: str) -> Any:
    return (2 * np.random.default_rng(1).standard_normal(shape)).astype(dtype)


def _running(op: str, x: Any, axis: int, reverse: bool, exclusive: bool) -> Any:
    out = np.full_like(x, 99)
    kernel = Running(op, x.dtype.name, x.shape, axis % x.ndim, reverse, exclusive, strides(x), strides(out))
    assert running.supports(kernel)
    run(running.emit, kernel, [x, out], 2)
    return out


@pytest.mark.parametrize(("dtype", "reverse"), [("float32", False), ("float64", True), ("int64", False)])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_running_sums_and_products(shape: Any, axis: int, reverse: bool, dtype: str) -> None:
    axis = axis % len(shape) - len(shape)  # as NumPy's kernels expect it
    for layout in ("contiguous", "transposed", "gaps"):
        x = laid_out(_numbers(shape, dtype), layout)
        got = _running("sum", x, axis, reverse, False)
        np.testing.assert_array_equal(got, reductions.cumulative_sum(x, (axis,), reverse))
    for exclusive in (False, True):
        expected = reductions.cumulative_prod(x, (axis,), reverse, exclusive)
        np.testing.assert_array_equal(_running("prod", x, axis, reverse, exclusive), expected)


def test_running_products_of_small_integers() -> None:
    x = np.arange(1, 85, dtype=np.int32).reshape(2, 42) % 7 + 1
    expected = reductions.cumulative_prod(x, (-1,), False, True)
    assert expected.dtype == np.int32
    np.testing.assert_array_equal(_running("prod", x, 1, False, True), expected)


def _extreme(op: str, x: Any, axis: int) -> Any:
    moved = np.moveaxis(x, axis, -1)
    out = np.full(moved.shape[:-1], 99, np.int64)
    kernel = Extreme(op, x.dtype.name, moved.shape[:-1], moved.shape[-1], strides(moved), strides(out))
    assert running.supports(kernel)
    run(running.emit, kernel, [x, out], 2)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((3, 5, 33), -1),
        ((7, 5), 0),
        ((40,), 0),
        ((4, 1), 1),
        ((3, 16), 1),
        ((0, 3), 1),
        ((9, 150), 0),
        ((2, 7, 65), 1),
        ((1, 40), 0),
        ((2, 5, 64), 1),
        ((5, 3, 20), 0),
    ],
)
def test_positions_of_extremes(shape: Any, axis: int, op: str, dtype: str) -> None:
    x = _numbers(shape, dtype)
    for given in (x, np.round(x), -abs(x) - 1, abs(x) + 1):  # with equal elements, and with one sign
        given = given.astype(dtype)
        np.testing.assert_array_equal(_extreme(op, given, axis), getattr(reductions, op)(given, (axis,)))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_first_nan_is_the_extreme(op: str) -> None:
    x = _numbers((6, 37), "float32")
    x[0, 20] = x[1, 36] = x[2, 0] = x[3, 5] = x[3, 4] = np.nan
    x[4] = np.nan
    x[5, 9] = x[5, 12] = np.inf
    np.testing.assert_array_equal(_extreme(op, x, 1), getattr(reductions, op)(x, (1,)))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_first_nan_is_the_extreme_of_a_column(op: str) -> None:
    x = _numbers((6, 37), "float64")
    x[0, 20] = x[5, 36] = x[2, 0] = x[3, 5] = x[1, 5] = np.nan
    x[:, 4] = np.nan
    x[2, 9] = x[4, 9] = np.inf
    np.testing.assert_array_equal(_extreme(op, x, 0), getattr(reductions, op)(x, (0,)))


def test_rows_without_elements_have_no_extreme() -> None:
    assert not running.supports(Extreme("argmax", "float32", (3,), 0, (0, 1), (1,)))
    assert not running.supports(Running("sum", "float16", (3,), 0, False, False, (1,), (1,)))
