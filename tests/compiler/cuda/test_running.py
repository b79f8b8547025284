"""Running sums and products, and positions of extremes, in Triton's interpreter: tests of the native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiler.lowering.views import NATIVE
from pullback.targets.cuda.kernels.table import kernel_for
from pullback.targets.custom_kernels import Extreme, Running

from ..custom import test_running as native
from ..custom.native import strides
from ..loops.evaluation import dtype_of
from .chunks import in_chunks
from .custom import run

__all__ = ["in_chunks"]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "run", run)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 5, 33), 1), ((4, 33), -1), ((5,), 0), ((2, 0, 3), 1), ((0, 3), 1), ((70, 2), 0)]
)
def test_running_sums_and_products(shape: Any, axis: int) -> None:
    native.test_running_sums_and_products(shape, axis, True, "int64")


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5, 33), -1), ((7, 5), 0), ((4, 1), 1), ((0, 3), 1), ((2, 7, 65), 1)])
def test_positions_of_extremes(shape: Any, axis: int, op: str) -> None:
    native.test_positions_of_extremes(shape, axis, op, "float32")


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_first_nan_is_the_extreme(op: str) -> None:
    native.test_first_nan_is_the_extreme(op)
    native.test_first_nan_is_the_extreme_of_a_column(op)


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize(("shape", "axis"), [((3, 21, 5), -2), ((2, 37), -1), ((30, 3), -2)])
def test_long_times_are_cut_into_chunks(shape: Any, axis: int) -> None:
    x = native._numbers(shape, "int64")
    out = np.empty_like(x)
    assert kernel_for(Running("sum", "int64", shape, axis % x.ndim, True, False, strides(x), strides(out))).scratch
    np.testing.assert_array_equal(
        native._running("prod", x, axis, True, True), native.reductions.cumulative_prod(x, (axis,), True, True)
    )
    x, out = x.astype(np.float32), out.astype(np.float32)
    kernel = Running("sum", "float32", shape, axis % x.ndim, False, True, strides(x), strides(out))
    run(None, kernel, [x, out])
    np.testing.assert_allclose(out, np.cumsum(x, axis) - x, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("in_chunks")
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 77), 1), ((41, 6), 0), ((2, 40, 3), 1)])
def test_long_rows_are_cut_into_chunks(shape: Any, axis: int, op: str) -> None:
    x = np.round(native._numbers(shape, "float32"))
    x.flat[[60, 70]] = np.nan
    np.testing.assert_array_equal(native._extreme(op, x, axis), getattr(np, op)(x, axis))


@pytest.mark.parametrize("dtype", sorted(NATIVE))
def test_every_dtype(dtype: str) -> None:
    kind = dtype_of(dtype)
    x = np.random.default_rng(3).integers(0, 4, (3, 9)).astype(kind)
    if kind.kind in "iu":
        x[1, 4], x[2, 3] = np.iinfo(kind).max, np.iinfo(kind).min
        x[0] = np.iinfo(kind).min
    for op in ("argmax", "argmin"):
        out = np.zeros(3, np.int64)
        run(None, Extreme(op, dtype, (3,), 9, strides(x), strides(out)), [x, out])
        np.testing.assert_array_equal(out, getattr(np, op)(x, 1))
    if dtype != "bool":
        x, out = np.minimum(x, kind.type(3)), np.zeros_like(x)
        run(None, Running("sum", dtype, x.shape, 1, False, False, strides(x), strides(out)), [x, out])
        np.testing.assert_array_equal(out, np.cumsum(x, 1, dtype=kind))
