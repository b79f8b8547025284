"""Operations of one's own."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import pullback as pb


def test_custom_op_has_gradients_of_every_order():
    cube = pb.custom_op(lambda x: x * x * x, name="cube", x=lambda g, x: 3 * g * x * x)
    x = np.array([2.0, -1.0])
    f = lambda t: cube(t).sum()
    assert np.allclose(pb.grad(f)(x), 3 * x**2)
    assert np.allclose(pb.hessian(f)(x), np.diag(6 * x))
    third = pb.grad(lambda t: pb.grad(lambda u: pb.grad(f)(u).sum())(t).sum())(x)
    assert np.allclose(third, 6)


def test_custom_op_in_forward_mode():
    product = pb.custom_op(lambda x, y, *, k=2.0: k * x * y, x=lambda g, y, k: k * g * y, y=lambda g, x, k: k * g * x)
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, tangent = pb.jvp(lambda a, b: product(a, b, k=3.0), (x, y), (np.ones(2), np.zeros(2)))
    assert np.allclose(value, 3 * x * y) and np.allclose(tangent, 3 * y)


def test_custom_op_keeps_only_what_the_rules_name():
    double = pb.custom_op(lambda x: 2 * x, name="double", x=lambda g: 2 * g)
    w = pb.tensor([1.0], requires_grad=True)
    assert double(w)._node.saved == ((1,),)  # the shape, which the gradient is held against


@pytest.mark.parametrize("through", [lambda w: w, lambda w: w * 1])
def test_custom_op_results_are_checked(through):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    cut = pb.custom_op(lambda x: x**3, name="cut", x=lambda g, x: (g * x)[:1])
    with pytest.raises(pb.ShapeError, match=r"`cut` for `x` returned a gradient of shape \(1,\), .* shape \(2,\)"):
        cut(through(w)).sum().backward()
    with pytest.raises(pb.ShapeError, match="`cut`"):
        pb.hessian(lambda x: cut(x).sum())(np.ones(2))
    number = pb.custom_op(lambda x: x**3, name="number", x=lambda g: 3.0)
    with pytest.raises(pb.DtypeError, match=r"`number` for `x` returned float: 3.0"):
        number(through(w)).sum().backward()


def test_custom_op_rule_that_forgot_the_broadcasting_is_an_error():
    product = pb.custom_op(lambda x, w: x * w, name="product", x=lambda g, w: g * w, w=lambda g, x: g * x)
    w = pb.tensor([2.0], requires_grad=True)
    with pytest.raises(pb.ShapeError, match=r"`product` for `w`.*broadcast"):
        product(pb.ones(3), w).sum().backward()


def test_custom_op_with_joint_rule_and_untracked_input():
    weighted = pb.custom_op(lambda x, y: x * y, joint=lambda g, x, y: (g * y, g * x))
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.tensor([3.0, 4.0])
    weighted(x, y).sum().backward()
    assert np.array_equal(x.grad.numpy(), [3, 4]) and y.grad is None


def test_custom_op_refuses_unknown_names():
    with pytest.raises(TypeError, match="'z'"):
        pb.custom_op(lambda x: x, z=lambda g: g)
    f = pb.custom_op(lambda x, *, k: k * x, name="f", x=lambda g, k: k * g)
    with pytest.raises(TypeError, match="missing argument k"):
        f(pb.tensor([1.0]))
    with pytest.raises(TypeError, match="unknown argument j"):
        f(pb.tensor([1.0]), k=1.0, j=2)
    with pytest.raises(pb.GradientError, match="`y`"):
        g = pb.custom_op(lambda x, y: x * y, name="g", x=lambda g, y: g * y)
        g(pb.tensor([1.0]), pb.tensor([1.0], requires_grad=True))


class Square(pb.BackwardOp):
    name = "square"

    def __init__(self, x):
        super().__init__([x])

    def backward(self, gradient):
        (x,) = self.inputs
        return (2 * x * gradient,)


def test_backward_op_at_first_and_second_order():
    x = pb.tensor(np.array([3.0]), requires_grad=True)
    y = pb.tensor(np.array([9.0]))
    y.set_backward_op(Square(x))
    assert isinstance(y.backward_op, Square)
    first = pb.backward(y.sum(), create_graph=True)[x]
    second = pb.backward(first.sum())[x]
    assert first.item() == 6 and second.item() == 2


def test_backward_op_results_are_checked():
    x = pb.tensor([3.0], requires_grad=True)
    y = pb.tensor([9.0])
    y.set_backward_op(pb.BackwardOp([x], lambda g: (g, g)))
    with pytest.raises(pb.ShapeError, match="2 gradients for 1 input"):
        y.sum().backward()
    assert x.grad is None


def test_backward_op_of_a_built_in_operation():
    x = pb.tensor([3.0], requires_grad=True)
    y = x * x
    assert y.backward_op.name == "multiply"
    gradients = y.backward_op.backward(pb.tensor([1.0]))
    assert [g.item() for g in gradients] == [3, 3]
    assert x.backward_op is None


class TestHooks:
    def test_see_and_replace_the_gradient(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        seen = []
        y = w * 3
        y.register_hook(lambda g: seen.append(g.detach().numpy().copy()))
        handle = y.register_hook(lambda g: g * 2)
        (y + y).sum().backward(retain_graph=True)
        assert np.array_equal(seen, [[2, 2]])
        assert np.array_equal(w.grad.numpy(), [12, 12])
        handle.remove()
        w.grad = None
        (y + y).sum().backward()
        assert np.array_equal(w.grad.numpy(), [6, 6])

    def test_on_a_variable_run_once_with_the_whole_gradient(self):
        w = pb.tensor([1.0, 2.0], requires_grad=True)
        calls = []
        w.register_hook(lambda g: calls.append(1))
        w.register_hook(lambda g: g * 0.5)
        (w * 2 + w * 4).sum().backward()
        assert calls == [1]
        assert np.array_equal(w.grad.numpy(), [3, 3])

    def test_need_a_gradient(self):
        with pytest.raises(pb.GradientError):
            pb.tensor([1.0]).register_hook(print)


def test_custom_op_uses_its_own_jvp():
    calls = []

    def tangent(primals, tangents, *, power):
        calls.append(power)
        return power * primals[0] ** (power - 1) * tangents[0] + tangents[1]

    raised = pb.custom_op(
        lambda x, y, *, power=3: x**power + y,
        name="raised",
        x=lambda g, x, power: g * power * x ** (power - 1),
        y=lambda g: g,
        jvp=tangent,
    )
    x = np.array([2.0, -1.0])
    _, found = pb.jvp(lambda t: raised(t, np.ones(2), power=2), (x,), (np.ones(2),))
    assert calls == [2] and np.allclose(found, 2 * x)
    assert np.allclose(pb.hessian(lambda t: raised(t, t).sum())(x), np.diag(6 * x))
    wrong = pb.custom_op(lambda x: x * x, name="wrong", x=lambda g, x: 2 * g * x, jvp=lambda p, t: t[0].sum())
    with pytest.raises(pb.ShapeError, match="the jvp of `wrong`"):
        pb.jvp(wrong, (x,), (np.ones(2),))


def test_custom_op_rule_may_return_none_beside_other_contributions():
    flat = pb.custom_op(lambda x: np.round(x), name="flat", x=lambda g: None)
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    (w + flat(w)).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]
    assert np.array_equal(pb.hessian(lambda t: (t * t + flat(t)).sum())(np.ones(2)), 2 * np.eye(2))


@pytest.mark.parametrize("returned", [lambda g: (2.0,), lambda g: (np.ones(2),), lambda g: None])
def test_backward_op_that_returns_no_tensor_is_an_error(returned):
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.tensor([1.0, 4.0])
    y.set_backward_op(pb.BackwardOp([w], returned))
    with pytest.raises(pb.DtypeError, match="backward"):
        y.sum().backward()
    with pytest.raises(pb.DtypeError, match="inputs must be tensors"):
        y.set_backward_op(pb.BackwardOp([np.ones(2)], lambda g: (g,)))


def test_backward_op_remembers_which_inputs_needed_a_gradient():
    a, b = (pb.tensor([1.0], requires_grad=True) for _ in range(2))
    y = pb.tensor([1.0])
    y.set_backward_op(pb.BackwardOp([a, b], lambda g: (10 * g, 20 * g)))
    a.requires_grad = False
    y.sum().backward()
    assert a.grad.tolist() == [10.0] and b.grad.tolist() == [20.0]


@pytest.mark.parametrize("start", [lambda x: x.detach() ** 3, lambda x: x * x * x])
def test_backward_op_in_forward_mode(start):
    def f(x):
        y = start(x)
        y.set_backward_op(pb.BackwardOp([x], lambda g: (3 * x * x * g,)))
        return y.sum()

    x, t = np.array([3.0, 1.0]), np.array([1.0, 2.0])
    assert np.allclose(pb.jvp(f, (x,), (t,))[1], 33.0)
    assert np.allclose(pb.hessian(f)(x), np.diag(6 * x))
    assert np.allclose(pb.jacfwd(pb.jacfwd(f))(x), np.diag(6 * x))
    assert np.allclose(pb.grad(lambda x: pb.jvp(f, (x,), (t,))[1])(x), 6 * x * t)


def test_custom_op_wants_functions_with_named_arguments():
    rule = lambda g, x: g
    for wrong in (np.sin, "x".join, functools.partial(np.sin)):
        with pytest.raises(TypeError, match=r"forward must be a function written in Python.*lambda x: f\(x\)"):
            pb.custom_op(wrong, x=rule)
    with pytest.raises(TypeError, match="custom_op: x must be a function"):
        pb.custom_op(lambda x: x, x=5)
    with pytest.raises(TypeError, match=r"arrays x, k by position, got 1 .*static"):
        pb.custom_op(lambda x, k=2.0: k * x, name="scaled", x=lambda g, k: k * g)(pb.ones(2))


def test_custom_op_has_the_name_and_the_signature_of_its_function():
    def scaled(x, *, k=2.0):
        """k times x."""
        return k * x

    made = pb.custom_op(scaled, x=lambda g, k: k * g)
    assert "scaled" in repr(made) and made.__doc__ == "k times x."
    assert str(inspect.signature(made)) == "(x, *, k=2.0)"
