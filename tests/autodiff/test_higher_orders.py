"""Derivatives of derivatives: reverse, forward, and every mixture of the two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import forward


def tensor(value) -> pb.Tensor:
    return pb.tensor(np.asarray(value, dtype=np.float64))


def ones_like(x: pb.Tensor) -> pb.Tensor:
    return pb.asarray(np.ones(x.shape))


def derivative_forward(function):
    """The derivative of a function of one number by forward mode."""

    def derivative(x):
        level = forward.next_level()
        out = function(forward.dual(x, ones_like(x), level))
        tangent = forward.tangent_at(out, level)
        return tensor(np.zeros(x.shape)) if tangent is None else tangent

    return derivative


def derivative_reverse(function):
    """The derivative of a function of one number by reverse mode."""

    def derivative(x):
        own = forward.variable(x)
        out = function(own)
        (gradient,) = forward.vjp_of([out], [ones_like(out)], [own])
        return tensor(np.zeros(x.shape)) if gradient is None else gradient

    return derivative


def derivative_grad(function):
    return pb.grad(function)


def derivative_jvp(function):
    return lambda x: pb.jvp(function, (x,), (ones_like(x),))[1]


ENGINE = {"forward": derivative_forward, "reverse": derivative_reverse}
TRANSFORMS = {"grad": derivative_grad, "jvp": derivative_jvp}
MODES = ENGINE | TRANSFORMS


def mixtures(depth: int) -> list[tuple[str, ...]]:
    return [modes for kind in (ENGINE, TRANSFORMS) for modes in itertools.product(kind, repeat=depth)]


pairs = pytest.mark.parametrize(("outer", "inner"), mixtures(2))


@pairs
def test_no_perturbation_confusion(outer: str, inner: str) -> None:
    """d/dx (x * d/dy (x + y)) is 1; mixing up the two perturbations gives 2."""
    d_outer, d_inner = MODES[outer], MODES[inner]
    found = d_outer(lambda x: x * d_inner(lambda y: x + y)(tensor(1.0)))(tensor(1.0))
    assert found.item() == 1.0


@pairs
def test_inner_derivative_of_a_product_with_the_outer_variable(outer: str, inner: str) -> None:
    """d/dx (x * d/dy (x * y * y)) at x = 3, y = 2: x * 2xy, so 4xy = 24."""
    d_outer, d_inner = MODES[outer], MODES[inner]
    found = d_outer(lambda x: x * d_inner(lambda y: x * y * y)(tensor(2.0)))(tensor(3.0))
    assert found.item() == pytest.approx(24.0)


@pairs
def test_inner_derivative_at_the_outer_variable(outer: str, inner: str) -> None:
    """d/dx of (d/dy y**3 at y = x), times x: d/dx 3x**3 = 9x**2."""
    d_outer, d_inner = MODES[outer], MODES[inner]
    found = d_outer(lambda x: x * d_inner(lambda y: y * y * y)(x))(tensor(2.0))
    assert found.item() == pytest.approx(36.0)


@pairs
def test_inner_derivative_that_is_zero(outer: str, inner: str) -> None:
    d_outer, d_inner = MODES[outer], MODES[inner]
    found = d_outer(lambda x: x * d_inner(lambda y: x * 2.0)(tensor(2.0)) + x)(tensor(3.0))
    assert found.item() == 1.0


@pytest.mark.parametrize("modes", mixtures(3), ids=" of ".join)
def test_third_derivatives_in_every_mixture(modes: tuple[str, ...]) -> None:
    def function(x):
        return pb.sin(x) * pb.exp(x * 2.0)

    derived = function
    for mode in modes:
        derived = MODES[mode](derived)
    x = 0.7
    expected = np.imag((2 + 1j) ** 3 * np.exp((2 + 1j) * x))
    assert derived(tensor(x)).item() == pytest.approx(expected, rel=1e-12)


def test_create_graph_to_third_order() -> None:
    x = pb.tensor(np.array([0.5, 1.5]), requires_grad=True)
    y = pb.sum(x * x * x * x)
    expected = [4 * x._raw**3, 12 * x._raw**2, 24 * x._raw, np.full(2, 24.0)]
    for k, value in enumerate(expected):
        gradient = pb.backward(y, create_graph=k < 3)[x]
        np.testing.assert_allclose(gradient._raw, value, rtol=1e-13)
        if k < 3:
            y = pb.sum(gradient)


def test_create_graph_keeps_the_graph() -> None:
    x = pb.tensor(np.array([0.5, 1.5]), requires_grad=True)
    y = pb.sum(pb.exp(x))
    pb.backward(y, create_graph=True)
    pb.backward(y)


def test_gradient_without_create_graph_is_not_tracked() -> None:
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    assert not pb.backward(x * x)[x].requires_grad


def test_hessian_vector_product_of_a_network() -> None:
    generator = np.random.default_rng(1)
    w = pb.tensor(generator.standard_normal((3, 2)), requires_grad=True)
    x = pb.asarray(generator.standard_normal((4, 3)))
    direction = generator.standard_normal((3, 2))

    def gradient(weights):
        own = pb.tensor(weights, requires_grad=True)
        return pb.backward(pb.sum(pb.tanh(pb.matmul(x, own))))[own]._raw

    loss = pb.sum(pb.tanh(pb.matmul(x, w)))
    first = pb.backward(loss, create_graph=True)[w]
    found = pb.backward(pb.sum(first * pb.asarray(direction)))[w]._raw
    step = 1e-4
    expected = (gradient(w._raw + step * direction) - gradient(w._raw - step * direction)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_gradient_penalty() -> None:
    """The norm of a gradient as a part of the loss: d/dw of (d/dx w x**2)**2 = 8 w x**2."""
    w = pb.tensor(3.0, dtype=pb.float64, requires_grad=True)
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    gradient = pb.backward(w * x * x, wrt=x, create_graph=True)[x]
    found = pb.backward(gradient * gradient)
    assert found[w].item() == pytest.approx(96.0)
    assert found[x].item() == pytest.approx(144.0)


def test_the_cotangent_may_be_tracked() -> None:
    """A gradient is linear in its cotangent, and is differentiated with respect to it."""
    x = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    c = pb.tensor(np.array([3.0, 5.0]), requires_grad=True)
    gradient = pb.backward(x * x * x, c, wrt=x, create_graph=True)[x]
    found = pb.backward(pb.sum(gradient))
    assert found[c]._raw.tolist() == [3.0, 12.0]
    assert found[x]._raw.tolist() == [18.0, 60.0]


def test_a_zero_cotangent_keeps_its_derivative() -> None:
    """The Hessian of (3x)**2 / 2 at 0 is 9, although every first-order cotangent there is 0."""
    x = pb.tensor(0.0, dtype=pb.float64, requires_grad=True)
    y = x * 3.0
    first = pb.backward(y * y * 0.5, create_graph=True)[x]
    assert first.item() == 0.0
    assert pb.backward(first)[x].item() == 9.0


def test_backward_inside_forward_mode_does_not_drop_the_tangent() -> None:
    """d/dx of d/dw (x w**2) is 2w; a plain walk would give 0 without a word."""
    w = pb.tensor(3.0, dtype=pb.float64, requires_grad=True)

    def by_backward(x):
        return pb.backward(x * w * w, wrt=w, create_graph=True)[w]

    with pytest.raises(pb.GradientError, match=r"pb\.grad"):
        pb.jvp(by_backward, (tensor(2.0),), (tensor(1.0),))
    assert pb.grad(by_backward)(tensor(2.0)).item() == 6.0

    def by_grad(x):
        return pb.grad(lambda v: x * v * v)(w)

    assert pb.jvp(by_grad, (tensor(2.0),), (tensor(1.0),))[1].item() == 6.0
