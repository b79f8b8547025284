"""Making tensors: values, dtypes and gradients of what goes in."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


def test_python_numbers_get_the_default_dtypes() -> None:
    assert pb.asarray(1.5).dtype == pb.float32
    assert pb.asarray([1, 2]).dtype == pb.int64
    assert pb.asarray([True]).dtype == pb.bool
    assert pb.asarray(1j).dtype == pb.complex64
    assert pb.asarray(np.float64(1.5)).dtype == pb.float64
    assert pb.asarray([np.float64(1.5)]).dtype == pb.float64


def test_set_default_dtype_rules_python_floats_and_complex_numbers() -> None:
    pb.set_default_dtype(pb.float64)
    try:
        assert pb.asarray([1.5]).dtype == pb.float64
        assert pb.asarray([1.5j]).dtype == pb.complex128
        assert pb.zeros(2).dtype == pb.float64
    finally:
        pb.set_default_dtype(pb.float32)
    with pytest.raises(pb.DtypeError, match="floating"):
        pb.set_default_dtype(pb.int32)


def test_tensors_in_nested_lists_keep_their_gradients() -> None:
    w = pb.tensor([2.0, 3.0], requires_grad=True)
    matrix = pb.asarray([w, [1.0, 2.0], w * w])
    assert matrix.shape == (3, 2)
    grads = pb.backward(matrix, pb.asarray([[1.0, 1.0], [5.0, 5.0], [1.0, 2.0]]))
    np.testing.assert_allclose(grads[w].numpy(), [1 + 4, 1 + 12])


def test_a_list_with_tensors_takes_their_dtype() -> None:
    assert pb.asarray([pb.tensor(1.0, dtype=pb.float64), 2.0]).dtype == pb.float64
    assert pb.asarray([pb.tensor(1, dtype=pb.int8), 2]).dtype == pb.int8


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(pb.ShapeError, match=r"\(2,\), \(\)"):
        pb.asarray([pb.tensor([1.0, 2.0]), pb.tensor(1.0)])
    with pytest.raises(ValueError, match="inhomogeneous"):
        pb.asarray([[1.0, 2.0], [3.0]])


def test_copy_false_is_honoured() -> None:
    array = np.ones(3)
    assert np.shares_memory(pb.asarray(array, copy=False).numpy(), array)
    assert not np.shares_memory(pb.asarray(array, copy=True).numpy(), array)
    for data in (1.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match="copy"):
            pb.asarray(data, copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        pb.asarray(pb.ones(3), dtype=pb.float64, copy=False)


@pytest.mark.parametrize("arguments", [(5,), (2, 7), (7, 2, -2), (0, 1, 0.25), (3, 3), (2, 1), (1, 2, -1)])
def test_arange_agrees_with_numpy(arguments: tuple[float, ...]) -> None:
    expected = np.arange(*arguments)
    found = pb.arange(*arguments)
    assert found.dtype == (pb.float32 if any(isinstance(n, float) for n in arguments) else pb.int64)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_arange_refuses_a_step_of_zero() -> None:
    with pytest.raises(pb.ShapeError, match="zero"):
        pb.arange(0, 5, 0)


def test_linspace_eye_full_and_triangles_agree_with_numpy() -> None:
    np.testing.assert_allclose(pb.linspace(0, 1, 7).numpy(), np.linspace(0, 1, 7, dtype=np.float32))
    np.testing.assert_allclose(pb.linspace(0, 1, 4, endpoint=False).numpy(), np.linspace(0, 1, 4, endpoint=False))
    assert pb.linspace(0, 1j, 3).dtype == pb.complex64
    np.testing.assert_array_equal(pb.eye(3, 4, k=1).numpy(), np.eye(3, 4, k=1))
    np.testing.assert_array_equal(pb.full((2, 3), 7).numpy(), np.full((2, 3), 7))
    matrix = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(pb.tril(pb.asarray(matrix), k=-1).numpy(), np.tril(matrix, -1))
    np.testing.assert_array_equal(pb.triu(pb.asarray(matrix), k=1).numpy(), np.triu(matrix, 1))
    with pytest.raises(pb.ShapeError, match="matrix"):
        pb.tril(pb.ones(3))


def test_like_functions_follow_shape_and_dtype() -> None:
    x = pb.ones((2, 3), dtype=pb.int16)
    for function in (pb.zeros_like, pb.ones_like, pb.empty_like):
        assert function(x).shape == (2, 3)
        assert function(x).dtype == pb.int16
        assert function(x, dtype=pb.float64).dtype == pb.float64
    assert not pb.zeros_like(pb.ones(3).set_requires_grad(True)).requires_grad


def test_full_and_linspace_take_tensors_with_gradients() -> None:
    w = pb.tensor(2.0, requires_grad=True)
    np.testing.assert_allclose(pb.backward(pb.full((2, 3), w).sum())[w].numpy(), 6)
    np.testing.assert_allclose(pb.backward(pb.linspace(w, 4.0, 3).sum())[w].numpy(), 1.5)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_meshgrid_agrees_with_numpy(indexing: str, count: int) -> None:
    arrays = [np.arange(n + 1.0) for n in range(1, count + 1)]
    found = pb.meshgrid(*map(pb.asarray, arrays), indexing=indexing)
    assert isinstance(found, tuple)
    for a, b in zip(found, np.meshgrid(*arrays, indexing=indexing)):
        np.testing.assert_array_equal(a.numpy(), b)


def test_bad_shapes_are_refused() -> None:
    for shape in ((-1,), 2.5, ("a",)):
        with pytest.raises(pb.ShapeError):
            pb.zeros(shape)
    with pytest.raises(pb.DtypeError, match="unknown dtype"):
        pb.zeros(3, dtype="float12")
    with pytest.raises(pb.DeviceError, match="unknown device"):
        pb.zeros(3, device="nowhere")


def test_a_mask_is_not_lost_silently():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for take in (pb.tensor, pb.asarray, pb.sum, pb.grad(lambda x: pb.sum(x))):
        with pytest.raises(pb.DtypeError, match="lose its mask"):
            take(masked)
