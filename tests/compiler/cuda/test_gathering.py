"""Reading and adding at indices in Triton's interpreter: tests of the native kernels, other dtypes, sums in parts."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
import pytest

from pullback.compiler.lowering.views import NATIVE
from pullback.targets.cuda.kernels import scatter, segments
from pullback.targets.cuda.kernels.table import kernel_for
from pullback.targets.custom_kernels import Gather, GatherAlong, Scatter, ScatterAlong

from ..custom import test_gathering as native
from ..custom.native import strides
from ..loops.evaluation import dtype_of
from .custom import run


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "run", run)
    monkeypatch.setattr(native, "_numbers", _whole_numbers)


def _whole_numbers(rng: Any, shape: Any, dtype: str) -> Any:
    """Sums of these are exact, however they are added."""
    return rng.integers(-9, 10, shape).astype(dtype)


@pytest.fixture
def in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sums go over the ends of many chunks, few places are sorted by the library, elements along an axis are, too."""
    monkeypatch.setattr(segments, "_BLOCK", 32)
    monkeypatch.setattr(segments, "_COLUMNS", 8)
    monkeypatch.setattr(segments, "_JOINED", 2)
    monkeypatch.setattr(segments, "_COMPARED", 20)
    monkeypatch.setattr(segments, "_SORTED", (4, 8))
    monkeypatch.setattr(scatter, "_FEW", 0)
    monkeypatch.setattr(scatter, "_LITTLE", 0)
    kernel_for.cache_clear()
    yield
    kernel_for.cache_clear()


@pytest.mark.parametrize(("shape", "axis"), native.ROWS)
def test_take(shape: Any, axis: int) -> None:
    native.test_take(shape, axis, "float32")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "uint32"])
def test_indices_of_any_dtype(dtype: str) -> None:
    native.test_indices_of_any_dtype(dtype)


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps"])
def test_take_from_any_layout(layout: str) -> None:
    native.test_take_from_any_layout(layout)


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**63)])
def test_an_index_out_of_bounds_stands_for_0(bad: int) -> None:
    native.test_an_index_out_of_bounds_stands_for_0(bad)


def test_nothing_is_read_along_an_empty_axis() -> None:
    native.test_nothing_is_read_along_an_empty_axis()
    native.test_nothing_to_add_is_zeros()


@pytest.mark.parametrize(("shape", "axis"), native.ROWS)
def test_take_transposed(shape: Any, axis: int) -> None:
    native.test_take_transposed(shape, axis, "float32")


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps"])
def test_add_from_any_layout(layout: str) -> None:
    native.test_add_from_any_layout(layout)


@pytest.mark.parametrize("inner", [(), (5,), (2, 40)])
def test_several_arrays_of_indices(inner: tuple[int, ...]) -> None:
    native.test_several_arrays_of_indices(inner)


ALONG: list[tuple[Any, int, Any]] = [
    ((6, 33), -1, (6, 1)), ((6, 33), 0, (2, 33)), ((3, 4, 5), 1, (3, 7, 5)), ((3, 4, 5), -1, (1, 4, 2)),
    ((1, 4, 5), 1, (3, 2, 1)), ((3, 4, 5), 1, (3, 0, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "index_shape"), ALONG)
def test_take_along_axis(shape: Any, axis: int, index_shape: Any) -> None:
    native.test_take_along_axis(shape, axis, index_shape, "float32")


@pytest.mark.usefixtures("in_small_chunks")
@pytest.mark.parametrize(("shape", "axis", "index_shape"), ALONG)
def test_elements_along_an_axis_may_be_sorted(shape: Any, axis: int, index_shape: Any) -> None:
    native.test_take_along_axis(shape, axis, index_shape, "int64")


@pytest.mark.usefixtures("in_small_chunks")
@pytest.mark.parametrize(("most", "count"), [(1, 30), (2, 19), (7, 30)])
def test_sums_go_over_the_ends_of_chunks(most: int, count: int) -> None:
    rng = np.random.default_rng(most)
    value, indices = native._numbers(rng, (2, count, 9), "int64"), rng.integers(-most, most, count)
    found = native._take_transposed(value, indices, 7, 1)
    np.testing.assert_array_equal(found, native.indexing.take_transposed(value, indices % 7, 7, 1))


@pytest.mark.parametrize("dtype", sorted(NATIVE))
def test_elements_of_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 9, (4, 7, 5)).astype(dtype_of(dtype))
    indices, along = rng.integers(-7, 7, 9), rng.integers(-7, 7, (4, 2, 5))
    rows, elements = np.zeros((4, 9, 5), x.dtype), np.zeros((4, 2, 5), x.dtype)
    index = (("int64", (1,)),)
    run(None, Gather(dtype, (4,), (7,), (9,), (5,), strides(x), index, strides(rows)), [x, indices, rows])
    np.testing.assert_array_equal(rows, x[:, indices])
    kernel = GatherAlong(dtype, (4, 5), 7, 2, (35, 1, 5), "int64", (10, 1, 5), (10, 1, 5))
    run(None, kernel, [x, along, elements])
    np.testing.assert_array_equal(elements, np.take_along_axis(x, along, 1))

    wide = np.float64 if x.dtype.kind not in "iub" else x.dtype
    expected = np.zeros((4, 7, 5), wide)
    np.add.at(expected, (slice(None), indices), rows.astype(wide))
    back = np.ones_like(x)
    run(None, Scatter(dtype, (4,), (7,), (9,), (5,), strides(rows), index, strides(back)), [rows, indices, back])
    np.testing.assert_array_equal(back, expected.astype(x.dtype))

    expected = np.zeros((4, 7, 5), wide)
    outer, inner = np.arange(4)[:, None, None], np.arange(5)
    np.add.at(expected, (outer, along, inner), elements.astype(wide))
    kernel_back = ScatterAlong(dtype, (4, 5), 7, 2, (10, 1, 5), "int64", (10, 1, 5), (35, 1, 5))
    run(None, kernel_back, [elements, along, back])
    np.testing.assert_array_equal(back, expected.astype(x.dtype))


@pytest.mark.usefixtures("in_small_chunks")
@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
def test_rows_are_added_to_an_array_that_is_there(dtype: str, is_same: bool) -> None:
    rng = np.random.default_rng(0)
    onto = rng.integers(0, 2, (6, 9)).astype(dtype)
    value, indices = rng.integers(0, 2, (40, 9)).astype(dtype), rng.integers(0, 5, 40) - 5  # the first row stays
    indices[10:30] = 3  # goes over the ends of several chunks
    expected = onto.astype(np.float64)
    np.add.at(expected, indices, value)
    out = onto.copy() if is_same else np.full_like(onto, 99)
    before = out if is_same else onto.copy()
    index = ((indices.dtype.name, strides(indices)),)
    kernel = Scatter(dtype, (), (6,), (40,), (9,), strides(value), index, strides(out), True)
    run(None, kernel, [before, value, indices, out])
    np.testing.assert_array_equal(out, expected.astype(dtype))
    np.testing.assert_array_equal(before, out if is_same else onto)


def test_sums_of_half_precision_are_rounded_once() -> None:
    value, indices = np.full((600, 2), 1, np.float16), np.zeros(600, np.int64)
    value[0] = 4096  # with 1 added to it, it would stay the same
    np.testing.assert_array_equal(_added(value, indices), [[4696, 4696], [0, 0]])


def test_a_sum_of_negative_zeros_is_zero() -> None:
    assert not np.signbit(_added(np.full((3, 2), -0.0, np.float32), np.zeros(3, np.int64))).any()


def _added(value: Any, indices: Any) -> Any:
    out = np.full((2, value.shape[1]), 99, value.dtype)
    index = ((indices.dtype.name, strides(indices)),)
    kernel = Scatter(value.dtype.name, (), (2,), indices.shape, value.shape[1:], strides(value), index, strides(out))
    run(None, kernel, [value, indices, out])
    return out
