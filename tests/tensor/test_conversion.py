"""Tensors to NumPy, Python numbers and sequences, and copies of them."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import pullback as pb

VALUES = {
    "float64": np.asarray([[1.5, -2.0], [3.0, 0.25]]),
    "float16": np.asarray([1.5, -2.0], np.float16),
    "complex128": np.asarray([1 + 2j, -3j]),
    "int32": np.asarray([[1], [2]], np.int32),
    "uint8": np.asarray([1, 255], np.uint8),
    "bool": np.asarray([True, False]),
    "without axes": np.asarray(2.5),
    "empty": np.zeros((0, 3)),
    "reversed": np.arange(6.0)[::-2],
    "transposed": np.arange(6.0).reshape(2, 3).T,
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_numpy_and_tolist_give_the_values_back(values):
    tensor = pb.asarray(values)
    assert tensor.numpy().dtype == values.dtype
    np.testing.assert_array_equal(tensor.numpy(), values)
    assert tensor.tolist() == values.tolist()


def test_numpy_shares_memory_read_only():
    tensor = pb.tensor([1.0, 2.0])
    exported = tensor.numpy()
    assert np.shares_memory(exported, tensor.data)
    with pytest.raises(ValueError, match="read-only"):
        exported[0] = 5.0


def test_a_write_does_not_show_in_an_earlier_export():
    tensor = pb.tensor([1.0, 2.0])
    exported, raw = tensor.numpy(), tensor.data
    tensor += 1
    np.testing.assert_array_equal(exported, [1.0, 2.0])
    np.testing.assert_array_equal(raw, [1.0, 2.0])
    np.testing.assert_array_equal(tensor.numpy(), [2.0, 3.0])


def test_data_is_a_read_only_view_also_of_a_variable():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    assert isinstance(w.data, np.ndarray)
    assert not w.data.flags.writeable
    assert np.shares_memory(w.data, w.data)


@pytest.mark.parametrize("shape", [(2,), (1,), ()])
def test_numpy_refuses_to_lose_a_gradient(shape):
    w = pb.asarray(np.ones(shape)).set_requires_grad(True)
    with pytest.raises(pb.GradientError, match=r"t\.detach\(\)"):
        w.numpy()
    with pytest.raises(pb.GradientError, match=r"t\.detach\(\)"):
        (w * 2).numpy()
    np.testing.assert_array_equal(w.detach().numpy(), np.ones(shape))


@pytest.mark.parametrize("value", [2.5, 3, True, 1 + 2j])
def test_item_gives_python_numbers(value):
    for tensor in (pb.asarray(np.asarray(value)), pb.asarray(np.asarray([[value]]))):
        assert tensor.item() == value
        assert type(tensor.item()) is type(value)


def test_item_works_on_tracked_tensors_and_on_bfloat16():
    w = pb.tensor(2.5, requires_grad=True)
    assert (w * 2).item() == 5.0
    pytest.importorskip("ml_dtypes")
    assert type(pb.tensor(1.5, dtype="bfloat16").item()) is float
    assert pb.tensor([1.5], dtype="bfloat16").tolist() == [1.5]


def test_item_needs_one_element():
    with pytest.raises(pb.ShapeError, match=r"shape \(2,\) has 2 elements"):
        pb.tensor([1.0, 2.0]).item()


def test_no_array_interface():
    tensor = pb.tensor([1.0])
    assert not hasattr(tensor, "__array_interface__")
    assert not hasattr(tensor, "__array_struct__")
    with pytest.raises(TypeError):
        memoryview(tensor)


def test_length_and_iteration():
    tensor = pb.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert len(tensor) == 3
    assert [row.tolist() for row in tensor] == tensor.tolist()
    for function in (len, iter):
        with pytest.raises(TypeError):
            function(pb.tensor(1.0))


def test_iteration_is_differentiable():
    w = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = w
    grads = pb.backward(pb.sum(first * second * second))
    np.testing.assert_array_equal(grads[w].numpy(), [[9.0, 16.0], [6.0, 16.0]])


def test_copy_is_the_same_variable():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    pb.sum(copy.copy(w) * 3).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [3.0, 3.0])


def test_deepcopy_is_a_variable_of_its_own():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    pb.sum(w * w).backward()
    other = copy.deepcopy(w)
    assert other.requires_grad
    assert other.is_leaf
    np.testing.assert_array_equal(other.grad.numpy(), [2.0, 4.0])
    pb.sum(other * 3).backward()
    np.testing.assert_array_equal(w.grad.numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(other.grad.numpy(), [5.0, 7.0])
    with pb.no_grad():
        other += 1
    np.testing.assert_array_equal(w.detach().numpy(), [1.0, 2.0])


def test_deepcopy_keeps_what_is_shared_shared():
    w = pb.tensor([1.0], requires_grad=True)
    first, second = copy.deepcopy([w, w])
    assert first is second
    assert first is not w


def test_deepcopy_of_an_intermediate_is_refused():
    w = pb.tensor([1.0], requires_grad=True)
    with pytest.raises(pb.GradientError, match="result of `multiply`"):
        copy.deepcopy(w * 2)


def test_under_no_grad_nothing_is_lost_so_values_may_leave():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    with pb.no_grad():
        assert np.asarray(w).tolist() == w.numpy().tolist() == pb.tensor(w).tolist() == [1.0, 2.0]
        out = np.zeros(2)
        out[:] = w
        assert out.tolist() == [1.0, 2.0] and not pb.tensor(w).requires_grad
    for export in (np.asarray, pb.Tensor.numpy, pb.tensor):
        with pytest.raises(pb.GradientError, match="would be lost"):
            export(w)
    fresh = pb.tensor(w, requires_grad=True)
    assert fresh.is_leaf and fresh.requires_grad


@pytest.mark.parametrize("take", [lambda t: t.tolist(), lambda t: t.data], ids=["tolist", "data"])
def test_values_of_a_result_that_needs_a_gradient_are_not_taken_on_the_quiet(take):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    assert list(take(w)) == [1.0, 2.0]  # a variable's own
    with pytest.raises(pb.GradientError, match="detach"):
        take(w * 2)
    assert list(take((w * 2).detach())) == [2.0, 4.0]
    with pb.no_grad():
        assert list(take(w * 2)) == [2.0, 4.0]
    with pytest.raises(pb.GradientError, match="detach"):
        pb.grad(lambda x: float(np.sum(take(x))))(np.ones(2))
    with pytest.raises(pb.GradientError, match="detach"):
        pb.jvp(lambda x: take(x), (np.ones(2),), (np.ones(2),))


MASKED = {
    "getdata": lambda t: np.ma.getdata(t),
    "add": lambda t: np.ma.add(t, 1),
    "exp": lambda t: np.ma.exp(t),
    "where": lambda t: np.ma.where(np.array([True, False]), t, 0.0),
    "concatenate": lambda t: np.ma.concatenate([t, t]),
    "array": lambda t: np.ma.array(t),
    "times": lambda t: np.ma.array([1.0, 2.0], mask=[True, False]) * t,
    "timed": lambda t: t * np.ma.array([1.0, 2.0], mask=[True, False]),
    "max": lambda t: np.ma.max(t),
}


@pytest.mark.parametrize("function", MASKED)
def test_masked_arrays_do_not_lose_a_gradient(function):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    for tensor in (w, w * 2):
        with pytest.raises((pb.GradientError, pb.DtypeError)):
            MASKED[function](tensor)
