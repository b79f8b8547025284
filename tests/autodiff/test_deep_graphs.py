"""Graphs of 100,000 nodes in a row: no recursion, each node once."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import engine
from pullback.autodiff.tables import NUMPY_TABLE
from pullback.operations import OPERATIONS

DEPTH = 100_000


def chain(x: pb.Tensor, depth: int) -> pb.Tensor:
    y = x
    for _ in range(depth):
        y = y * 1.00001
    return y


def test_forward_backward_and_deallocation_of_a_deep_chain() -> None:
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    y = chain(x, DEPTH)
    first = weakref.ref(y._node)
    assert pb.backward(y)[x].item() == pytest.approx(1.00001**DEPTH, rel=1e-9)
    del y
    assert first() is None


def test_deallocation_of_a_deep_chain_that_was_never_walked() -> None:
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    y = chain(x, DEPTH)
    last = weakref.ref(y._node)
    del y
    assert last() is None


def test_a_deep_chain_under_a_low_recursion_limit() -> None:
    limit = sys.getrecursionlimit()
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    y = chain(x, 5_000)
    try:
        sys.setrecursionlimit(len_of_stack() + 60)
        gradient = pb.backward(y)[x]
        del y
    finally:
        sys.setrecursionlimit(limit)
    assert gradient.item() == pytest.approx(1.00001**5_000)


def len_of_stack() -> int:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_a_deep_chain_leaves_no_garbage() -> None:
    """Nodes have no reference cycles: memory goes without the collector."""
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        y = chain(x, 1_000)
        nodes = [weakref.ref(node) for node in engine.in_order([y._node])]
        pb.backward(y)
        del y
        assert len(nodes) == 1_000
        assert all(node() is None for node in nodes)
    finally:
        gc.enable()


@pytest.mark.plain_graph
@pytest.mark.parametrize("depth", [1_000, 10_000])
def test_the_work_grows_linearly(depth: int) -> None:
    """Counted, not timed: each rule is called once, and no list is gone through twice for a node."""
    recipe = NUMPY_TABLE.recipe(OPERATIONS["multiply"], (True, False))
    right, calls = recipe.backward, 0

    def counted(*args):
        nonlocal calls
        calls += 1
        return right(*args)

    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    y = chain(x, depth)
    lines = 0

    def traced(frame, event, arg):
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename == engine.__file__
        return traced

    recipe.backward = counted
    previous = sys.gettrace()
    try:
        sys.settrace(traced)
        pb.backward(y)
    finally:
        sys.settrace(previous)
        recipe.backward = right
    assert calls == depth
    assert lines < 60 * depth + 1_000


def test_a_deep_residual_chain() -> None:
    x = pb.tensor(np.array([1.0, -1.0]), requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + y * 1e-5
    np.testing.assert_allclose(pb.backward(y, np.ones(2))[x]._raw, 1.00001**20_000)


def test_a_wide_sum() -> None:
    x = pb.tensor(1.0, dtype=pb.float64, requires_grad=True)
    total = x * 0.0
    for _ in range(20_000):
        total = total + x
    assert pb.backward(total)[x].item() == 20_000.0
