"""Reading, adding and writing at indices, against NumPy's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends.numpy import indexing
from pullback.targets.custom_kernels import Gather, GatherAlong, Overwrite, Scatter, ScatterAlong
from pullback.targets.llvm.kernels import gather as gathering

from .native import broadcast_strides, laid_out, run, strides

ROWS = [
    ((7, 33), 0),
    ((7, 64), 0),
    ((3, 7, 5), 1),
    ((3, 7), 1),
    ((7,), 0),
    ((2, 7, 3, 70), 1),
    ((7, 1), 0),
    ((7, 300), 0),
]
DTYPES = ["float32", "float64", "int32", "int64"]


def _numbers(rng: Any, shape: Any, dtype: str) -> Any:
    return (rng.standard_normal(shape) * 10).astype(dtype)


def _take(x: Any, indices: Any, axis: int, parts: int = 1) -> Any:
    out = np.full(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], 99, x.dtype)
    kernel = Gather(
        x.dtype.name, x.shape[:axis], (x.shape[axis],), indices.shape, x.shape[axis + 1 :], strides(x),
        ((indices.dtype.name, strides(indices)),), strides(out),
    )  # fmt: skip
    assert gathering.supports(kernel)
    run(gathering.emit, kernel, [x, indices, out], parts)
    return out


def _take_transposed(value: Any, indices: Any, size: int, axis: int, parts: int = 1) -> Any:
    n = indices.ndim
    out = np.full(value.shape[:axis] + (size,) + value.shape[axis + n :], 99, value.dtype)
    kernel = Scatter(
        value.dtype.name, value.shape[:axis], (size,), indices.shape, value.shape[axis + n :], strides(value),
        ((indices.dtype.name, strides(indices)),), strides(out),
    )  # fmt: skip
    assert gathering.supports(kernel)
    run(gathering.emit, kernel, [value, indices, out], parts)
    return out


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_take(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = _numbers(rng, shape, dtype)
    for indices in (rng.integers(-7, 7, (4, 3)), rng.integers(0, 7, (5,), np.int32), np.array(-1), np.zeros(0, int)):
        out = _take(x, indices, axis, 2)
        np.testing.assert_array_equal(out, indexing.take(x, indices, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "uint32"])
def test_indices_of_any_dtype(dtype: str) -> None:
    x = np.arange(200 * 3.0).reshape(200, 3)
    indices = np.array([0, 100, 127 if dtype == "int8" else 199], dtype)
    np.testing.assert_array_equal(_take(x, indices, 0), x[indices.astype(int)])


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps"])
def test_take_from_any_layout(layout: str) -> None:
    rng = np.random.default_rng(2)
    x = laid_out(_numbers(rng, (4, 7, 3, 20), "float32"), layout)
    indices = rng.integers(-7, 7, (5, 4)).T
    np.testing.assert_array_equal(_take(x, indices, 1), np.take(x, indices, 1))


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**63)])
def test_an_index_out_of_bounds_stands_for_0(bad: int) -> None:
    x = _numbers(np.random.default_rng(9), (7, 20), "float32")
    indices, instead = np.array([1, 2, bad, 3]), np.array([1, 2, 0, 3])
    np.testing.assert_array_equal(_take(x, indices, 0), x[instead])
    np.testing.assert_array_equal(
        _take_transposed(x[:4], indices, 7, 0), indexing.take_transposed(x[:4], instead, 7, 0)
    )
    np.testing.assert_array_equal(
        _along(x[:4, :7], indices[:, None], 1), indexing.take_along_axis(x[:4, :7], instead[:, None], 1)
    )
    np.testing.assert_array_equal(
        _along_transposed(x[:4, :1], indices[:, None], 7, 1),
        indexing.take_along_axis_transposed(x[:4, :1], instead[:, None], 7, 1),
    )


def test_nothing_is_read_along_an_empty_axis() -> None:
    np.testing.assert_array_equal(_take(np.ones((0, 5)), np.array([0]), 0), np.full((1, 5), 99.0))
    assert _take_transposed(np.ones((1, 5)), np.array([0]), 0, 0).shape == (0, 5)
    np.testing.assert_array_equal(_along(np.ones((1, 0)), np.array([[0]]), 1), [[99.0]])
    assert _along_transposed(np.ones((1, 1)), np.array([[0]]), 0, 1).shape == (1, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_take_transposed(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(3)
    value = _numbers(rng, shape[:axis] + (12,) + shape[axis + 1 :], dtype)
    indices = rng.integers(-7, 7, 12)
    expected = indexing.take_transposed(value, indices, 7, axis)
    for parts in (1, 3):
        out = _take_transposed(value, indices, 7, axis, parts)
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(_take_transposed(value, indices, 9, axis).shape[axis], 9)


@pytest.mark.parametrize("parts", [1, 3])
def test_add_to_few_rows_of_many(parts: int) -> None:
    rng = np.random.default_rng(8)
    value, indices = _numbers(rng, (2, 50, 290), "float32"), rng.integers(-1001, 1001, 50)
    indices[:4] = 1000, -1001, 63, 1000
    out = _take_transposed(value, indices, 1001, 1, parts)
    np.testing.assert_array_equal(out, indexing.take_transposed(value, indices, 1001, 1))


def test_nothing_to_add_is_zeros() -> None:
    out = _take_transposed(np.ones((0, 5), np.float32), np.zeros(0, int), 3, 0)
    np.testing.assert_array_equal(out, np.zeros((3, 5)))


@pytest.mark.parametrize("layout", ["transposed", "reversed", "gaps"])
def test_add_from_any_layout(layout: str) -> None:
    rng = np.random.default_rng(4)
    value = laid_out(_numbers(rng, (4, 12, 20), "float32"), layout)
    indices = rng.integers(-7, 7, 12)
    expected = indexing.take_transposed(value, indices, 7, 1)
    np.testing.assert_array_equal(_take_transposed(value, indices, 7, 1), expected)


@pytest.mark.parametrize("inner", [(), (5,), (2, 40)])
def test_several_arrays_of_indices(inner: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    x = _numbers(rng, (3, 4, *inner), "float32")
    i, j = rng.integers(-3, 3, (6, 1)), rng.integers(-4, 4, 5, np.int32)
    places = (6, 5)
    indices = tuple((array.dtype.name, broadcast_strides(array, places)) for array in (i, j))
    out = np.full((*places, *inner), 99, x.dtype)
    kernel = Gather("float32", (), (3, 4), places, inner, strides(x), indices, strides(out))
    run(gathering.emit, kernel, [x, i, j, out])
    np.testing.assert_array_equal(out, x[i, j])
    back = np.full_like(x, 99)
    scatter = Scatter("float32", (), (3, 4), places, inner, strides(out), indices, strides(back))
    run(gathering.emit, scatter, [out, i, j, back])
    np.testing.assert_allclose(back, indexing.place(out, x.shape, (i, j)), rtol=1e-6)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64"])
@pytest.mark.parametrize(("outer", "inner"), [((), ()), ((), (5,)), ((2,), (2, 40)), ((2, 3), (70,))])
def test_overwrite(outer: tuple[int, ...], inner: tuple[int, ...], dtype: str, in_place: bool) -> None:
    rng = np.random.default_rng(6)
    x = _numbers(rng, (*outer, 3, 4, *inner), dtype)
    i, j = rng.integers(-3, 3, (6, 1)), rng.integers(-4, 4, 5, np.int32)  # some places are named more than once
    places = (6, 5)
    value = laid_out(_numbers(rng, (*outer, *places, *inner), dtype), "gaps" if inner else "reversed")
    expected = x.copy()
    expected[(slice(None),) * len(outer) + (i, j)] = value
    indices = tuple((array.dtype.name, broadcast_strides(array, places)) for array in (i, j))
    kernel = Overwrite(dtype, outer, (3, 4), places, inner, strides(value), indices)
    assert gathering.supports(kernel)
    out = x if in_place else np.zeros_like(x)
    run(gathering.emit, kernel, [x, value, i, j, out], 3)
    np.testing.assert_array_equal(out, expected)


# -- along an axis ---------------------------------------------------------------------------------


def _moved(strides_of: tuple[int, ...], axis: int) -> tuple[int, ...]:
    rest = list(strides_of)
    last = rest.pop(axis)
    return (*rest, last)


def _along(x: Any, indices: Any, axis: int, parts: int = 1) -> Any:
    axis %= x.ndim
    shape = list(
        np.broadcast_shapes(*(tuple(1 if i == axis else n for i, n in enumerate(a.shape)) for a in (x, indices)))
    )
    rows = tuple(n for i, n in enumerate(shape) if i != axis)
    read = [broadcast_strides(a, (*shape[:axis], a.shape[axis], *shape[axis + 1 :])) for a in (x, indices)]
    shape[axis] = indices.shape[axis]
    out = np.full(shape, 99, x.dtype)
    kernel = GatherAlong(
        x.dtype.name, rows, x.shape[axis], indices.shape[axis], _moved(read[0], axis), indices.dtype.name,
        _moved(read[1], axis), _moved(strides(out), axis),
    )  # fmt: skip
    assert gathering.supports(kernel)
    run(gathering.emit, kernel, [x, indices, out], parts)
    return out


def _along_transposed(value: Any, indices: Any, size: int, axis: int, parts: int = 1) -> Any:
    axis %= value.ndim
    shape = list(np.broadcast_shapes(value.shape, indices.shape))
    rows = tuple(n for i, n in enumerate(shape) if i != axis)
    read = [_moved(broadcast_strides(a, tuple(shape)), axis) for a in (value, indices)]
    count, shape[axis] = shape[axis], size
    out = np.full(shape, 99, value.dtype)
    kernel = ScatterAlong(
        value.dtype.name, rows, size, count, read[0], indices.dtype.name, read[1], _moved(strides(out), axis)
    )
    assert gathering.supports(kernel)
    run(gathering.emit, kernel, [value, indices, out], parts)
    return out


@pytest.mark.parametrize(("shape", "axis", "index_shape"), [
    ((6, 33), -1, (6, 1)), ((6, 33), -1, (6, 5)), ((6, 33), 0, (2, 33)), ((3, 4, 5), 1, (3, 7, 5)), ((9,), 0, (4,)),
    ((3, 4, 5), -1, (1, 4, 2)), ((1, 4, 5), 1, (3, 2, 1)), ((3, 4, 5), 1, (3, 0, 5)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES)
def test_take_along_axis(shape: Any, axis: int, index_shape: Any, dtype: str) -> None:
    rng = np.random.default_rng(6)
    size = shape[axis]
    x, indices = _numbers(rng, shape, dtype), rng.integers(-size, size, index_shape)
    out = _along(x, indices, axis, 2)
    expected = indexing.take_along_axis(x, indices, axis)
    np.testing.assert_array_equal(out, expected)
    value = _numbers(rng, expected.shape, dtype)
    for given in (value, value[:1]):
        back = indexing.take_along_axis_transposed(given, indices, size, axis)
        got = _along_transposed(given, indices, size, axis, 2)
        np.testing.assert_array_equal(got, back)
