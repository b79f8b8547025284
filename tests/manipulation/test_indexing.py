"""Reading parts: values as NumPy has them, gradients that add up, errors for what is no index."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pytest

import pullback as pb

ARRAY = np.arange(24.0).reshape(2, 3, 4)
MASK = ARRAY % 3 == 0

INDICES = [
    0,
    -1,
    slice(None),
    slice(None, None, -1),
    (0, 1),
    (0, 1, 2),
    (..., 0),
    (None, 0, ..., None),
    (slice(1), slice(None, None, 2)),
    (),
    ...,
    None,
    True,
    False,
    MASK,
    MASK[:, :, 0],
    np.array([True, False]),
    [0, 1, 1],
    np.array([[0, -1], [1, 1]]),
    (np.array([0, 1]), np.array([2, 0])),
    (slice(None), np.array([0, 2])),
    (0, np.array([0, 2])),
    (np.array([0, 1]), slice(None), 0),
    (np.array([0]), slice(None), np.array([[1], [2]])),
    np.array([], dtype=np.int64),
    np.array(1),
    np.int32(1),
    np.array([1], np.uint8),
    (slice(None), MASK[0, :, 0]),
    (slice(np.int64(0), np.int64(2)),),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("as_tensors", [False, True])
def test_values_and_gradients(index: Any, as_tensors: bool) -> None:
    def convert(part: Any) -> Any:
        return pb.asarray(part) if as_tensors and isinstance(part, np.ndarray) else part

    ours = tuple(map(convert, index)) if isinstance(index, tuple) else convert(index)
    x = pb.tensor(ARRAY, requires_grad=True)
    found = x[ours]
    expected = ARRAY[index]
    assert found.shape == expected.shape
    assert np.array_equal(np.asarray(found.detach()), expected)
    g = np.random.default_rng(0).normal(size=expected.shape)
    wanted = np.zeros_like(ARRAY)
    np.add.at(wanted, index, g)
    np.testing.assert_allclose(np.asarray(pb.backward(found, g)[x].detach()), wanted)


@pytest.mark.parametrize("index", [1.5, "a", np.array([0.5]), pb.tensor([1.0]), [0.5], (0, 1.0), slice(0.5), 1j])
def test_what_is_no_index_is_refused(index: Any) -> None:
    with pytest.raises(IndexError, match="an index must be made of integers") as caught:
        pb.asarray(ARRAY)[index]
    assert isinstance(caught.value, pb.PullbackError)


@pytest.mark.parametrize("index", [5, (0, 0, 0, 0), (..., ...), np.array([7]), np.ones((3, 3), bool)])
def test_outside_is_refused(index: Any) -> None:
    with pytest.raises(IndexError) as caught:
        pb.asarray(ARRAY)[index]
    assert isinstance(caught.value, pb.PullbackError)


def test_a_sequence_of_its_slices() -> None:
    assert [row.tolist() for row in pb.asarray(np.arange(6).reshape(3, 2))] == [[0, 1], [2, 3], [4, 5]]


def test_masked_parts_give_no_nan() -> None:
    x = pb.tensor([0.0, 4.0], requires_grad=True)
    pb.sqrt(x)[1].backward()
    assert x.grad.tolist() == [0.0, 0.25]
    y = pb.tensor([0.0, 4.0], requires_grad=True)
    pb.sum(pb.take(pb.sqrt(y), pb.asarray([1, 1]))).backward()
    assert y.grad.tolist() == [0.0, 0.5]


def test_a_value_that_is_overwritten_has_no_gradient() -> None:
    x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    value = pb.tensor([5.0, 6.0, 7.0], requires_grad=True)
    y = x * 1
    y[np.array([0, 2, 0])] = value
    assert y.detach().tolist() == [7.0, 2.0, 6.0]
    pb.sum(y * pb.asarray([1.0, 10.0, 100.0])).backward()
    assert x.grad.tolist() == [0.0, 10.0, 0.0]
    assert value.grad.tolist() == [0.0, 100.0, 1.0]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_take(axis: int, dtype: Any) -> None:
    indices = np.array([1, 0, 1], dtype)
    assert np.array_equal(
        np.asarray(pb.take(pb.asarray(ARRAY), pb.asarray(indices), axis=axis)), np.take(ARRAY, indices, axis)
    )
    grid = np.array([[1, 0], [0, 0]], dtype)
    assert np.array_equal(
        np.asarray(pb.take(pb.asarray(ARRAY), pb.asarray(grid), axis=axis)), np.take(ARRAY, grid, axis)
    )


def test_along_an_axis_as_numpy() -> None:
    order = np.argsort(np.cos(ARRAY), axis=1)
    found = pb.take_along_axis(pb.asarray(ARRAY), pb.asarray(order), axis=1)
    assert np.array_equal(np.asarray(found), np.take_along_axis(ARRAY, order, 1))
    expected = ARRAY.copy()
    np.put_along_axis(expected, order[:, :1], -1.0, 1)
    assert np.array_equal(
        np.asarray(pb.put_along_axis(pb.asarray(ARRAY), pb.asarray(order[:, :1]), -1.0, axis=1)), expected
    )


def test_adding_at_repeated_positions() -> None:
    index = np.array([0, 1, 0, -1])
    value = np.random.default_rng(1).normal(size=(4, 3, 4))
    expected = ARRAY.copy()
    np.add.at(expected, index, value)
    np.testing.assert_allclose(np.asarray(pb.index_add(pb.asarray(ARRAY), pb.asarray(index), value)), expected)
    where = np.array([[0, 0, 3]])
    found = pb.scatter_add(pb.asarray(ARRAY[0, :1]), pb.asarray(where), pb.asarray([[1.0, 2.0, 4.0]], dtype=pb.float64))
    assert found.tolist() == [[3.0, 1.0, 2.0, 7.0]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, i: pb.take(x, i), ValueError),
        (lambda x, i: pb.take(x, pb.asarray([0.5]), axis=0), TypeError),
        (lambda x, i: pb.take(x, i + 10, axis=0), IndexError),
        (lambda x, i: pb.take_along_axis(x, i), ValueError),
        (lambda x, i: pb.scatter_add(x, i, x), ValueError),
        (lambda x, i: pb.put_along_axis(x, i, 0.0), ValueError),
        (lambda x, i: pb.index_add(x, 0.5, 0.0), IndexError),
    ],
)
def test_errors(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        call(pb.asarray(ARRAY), pb.asarray([0, 1]))
    assert isinstance(caught.value, pb.PullbackError)


@pytest.mark.parametrize(("count", "width"), [(50_000, 1), (50_000, 32), (5_000, 256)])
def test_many_repeated_rows_are_added_fast(count: int, width: int) -> None:
    """The gradient of reading so many rows takes far less than a second, by indexing and by `take`."""
    rows = np.random.default_rng(2).integers(-1000, 1000, count)
    expected = np.bincount(rows % 1000, minlength=1000)
    for read in (lambda x: x[rows], lambda x: pb.take(x, pb.asarray(rows), axis=0)):
        x = pb.tensor(np.zeros((1000, width), np.float32), requires_grad=True)
        start = perf_counter()
        pb.sum(read(x)).backward()
        assert perf_counter() - start < 1.0
        assert np.array_equal(np.asarray(x.grad), np.broadcast_to(expected[:, None], (1000, width)))


def test_an_index_array_may_be_filled_again():
    w = pb.tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    index, mask = np.array([0, 0]), np.array([True, False, False])
    y = w[index].sum() + 10 * w[mask].sum()
    z = w * 1.0
    z[index] = 0.0
    index[:] = 2
    mask[:] = True
    (y + z.sum()).backward()
    assert np.array_equal(w.grad.numpy(), [12, 1, 1])
