"""Scans and their gradients against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy import scan as reference
from pullback.backends.numpy.reductions import recurrence
from pullback.targets.custom_kernels import Scan, ScanGradient
from pullback.targets.llvm.kernels import scan

from .native import broadcast_strides, laid_out, run, strides

SHAPES = [
    ((2, 5, 3), 1), ((4, 1, 33), 1), ((3, 7, 1), 1), ((2, 3, 5, 33), -2), ((3, 33), -1), ((300, 3), 0), ((5,), 0),
    ((2, 4, 290), 1), ((2, 0, 3), 1), ((0, 4, 3), 1), ((2, 300), 0), ((7, 2, 3), 0),
    ((40, 50), -1), ((2, 20, 37), 2),
]  # fmt: skip


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def _with_time(array: Any, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The strides of an array without an axis of time, as if it had one."""
    full = list(broadcast_strides(array, _without(shape, axis)))
    full.insert(axis % len(shape), 12345)  # not to be used
    return tuple(full)


def _numbers(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def _scan(x: Any, a: Any, h0: Any, axis: int, reverse: bool, parts: int = 1) -> Any:
    out = np.full_like(x, np.nan)
    kernel = Scan(
        x.dtype.name, x.shape, axis % x.ndim, reverse, strides(x), broadcast_strides(a, x.shape),
        None if h0 is None else _with_time(h0, x.shape, axis), strides(out),
    )  # fmt: skip
    assert scan.supports(kernel)
    run(scan.emit, kernel, [array for array in (x, a, h0, out) if array is not None], parts)
    return out


@pytest.mark.parametrize(("dtype", "reverse"), [("float32", False), ("float64", True)])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_scan_is_that_of_numpy(shape: tuple[int, ...], axis: int, reverse: bool, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, a = _numbers(rng, shape, dtype), _numbers(rng, shape, dtype)
    h0 = _numbers(rng, _without(shape, axis), dtype)
    for start in (None, h0):
        expected = reference.ssm_scan(x, a, start, axis, reverse)
        np.testing.assert_array_equal(_scan(x, a, start, axis, reverse), expected)


@pytest.mark.parametrize("a_shape", [(), (33,), (5, 1), (3, 1, 1), (1, 5, 33)])
def test_factors_and_states_are_broadcast(a_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, a, h0 = (
        _numbers(rng, (3, 5, 33), "float32"),
        _numbers(rng, a_shape, "float32"),
        _numbers(rng, (1, 33), "float32"),
    )
    np.testing.assert_array_equal(_scan(x, a, h0, 1, False), reference.ssm_scan(x, a, h0, 1, False))


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_arrays_may_lie_in_any_order(layout: str, axis: int) -> None:
    rng = np.random.default_rng(3)
    x = laid_out(_numbers(rng, (3, 5, 37), "float32"), layout)
    a = laid_out(_numbers(rng, (3, 5, 37), "float32"), layout)
    np.testing.assert_array_equal(_scan(x, a, None, axis, True), reference.ssm_scan(x, a, None, axis, True))


def test_first_factor_is_not_used_without_a_state() -> None:
    x = np.ones((2, 3), "float32")
    a = np.array([[np.inf, 0.5, 0.5], [np.nan, 2, 2]], "float32")
    np.testing.assert_array_equal(_scan(x, a, None, 1, False), recurrence(x, a, (1,)))


@pytest.mark.parametrize("parts", [2, 3])
def test_work_can_be_shared(parts: int) -> None:
    rng = np.random.default_rng(4)
    x, a = _numbers(rng, (3, 5, 600), "float32"), _numbers(rng, (3, 5, 600), "float32")
    np.testing.assert_array_equal(_scan(x, a, None, 1, False, parts), reference.ssm_scan(x, a, None, 1, False))


def _gradient(g: Any, a: Any, h0: Any, out: Any, axis: int, reverse: bool, needs: Any, sums_a: bool = False) -> Any:
    axis %= g.ndim
    shape = g.shape
    still = tuple(1 if i == axis else n for i, n in enumerate(shape))
    made = [
        np.full(shape, np.nan, out.dtype),
        np.full(still if sums_a else shape, np.nan, out.dtype),
        np.full(_without(shape, axis), np.nan, out.dtype),
    ]
    steps: list[Any] = [strides(made[0]), strides(made[1]), _with_time(made[2], shape, axis)]
    if sums_a:
        steps[1] = _with_time(made[1].reshape(_without(shape, axis)), shape, axis)
    asked = [step if need else None for step, need in zip(steps, needs)]
    kernel = ScanGradient(
        out.dtype.name, shape, axis, reverse, strides(g), broadcast_strides(a, shape),
        None if h0 is None else _with_time(h0, shape, axis), strides(out) if needs[1] else None,
        asked[0], asked[1], asked[2], sums_a,
    )  # fmt: skip
    assert scan.supports(kernel)
    reads = [array for array in (g, a, h0, out if needs[1] else None) if array is not None]
    run(scan.emit, kernel, reads + [array for array, need in zip(made, needs) if need], 2)
    return [array if need else None for array, need in zip(made, needs)]


@pytest.mark.parametrize(("dtype", "reverse"), [("float32", False), ("float64", True)])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradient_is_that_of_numpy(shape: tuple[int, ...], axis: int, reverse: bool, dtype: str) -> None:
    rng = np.random.default_rng(5)
    g, a, out = (_numbers(rng, shape, dtype) for _ in range(3))
    h0 = _numbers(rng, _without(shape, axis), dtype)
    for start, needs in ((None, (True, True, False)), (h0, (True, True, True)), (h0, (False, True, False))):
        expected = reference.ssm_scan_gradient(g, a, start, out, a.shape, h0.shape, axis, reverse, (True, *needs[1:]))
        for got, want, need in zip(_gradient(g, a, start, out, axis, reverse, needs), expected, needs):
            if need:
                np.testing.assert_array_equal(got, want)


def test_cotangent_may_be_one_number_everywhere() -> None:
    rng = np.random.default_rng(6)
    g = np.broadcast_to(np.float32(0.25), (2, 6, 40))
    a, out = _numbers(rng, g.shape, "float32"), _numbers(rng, g.shape, "float32")
    expected = reference.ssm_scan_gradient(g, a, None, out, a.shape, None, 1, False, (True, True, False))
    got = _gradient(g, a, None, out, 1, False, (True, True, False))
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradient_of_constant_factors_is_summed_over_time(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(7)
    g, out = _numbers(rng, shape, "float64"), _numbers(rng, shape, "float64")
    still = tuple(1 if i == axis % len(shape) else n for i, n in enumerate(shape))
    a, h0 = 0.5 * _numbers(rng, still, "float64"), _numbers(rng, _without(shape, axis), "float64")
    expected = reference.ssm_scan_gradient(g, a, h0, out, a.shape, h0.shape, axis, False, (True, True, True))
    for got, want in zip(_gradient(g, a, h0, out, axis, False, (True, True, True), sums_a=True), expected):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
