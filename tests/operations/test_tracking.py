"""Any subset of the inputs may be tracked: the gradients are the same, and nothing is kept for the others."""

from __future__ import annotations

import itertools
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.functions.low_rank import Projection, low_rank_linear

from . import harness
from .harness_samples import SAMPLES
from .sample import Sample, rng


def subsets(count: int) -> list[tuple[bool, ...]]:
    """All proper subsets that are not empty; of many inputs the single ones and their complements."""
    if count <= 3:
        masks = list(itertools.product((False, True), repeat=count))
        return [mask for mask in masks if any(mask) and not all(mask)]
    singles = [tuple(i == j for j in range(count)) for i in range(count)]
    return singles + [tuple(not flag for flag in mask) for mask in singles]


@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if len(s.arguments) > 1], ids=lambda sample: sample.name
)  # fmt: skip
def test_gradients_do_not_depend_on_what_else_is_tracked(sample: Sample) -> None:
    outputs = harness.values(sample.function, sample.arguments)
    cotangents = harness.cotangents_for(rng(sample.name), outputs)
    expected = harness.reverse(sample.function, sample.arguments, cotangents)
    floor = 1e-12 * harness.size_of(expected)
    for mask in subsets(len(sample.arguments)):
        found = harness.reverse(sample.function, sample.arguments, cotangents, mask)
        for i, (gradient, full) in enumerate(zip(found, expected)):
            if mask[i]:
                harness.assert_close([gradient], [full], 1e-12, f"argument {i} with {mask} tracked", floor)
            else:
                assert gradient is None


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_nothing_is_recorded_where_nothing_is_tracked(sample: Sample) -> None:
    for out in harness.outputs_of(sample.function, harness.variables(sample.arguments, [False] * 99)):
        assert out._node is None
    with pb.no_grad():
        for out in harness.outputs_of(sample.function, harness.variables(sample.arguments)):
            assert out._node is None


def kept(function, arrays, tracked) -> list[bool]:
    """Which of the inputs' arrays live on in the graph once the caller has let go of them."""
    copies = [np.array(array) for array in arrays]
    references = [weakref.ref(array) for array in copies]
    tensors = harness.variables(copies, tracked)
    result = function(*tensors)
    del copies, tensors
    alive = [reference() is not None for reference in references]
    assert result._node is not None
    return alive


def matrices(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape) for shape in shapes]


def low_rank(x, weight, down, up):
    return low_rank_linear(x, [Projection(weight, None, down, up)])[0]


FROZEN = [
    # function, shapes, what is tracked, what may be kept
    ("multiply", lambda x, y: x * y, [(3, 4), (3, 4)], (True, False), [False, True]),
    ("multiply", lambda x, y: x * y, [(3, 4), (3, 4)], (False, True), [True, False]),
    ("matmul", lambda x, w: pb.matmul(x, w), [(3, 4), (4, 2)], (True, False), [False, True]),
    ("matmul", lambda x, w: pb.matmul(x, w), [(3, 4), (4, 2)], (False, True), [True, False]),
    ("add", lambda x, y: x + y, [(3, 4), (3, 4)], (True, True), [False, False]),
    ("divide", lambda x, y: pb.divide(x, y), [(3, 4), (3, 4)], (True, False), [False, True]),
    ("linear", lambda x, w, b: pb.linear(x, w, b), [(3, 4), (2, 4), (2,)], (True, False, False), [False, True, False]),
    ("linear", lambda x, w, b: pb.linear(x, w, b), [(3, 4), (2, 4), (2,)], (False, True, True), [True, False, False]),
    ("low_rank", low_rank, [(3, 4), (2, 4), (1, 4), (2, 1)], (True, False, False, False), [False, True, True, True]),
    ("low_rank", low_rank, [(3, 4), (2, 4), (1, 4), (2, 1)], (False, False, True, True), [True, True, True, True]),
    ("conv", lambda x, w: pb.conv1d(x, w), [(1, 2, 5), (3, 2, 3)], (True, False), [False, True]),
    ("conv", lambda x, w: pb.conv1d(x, w), [(1, 2, 5), (3, 2, 3)], (False, True), [True, False]),
    ("softmax", lambda x: pb.softmax(x), [(3, 4)], (True,), [False]),
    ("max_pool", lambda x: pb.max_pool1d(x, 2), [(1, 2, 6)], (True,), [False]),
    ("tanh", lambda x: pb.tanh(x), [(3, 4)], (True,), [False]),
    ("sum", lambda x: pb.sum(x), [(3, 4)], (True,), [False]),
    ("reshape", lambda x: pb.reshape(x, (12,)) * 2.0, [(3, 4)], (True,), [False]),
    (
        "where",
        lambda x, y: pb.where(pb.asarray(np.eye(3, 4) > 0), x, y),
        [(3, 4), (3, 4)],
        (True, True),
        [False, False],
    ),
]


@pytest.mark.plain_graph
@pytest.mark.parametrize(("name", "function", "shapes", "tracked", "expected"), FROZEN)
def test_only_what_a_rule_names_is_kept(name, function, shapes, tracked, expected) -> None:
    assert kept(function, matrices(*shapes), tracked) == expected
