"""Python's operators on tensors and on what is not one."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import pullback as pb

VALUES = np.array([0.5, 1.0, 2.0])
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("values", [[0.1, 1.0, 3.0], (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operators_take_lists_as_numpy_does(symbol, values, dtype):
    array = VALUES.astype(dtype)
    tensor = pb.tensor(array)
    for result, expected in (
        (symbol(tensor, values), symbol(array, values)),
        (symbol(values, tensor), symbol(values, array)),
    ):
        assert isinstance(result, pb.Tensor) and result.dtype.name == expected.dtype.name
        assert np.array_equal(result.numpy(), expected)


def test_an_integer_times_a_list_does_not_repeat_the_list():
    assert (pb.tensor(3) * [1, 2]).tolist() == [3, 6] == ([1, 2] * pb.tensor(3)).tolist()


def test_gradients_with_lists_and_with_lists_of_tensors():
    assert np.allclose(pb.grad(lambda x: np.sum((x - [0.1, 0.2]) ** 2))(np.array([1.0, 2.0])), [1.8, 3.6])
    assert np.allclose(pb.grad(lambda x: np.sum(x * [x[1], 3.0]))(np.array([1.0, 2.0])), [2.0, 4.0])


def test_a_list_is_added_in_place():
    w = before = pb.tensor(VALUES, requires_grad=True)
    with pb.no_grad():
        w += [1, 2, 3]
        w *= (2.0, 2.0, 2.0)
    assert w is before and w.requires_grad and w.tolist() == [3.0, 6.0, 10.0]


def test_lists_that_are_no_numbers_are_refused():
    t = pb.tensor(VALUES)
    assert (t == ["a", "b", "c"]) is False
    for wrong in (["a", "b", "c"], "abc", {}, object()):
        with pytest.raises(TypeError):
            t + wrong
    with pytest.raises(pb.ShapeError, match="broadcast"):
        t + [1, 2]
    with pytest.raises(pb.DtypeError, match=r"pb\.asarray"):
        pb.maximum(t, [1, 2, 3])
