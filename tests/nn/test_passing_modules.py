"""Gradients flow through modules that are passed to loops and to vmap, as through dicts of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import nn

X = np.random.default_rng(0).normal(size=(5, 3))


def layer():
    pb.random.seed(0)
    return nn.Linear(3, 3, dtype=pb.float64)


def loss(model, x):
    return pb.sum(pb.tanh(model(x)) ** 2)


def once(model):
    """A model goes on as what it is, and with an array beside it."""
    start = (model, pb.asarray(0))
    return pb.while_loop(lambda carry: carry[1] < 3, lambda carry: (carry[0], carry[1] + 1), start, max_steps=4)[0]


def twice(model, x):
    return pb.vmap(loss, in_axes=(None, 0))(model, x[None]).sum()


PASSED = {
    "vmap": lambda m: pb.vmap(loss, in_axes=(None, 0))(m, X).sum(),
    "vmap, in a dict": lambda m: pb.vmap(lambda p, x: loss(p["m"], x), in_axes=({"m": None}, 0))({"m": m}, X).sum(),
    "vmap, as a keyword": lambda m: pb.vmap(lambda x, m: loss(m, x))(X, m=m).sum(),
    "vmap of vmap": lambda m: pb.vmap(twice, (None, 0))(m, X).sum(),
    "vmap inside of vmap": lambda m: pb.vmap(lambda x: twice(m, x))(X).sum(),
    "carry of scan": lambda m: pb.scan(lambda m, x: (m, loss(m, x)), m, X)[1].sum(),
    "carry of scan that comes back": lambda m: loss(pb.scan(lambda m, x: (m, x), m, X)[0], X),
    "carry of while_loop": lambda m: loss(once(m), X),
    "operand of cond": lambda m: pb.cond(pb.asarray(True), loss, lambda m, x: loss(m, -x), m, X),
    "result of cond": lambda m: loss(pb.cond(pb.asarray(True), lambda m: m, lambda m: m, m), X),
    "checkpoint": lambda m: pb.checkpoint(loss)(m, X),
}  # fmt: skip


@pytest.mark.parametrize("compiles", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("way", PASSED)
def test_gradients_are_those_of_the_call_itself(way, compiles):
    if compiles:
        pytest.importorskip("llvmlite")
    model = layer()

    def step():
        gradients = pb.backward(PASSED[way](model))
        return [gradients[p] for p in model.parameters()]

    found = (pb.compile(step) if compiles else step)()
    expected = pb.backward(loss(model, X))
    for gradient, parameter in zip(found, model.parameters()):
        np.testing.assert_allclose(gradient.numpy(), expected[parameter].numpy(), rtol=1e-12)


def test_models_with_an_axis_of_examples_are_variables():
    models = [layer() for _ in range(4)]
    with pb.no_grad():
        for number, model in enumerate(models):
            model.weight *= 1.0 + number
    stacked = pb.tree.map(lambda *values: pb.stack(values).set_requires_grad(True), *models)
    pb.vmap(loss, in_axes=(0, None))(stacked, X).sum().backward()
    for number, model in enumerate(models):
        loss(model, X).backward()
        np.testing.assert_allclose(stacked.weight.grad[number].numpy(), model.weight.grad.numpy(), rtol=1e-12)


def test_gradients_by_a_module_are_values():
    """What `pb.grad` gives, so that updates of many steps are no graph."""
    model = layer()
    for found in (
        pb.per_example_grad(loss)(model, X),
        pb.vmap(pb.grad(loss), in_axes=(None, 0))(model, X),
        pb.grad(loss)(model, X),
    ):
        assert [leaf.requires_grad for leaf in pb.tree.leaves(found)] == [False, False]


def test_a_tied_parameter_is_one():
    model = nn.Sequential(layer(), layer())
    model[1].weight = model[0].weight
    pb.vmap(loss, in_axes=(None, 0))(model, X).sum().backward()
    found = model[0].weight.grad.numpy()
    model.zero_grad()
    loss(model, X).backward()
    np.testing.assert_allclose(found, model[0].weight.grad.numpy(), rtol=1e-12)
