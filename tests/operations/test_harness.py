"""The checks themselves: they pass for right gradients and fail for wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from pullback.autodiff.tables import NUMPY_TABLE, TENSORS, tensor_table
from pullback.operations import OPERATIONS

from . import harness, harness_checks, test_layouts
from .sample import Sample, rng


def drawn(name: str, *shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(rng(name).uniform(0.4, 1.6, shape) for shape in shapes)


RIGHT = [
    Sample("multiply", "broadcast", lambda x, y: x * y, drawn("multiply", (3, 1), (4,))),
    Sample("tanh", "plain", lambda x: TENSORS.tanh(x), drawn("tanh", (2, 3))),
    Sample("exp", "0-d", lambda x: TENSORS.exp(x), drawn("exp", ())),
    Sample("log", "complex", lambda x: TENSORS.log(x), tuple(x + 0.4j for x in drawn("log", (3,)))),
    Sample("matmul", "stack", lambda x, y: TENSORS.matmul(x, y), drawn("matmul", (2, 2, 3), (3, 2))),
    Sample("sum", "two outputs", lambda x, y: (TENSORS.sum(x * y), x + y), drawn("sum", (3,), (3,))),
    Sample("divide", "same input twice", lambda x: TENSORS.divide(x * x, x + x * x), drawn("divide", (3,))),
]


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.name)
def test_right_gradients_pass(sample: Sample) -> None:
    harness_checks.first_order(sample)
    harness_checks.second_order(sample)
    harness_checks.forward_mode(sample)


@contextmanager
def broken(operation: str, factor: float) -> Iterator[None]:
    """Multiply what the rule of `operation` gives, on arrays and on tensors."""
    recipes = [r for table in (NUMPY_TABLE, tensor_table()) for k, r in table.recipes.items() if k[0] == operation]
    rights = [recipe.backward for recipe in recipes]
    try:
        for recipe, right in zip(recipes, rights):
            recipe.backward = lambda *args, right=right: tuple(g * factor for g in right(*args))
        yield
    finally:
        for recipe, right in zip(recipes, rights):
            recipe.backward = right


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.name)
@pytest.mark.parametrize("factor", [-1.0, 1.00001])
def test_wrong_gradients_fail(sample: Sample, factor: float) -> None:
    harness_checks.first_order(sample)
    harness_checks.second_order(sample)
    with broken(sample.operation, factor):
        with pytest.raises(AssertionError):
            harness_checks.first_order(sample)
        if OPERATIONS[sample.operation].linear:  # their tangents do not come from the rule
            with pytest.raises(AssertionError):
                harness_checks.forward_mode(sample)


def test_second_order_sees_an_error_that_first_order_cannot() -> None:
    """A rule that is right on arrays and wrong on tensors."""
    sample = RIGHT[1]
    harness_checks.second_order(sample)
    recipe = tensor_table().recipe(OPERATIONS["tanh"], (True,))
    right = recipe.backward
    try:
        recipe.backward = lambda g, out: (g * (1 - out.detach() * out),)
        harness_checks.first_order(sample)
        with pytest.raises(AssertionError):
            harness_checks.second_order(sample)
    finally:
        recipe.backward = right


def test_differences_are_exact_to_ten_digits() -> None:
    found, error = harness.derivative(lambda h: np.sin(1.0 + h) * np.exp(0.5 + 2 * h))
    expected = np.exp(0.5) * (np.cos(1.0) + 2 * np.sin(1.0))
    assert abs(found - expected) < 1e-10
    assert error < 1e-8


def test_differences_avoid_a_kink_nearby() -> None:
    found, _ = harness.derivative(lambda h: abs(h + 1e-4) * np.exp(h))
    assert abs(found - (1 + 1e-4)) < 1e-8


@pytest.mark.parametrize("layout", test_layouts.LAYOUTS)
def test_layouts_keep_the_values(layout) -> None:
    for shape in ((), (3,), (2, 3), (2, 0), (2, 3, 4)):
        array = rng("layout").standard_normal(shape)
        assert np.array_equal(layout(array), array)
    assert not test_layouts.spaced(np.ones((3, 4))).flags.c_contiguous
    assert min(test_layouts.reversed_strides(np.ones((3, 4))).strides) < 0
    assert 0 in test_layouts.repeated(np.ones((3, 4))).strides


def test_infinities_and_nan_are_never_close() -> None:
    one = [np.array([1.0, 2.0])]
    for wrong in ([np.array([np.inf, 2.0])], [np.array([np.nan, 2.0])]):
        with pytest.raises(AssertionError):
            harness.assert_close(wrong, one, 1e-6, "test")
        with pytest.raises(AssertionError):
            harness.assert_same(float(wrong[0][0]), 1.0, 1e-6, "test")
    harness.assert_close(one, one, 1e-6, "test")


def test_cotangents_are_never_ones_or_small() -> None:
    drawn_numbers = harness.like(rng("cotangent"), np.zeros(1000))
    assert np.min(np.abs(drawn_numbers)) >= 0.5
    assert np.std(drawn_numbers) > 0.5
