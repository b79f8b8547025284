"""Wrong input gets a typed error that shows what was given and what to write, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb


@pytest.fixture
def x() -> pb.Tensor:
    return pb.tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)


def test_non_scalar_without_a_gradient(x) -> None:
    y = x * x
    with pytest.raises(pb.ShapeError, match=r"\(3,\).*gradient="):
        y.backward()
    with pytest.raises(pb.ShapeError, match=r"\(3,\).*gradient="):
        pb.backward(y)
    assert x.grad is None
    pb.backward(y, np.ones(3))  # the graph is whole


def test_gradient_of_the_wrong_shape(x) -> None:
    y = x * x
    for wrong in (np.ones(2), np.ones((3, 1)), np.ones((1, 3))):
        with pytest.raises(pb.ShapeError) as caught:
            pb.backward(y, wrong)
        assert str(wrong.shape) in str(caught.value)
        assert "(3,)" in str(caught.value)
    pb.backward(y, np.ones(3))


def test_gradient_of_the_wrong_dtype(x) -> None:
    y = x * x
    with pytest.raises(pb.DtypeError, match=r"float32.*float64"):
        pb.backward(y, np.ones(3, np.float32))
    with pytest.raises(pb.DtypeError, match=r"int64.*float64"):
        pb.backward(y, np.ones(3, np.int64))
    pb.backward(y, np.ones(3))


def test_numbers_and_lists_as_gradient_take_the_tensors_dtype(x) -> None:
    assert pb.backward(x * x, [1.0, 2.0, 3.0])[x]._raw.tolist() == [2.0, 8.0, 18.0]
    assert pb.backward(pb.sum(x * x), 2.0)[x].dtype == pb.float64
    with pytest.raises(pb.ShapeError, match=r"\(2,\).*\(3,\)"):
        pb.backward(x * x, [1.0, 2.0])


def test_no_tensors(x) -> None:
    y = pb.sum(x * x)
    with pytest.raises(pb.DtypeError, match="list"):
        pb.backward([y])
    with pytest.raises(pb.DtypeError, match="float64"):
        pb.backward(y, wrt=np.ones(3))
    with pytest.raises(pb.DtypeError, match="str"):
        pb.backward(y, wrt="x")
    pb.backward(y)  # the graph is whole


def test_result_that_depends_on_nothing() -> None:
    with pytest.raises(pb.GradientError, match="requires_grad=True"):
        pb.backward(pb.tensor(1.0))
    with pytest.raises(pb.GradientError, match="requires_grad=True"):
        pb.tensor(1.0).backward()


def test_result_made_under_no_grad(x) -> None:
    with pb.no_grad():
        y = pb.sum(x)
    with pytest.raises(pb.GradientError, match="no_grad"):
        pb.backward(y)


def test_gradient_of_an_untracked_tensor(x) -> None:
    y = pb.sum(x * x)
    with pytest.raises(KeyError, match="does not require a gradient"):
        pb.backward(y, wrt=pb.tensor([1.0]))
    with pytest.raises(KeyError, match="does not require a gradient"):
        pb.backward(y)[pb.tensor([1.0])]


def test_integers_cannot_require_a_gradient() -> None:
    with pytest.raises(pb.DtypeError, match="int64"):
        pb.tensor([1, 2], requires_grad=True)
    t = pb.tensor([True, False])
    with pytest.raises(pb.DtypeError, match="bool"):
        t.requires_grad = True
    assert not t.requires_grad


def test_tracking_of_a_result_cannot_be_turned_off(x) -> None:
    y = x * x
    with pytest.raises(pb.GradientError, match=r"multiply.*detach"):
        y.requires_grad = False
    assert y.requires_grad


def test_shapes_that_do_not_broadcast(x) -> None:
    with pytest.raises(pb.ShapeError) as caught:
        x * pb.tensor(np.ones(4))
    assert "(3,)" in str(caught.value)
    assert "(4,)" in str(caught.value)
    assert "multiply" in str(caught.value)
    with pytest.raises(pb.ShapeError, match="matmul"):
        pb.matmul(pb.tensor(np.ones((2, 3))), pb.tensor(np.ones((2, 3))))


def test_operand_of_no_known_kind(x) -> None:
    with pytest.raises(TypeError):
        x * "two"
    with pytest.raises(pb.DtypeError):
        pb.sin("two")


def test_a_failed_walk_leaves_grads_alone(x) -> None:
    w = pb.tensor(np.ones(3), requires_grad=True)
    pb.sum(x * w).backward()
    before = np.array(x.grad._raw), np.array(w.grad._raw)
    y = pb.sum(x * w)
    y.backward(retain_graph=True)
    after = np.array(x.grad._raw), np.array(w.grad._raw)
    y.backward()
    for wrong in (lambda: y.backward(), lambda: (x * w).backward(), lambda: (x * w).backward(np.ones(2))):
        grads = np.array(x.grad._raw), np.array(w.grad._raw)
        with pytest.raises((pb.GraphConsumedError, pb.ShapeError)):
            wrong()
        assert np.array_equal(grads[0], x.grad._raw)
        assert np.array_equal(grads[1], w.grad._raw)
    assert np.array_equal(after[0], 2 * before[0])
    assert np.array_equal(after[1], 2 * before[1])


def test_setting_a_gradient_that_does_not_fit(x) -> None:
    grads = pb.backward(pb.sum(x * x))
    before = np.array(grads[x]._raw)
    with pytest.raises(pb.ShapeError, match=r"\(2,\).*\(3,\)"):
        grads[x] = np.ones(2)
    with pytest.raises(pb.DtypeError, match=r"float32.*float64"):
        grads[x] = np.ones(3, np.float32)
    assert np.array_equal(grads[x]._raw, before)
    with pytest.raises(pb.ShapeError):
        x.grad = np.ones(2)
    assert x.grad is None


def test_input_without_a_gradient_rule(x) -> None:
    """An operation that is not differentiable in some input says so instead of dropping the gradient."""
    from pullback.autodiff.apply import apply
    from pullback.operations import OPERATIONS

    with pytest.raises(pb.GradientError, match=r"where.*condition.*detach"):
        apply(OPERATIONS["where"], (x, x, x))
