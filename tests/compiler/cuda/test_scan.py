"""Linear recurrences and their gradients in Triton's interpreter, against NumPy's kernels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy import scan as reference
from pullback.backends.numpy.reductions import recurrence

from ...backends.installed import optional
from ..custom import test_scan as native
from ..custom.native import laid_out
from ..loops.evaluation import dtype_of
from .chunks import in_chunks
from .custom import run

__all__ = ["in_chunks"]

ml_dtypes = optional("ml_dtypes")

SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((2, 5, 3), 1), ((3, 7, 1), 1), ((2, 3, 5, 9), -2), ((3, 33), -1), ((70, 3), 0), ((5,), 0), ((2, 0, 3), 1),
    ((0, 4, 3), 1), ((7, 2, 3), 0), ((2, 4, 150), 1),
]  # fmt: skip
LONG: list[tuple[tuple[int, ...], int]] = [((2, 14, 5), 1), ((3, 17), -1), ((15,), 0)]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "run", run)


def _numbers(rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.standard_normal(shape)


def _close(found: Any, expected: Any) -> None:
    eps = np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=200 * eps, atol=200 * eps, strict=True)


def _check_scan(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    x, a = _numbers(rng, shape), _numbers(rng, shape)
    for h0 in (None, _numbers(rng, native._without(shape, axis))):
        _close(native._scan(x, a, h0, axis, reverse), reference.ssm_scan(x, a, h0, axis, reverse))


def _check_gradient(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(5)
    g, a, out = (_numbers(rng, shape) for _ in range(3))
    h0 = _numbers(rng, native._without(shape, axis))
    for start, needs in ((None, (False, True, False)), (h0, (True, True, True))):
        expected = reference.ssm_scan_gradient(g, a, start, out, a.shape, h0.shape, axis, reverse, (True, *needs[1:]))
        for found, want, need in zip(native._gradient(g, a, start, out, axis, reverse, needs), expected, needs):
            if need:
                _close(found, want)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_scan_is_that_of_numpy(shape: tuple[int, ...], axis: int) -> None:
    _check_scan(shape, axis, len(shape) % 2 == 0)


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize(("shape", "axis"), LONG)
def test_long_times_are_cut_into_chunks(shape: tuple[int, ...], axis: int) -> None:
    _check_scan(shape, axis, len(shape) == 2)
    _check_gradient(shape, axis, len(shape) != 2)


@pytest.mark.parametrize("a_shape", [(), (3,), (5, 1), (2, 1, 1)])
def test_factors_and_states_are_broadcast(a_shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, a, h0 = _numbers(rng, (2, 5, 3)), _numbers(rng, a_shape), _numbers(rng, (1, 3))
    _close(native._scan(x, a, h0, 1, False), reference.ssm_scan(x, a, h0, 1, False))


@pytest.mark.parametrize(("layout", "axis"), [("transposed", 0), ("transposed", 1), ("reversed", 2), ("gaps", 2)])
def test_arrays_may_lie_in_any_order(layout: str, axis: int) -> None:
    rng = np.random.default_rng(3)
    x, a = (laid_out(_numbers(rng, (3, 5, 4)), layout) for _ in range(2))
    _close(native._scan(x, a, None, axis, True), reference.ssm_scan(x, a, None, axis, True))


def test_first_factor_is_not_used_without_a_state() -> None:
    native.test_first_factor_is_not_used_without_a_state()


def test_float32_is_rounded_once() -> None:
    rng = np.random.default_rng(4)
    x, a = (_numbers(rng, (4, 40)).astype(np.float32) for _ in range(2))
    expected = reference.ssm_scan(x.astype(np.float64), a.astype(np.float64), None, 1, False)
    np.testing.assert_allclose(native._scan(x, a, None, 1, False), expected.astype(np.float32), rtol=1.2e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "scan", SimpleNamespace(supports=lambda kernel: True, emit=None))
    rng = np.random.default_rng(8)
    x, a, g = (_numbers(rng, (2, 9, 3)).astype(dtype_of(dtype)) for _ in range(3))
    wide = reference.ssm_scan(x.astype(np.float64), a.astype(np.float64), None, 1, False)
    out = native._scan(x, a, None, 1, False)
    eps = float(ml_dtypes.finfo(x.dtype).eps)  # the interpreter cuts what a GPU rounds
    np.testing.assert_allclose(out.astype(np.float64), wide, rtol=eps)
    arrays = [part.astype(np.float64) for part in (g, a)]
    states = out.astype(np.float64)
    expected = reference.ssm_scan_gradient(*arrays, None, states, a.shape, None, 1, False, (True, True, False))
    for found, want in zip(native._gradient(g, a, None, out, 1, False, (True, True, False))[:2], expected):
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=eps)


@pytest.mark.usefixtures("in_chunks")
def test_products_of_factors_may_be_larger_than_any_float32() -> None:
    """A state of zero stays zero, and a small one grows as it does step by step."""
    x, a = np.zeros((1, 60), np.float32), np.full((1, 60), 100, np.float32)
    np.testing.assert_array_equal(native._scan(x, a, None, 1, False), x)
    x[0, 30] = 1e-38
    np.testing.assert_allclose(native._scan(x, a, None, 1, False), recurrence(x, a, (1,)), rtol=1e-5)
    a[0, 5] = np.nan  # even one that meets a state of zero
    assert np.isnan(native._scan(x, a, None, 1, False)[0, 5:]).all()


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradient_is_that_of_numpy(shape: tuple[int, ...], axis: int) -> None:
    _check_gradient(shape, axis, shape[0] % 2 == 0)


def test_cotangent_may_be_one_number_everywhere() -> None:
    rng = np.random.default_rng(6)
    g = np.broadcast_to(np.float64(0.25), (2, 6, 4))
    a, out = _numbers(rng, g.shape), _numbers(rng, g.shape)
    expected = reference.ssm_scan_gradient(g, a, None, out, a.shape, None, 1, False, (True, True, False))
    for found, want in zip(native._gradient(g, a, None, out, 1, False, (True, True, False))[:2], expected):
        _close(found, want)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradient_of_constant_factors_is_summed_over_time(shape: tuple[int, ...], axis: int) -> None:
    native.test_gradient_of_constant_factors_is_summed_over_time(shape, axis)


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize(("shape", "axis"), LONG)
def test_sums_over_time_of_chunks(shape: tuple[int, ...], axis: int) -> None:
    native.test_gradient_of_constant_factors_is_summed_over_time(shape, axis)
