"""Transforms inside transforms, in any mix of modes and to any order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import pullback as pb


def forward(f):
    """The derivative of a scalar function by forward mode."""
    return lambda x: pb.jvp(f, (x,), (np.ones_like(x),))[1]


def pulled(f):
    return lambda x: pb.vjp(f, x)[1](np.ones_like(x))[0]


DERIVATIVES = {
    "grad": pb.grad,
    "jvp": forward,
    "vjp": pulled,
    "jacrev": pb.jacrev,
    "jacfwd": pb.jacfwd,
    "value_and_grad": lambda f: lambda x: pb.value_and_grad(f)(x)[1],
}


@pytest.mark.parametrize("names", list(itertools.product(["grad", "jvp", "vjp", "jacrev", "jacfwd"], repeat=2)))
def test_every_pair(names):
    f = lambda x: np.exp(2 * x) * np.sin(x)
    for name in names:
        f = DERIVATIVES[name](f)
    x = 0.7
    expected = math.exp(2 * x) * (3 * math.sin(x) + 4 * math.cos(x))
    assert f(np.array(x)) == pytest.approx(expected, rel=1e-12)
    assert float(f(x)) == pytest.approx(expected, rel=1e-12)
    assert pb.asarray(f(pb.asarray(np.array(x)))).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("names", list(itertools.product(["grad", "jvp"], repeat=4)))
def test_fourth_order_in_any_mix(names):
    f = lambda x: x**5 / (1 + x)
    for name in names:
        f = DERIVATIVES[name](f)
    x = 0.5
    # x**5 / (1 + x) = polynomial of degree 4 with leading coefficient 1, minus 1 / (1 + x)
    assert float(f(x)) == pytest.approx(24 - 24 / (1 + x) ** 5, rel=1e-10)


def test_what_comes_out_of_a_nest_has_no_graph():
    x = np.array([0.3, 0.4])
    f = lambda x: np.sum(np.sin(x))
    assert type(pb.grad(lambda x: np.sum(pb.grad(f)(x)))(x)) is np.ndarray
    assert type(pb.jvp(pb.grad(f), (x,), (x,))[1]) is np.ndarray
    assert type(pb.hessian(f)(x)) is np.ndarray
    assert type(pb.grad(lambda x: pb.jvp(f, (x,), (x,))[1])(x)) is np.ndarray
    t = pb.asarray(x)
    for result in (
        pb.grad(lambda x: np.sum(pb.grad(f)(x)))(t),
        pb.jvp(pb.grad(f), (t,), (t,))[1],
        pb.hessian(f)(t),
        pb.hvp(f, (t,), (t,))[0],
    ):
        assert type(result) is pb.Tensor
        assert not result.requires_grad


# -- perturbation confusion ------------------------------------------------------------------------


@pytest.mark.parametrize("outer", ["grad", "jvp", "jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["grad", "jvp", "jacrev", "jacfwd"])
def test_perturbations_are_not_confused(outer, inner):
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    assert float(d(lambda x: x * e(lambda y: x + y)(2.0))(1.0)) == 1.0
    assert float(d(lambda x: x * e(lambda y: x * y)(2.0))(3.0)) == 6.0
    assert float(d(lambda x: e(lambda y: x * y * y)(2.0) * x)(3.0)) == 24.0
    assert float(d(lambda x: x * e(lambda x: x**3)(x))(2.0)) == 9 * 4.0


def test_inner_transform_sees_the_outer_variable_by_capture_alone():
    def outer(a):
        inner = pb.grad(lambda x: np.sum(a * x**2))(np.ones(3))  # an array, but the result depends on `a`
        assert isinstance(inner, pb.Tensor)
        return np.sum(inner)

    assert pb.grad(outer)(2.0) == 6.0
    assert pb.jvp(outer, (2.0,), (1.0,))[1] == 6.0

    def constant_inside(a):
        inner = pb.grad(lambda x: np.sum(x**2))(np.ones(3))  # nothing of `a` in it
        assert type(inner) is np.ndarray
        return a * np.sum(inner)

    assert pb.grad(constant_inside)(2.0) == 6.0


def test_three_levels_with_captures():
    def f(a):
        def g(b):
            return pb.grad(lambda c: a * b**2 * c**3)(2.0)  # 12 a b^2

        return pb.jvp(g, (a,), (1.0,))[1]  # 24 a b at b = a

    assert pb.grad(f)(3.0) == 24 * 2 * 3.0


def test_value_and_aux_stay_differentiable_for_the_outer_transform():
    def outer(a):
        (value, aux), slope = pb.value_and_grad(lambda x: (a * x**2, a * x), has_aux=True)(3.0)
        return value + aux + slope  # 9a + 3a + 6a

    assert pb.grad(outer)(1.0) == 18.0
    assert pb.jvp(outer, (1.0,), (1.0,))[1] == 18.0


def test_pullback_of_an_inner_vjp_with_the_outer_variable_as_cotangent():
    def outer(a):
        _, pullback = pb.vjp(np.sin, np.array([0.0, 1.0]))
        return np.sum(pullback(a * np.ones(2))[0])

    assert pb.grad(outer)(2.0) == pytest.approx(1 + math.cos(1))
    assert pb.jvp(outer, (2.0,), (1.0,))[1] == pytest.approx(1 + math.cos(1))


def test_tangents_and_primals_that_depend_on_the_outer_variable():
    def outer(a):
        return pb.jvp(lambda x: x**3, (a,), (a * a,))[1]  # 3 a^4

    assert pb.grad(outer)(2.0) == pytest.approx(12 * 8.0)
    assert forward(outer)(2.0) == pytest.approx(12 * 8.0)
    assert pb.grad(pb.grad(outer))(2.0) == pytest.approx(36 * 4.0)


def test_hessian_of_a_network_agrees_in_all_modes():
    random = np.random.default_rng(0)
    inputs, w = random.normal(size=(5, 3)), random.normal(size=6)

    def loss(w):
        hidden = np.tanh(inputs @ w[:3].reshape(3, 1) @ w[3:5].reshape(1, 2))
        return np.mean(np.logaddexp(0.0, hidden)) + w[5] ** 2 * w[0]

    expected = pb.jacrev(pb.jacrev(loss))(w)
    for second in (
        pb.hessian(loss),
        pb.jacfwd(pb.jacfwd(loss)),
        pb.jacrev(pb.jacfwd(loss)),
        pb.jacfwd(pb.grad(loss)),
        pb.jacrev(pb.grad(loss)),
    ):
        np.testing.assert_allclose(second(w), expected, rtol=1e-10, atol=1e-14)
    v = random.normal(size=6)
    np.testing.assert_allclose(pb.hvp(loss, (w,), (v,))[0], expected @ v, rtol=1e-10, atol=1e-14)


def test_backward_inside_a_transform_and_around_it():
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    penalty = pb.sum(pb.grad(lambda x: pb.sum(x**3))(w) ** 2)  # sum of 9 w^4
    penalty.backward()
    np.testing.assert_allclose(w.grad.numpy(), 36 * np.array([1.0, 8.0]))


def test_a_newton_step_can_be_differentiated():
    """Implicit differentiation by unrolling: the minimum of (x - a)^4 + x^2 moves with a."""

    def solve(a):
        x = 0.0 * a
        for _ in range(30):
            slope = pb.grad(lambda x: (x - a) ** 4 + x**2)
            x = x - slope(x) / pb.grad(slope)(x)
        return x

    derivative = pb.grad(solve)(2.0)
    x = solve(2.0)
    curvature = 12 * (x - 2.0) ** 2
    assert derivative == pytest.approx(curvature / (curvature + 2), rel=1e-8)


def test_forward_mode_may_write_to_arguments_that_are_variables():
    def f(x):
        x *= 2
        x[0] = x[1] * x[1]
        return x.sum()

    w = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    tangent = pb.ones(2, dtype=pb.float64)
    assert pb.jvp(f, (w,), (tangent,))[1].item() == 18.0
    assert pb.jacfwd(f)(w).detach().tolist() == [0.0, 18.0]
    assert pb.hvp(f, (w,), (tangent,))[0].tolist() == [0.0, 8.0]
    assert w.tolist() == [1.0, 2.0]


def test_a_gradient_can_be_differentiated_twice_by_a_variable_that_it_depends_on():
    w = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    x = pb.tensor([0.5, -1.0], dtype=pb.float64)
    slope = pb.grad(lambda t: (t * t * w * w).sum())(x)  # depends on t too, behind which nothing is
    first = pb.backward(slope.sum(), create_graph=True)[w]
    assert first.detach().tolist() == [2.0, -8.0]
    assert pb.backward(first.sum())[w].tolist() == [2.0, -4.0]
