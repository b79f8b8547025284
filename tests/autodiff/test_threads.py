"""Graphs in parallel threads, and what may be shared between them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as pb

THREADS = 8


def together(function, count: int = THREADS) -> list:
    """The results of `function(i)` in threads that start at the same moment."""
    barrier = threading.Barrier(count)

    def run(i: int):
        barrier.wait()
        return function(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_independent_graphs_in_parallel() -> None:
    def train(seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        x = pb.asarray(generator.standard_normal((5, 3)))
        w = pb.tensor(generator.standard_normal((3, 2)), requires_grad=True)
        for _ in range(30):
            loss = pb.sum(pb.tanh(pb.matmul(x, w)))
            gradient = pb.backward(loss)[w]
            w = pb.tensor(w._raw - 0.1 * gradient._raw, requires_grad=True)
        return np.array(w._raw)

    expected = [train(seed) for seed in range(THREADS)]
    for found, alone in zip(together(train), expected):
        assert np.array_equal(found, alone)


def test_one_tensor_read_from_many_threads() -> None:
    w = pb.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)

    def gradient(i: int) -> np.ndarray:
        results = [pb.backward(pb.sum(w * w * float(i)))[w]._raw for _ in range(50)]
        assert all(np.array_equal(result, results[0]) for result in results)
        return results[0]

    for i, found in enumerate(together(gradient)):
        assert np.array_equal(found, 2.0 * i * w._raw)
    assert w.grad is None


def test_one_graph_walked_from_many_threads() -> None:
    w = pb.tensor(np.arange(1.0, 5.0), requires_grad=True)
    loss = pb.sum(pb.exp(w) * w)
    expected = pb.backward(loss, retain_graph=True)[w]._raw
    for found in together(lambda i: pb.backward(loss, retain_graph=True)[w]._raw):
        assert np.array_equal(found, expected)


def test_threads_add_into_one_gradient() -> None:
    w = pb.tensor(np.zeros(100), requires_grad=True)

    def accumulate(i: int) -> None:
        for _ in range(100):
            pb.sum(w * float(i)).backward()

    together(accumulate)
    assert np.array_equal(w.grad._raw, np.full(100, 100.0 * sum(range(THREADS))))


def test_gradients_move_between_threads() -> None:
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    (grads,) = together(lambda i: pb.backward(pb.sum(w * w)), 1)
    assert grads[w]._raw.tolist() == [2.0, 4.0]

    def scale(i: int):
        gradient = grads.pop(w)
        grads[w] = gradient * 2.0
        return grads

    (moved,) = together(scale, 1)
    assert moved[w]._raw.tolist() == [4.0, 8.0]


def test_a_graph_built_in_one_thread_is_walked_in_another() -> None:
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    (loss,) = together(lambda i: pb.sum(w * w * w), 1)
    assert pb.backward(loss)[w]._raw.tolist() == [3.0, 12.0]


def test_the_consumed_graph_of_another_thread_is_refused() -> None:
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    shared = w * w
    together(lambda i: pb.backward(pb.sum(shared)), 1)
    with pytest.raises(pb.GraphConsumedError, match="retain_graph"):
        pb.backward(pb.sum(shared * 2.0))


def test_no_grad_holds_in_its_own_thread_only() -> None:
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with pb.no_grad():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert inside.wait(10)
        assert (w * w).requires_grad
    finally:
        leave.set()
        thread.join()


def test_sequence_numbers_stay_in_order_across_threads() -> None:
    """A node made in another thread from an older one still comes after it in every walk."""
    w = pb.tensor(np.array([1.0, 2.0]), requires_grad=True)
    y = w
    for _ in range(20):
        (y,) = together(lambda i, y=y: y * 1.1 + y * 0.1, 1)
    np.testing.assert_allclose(pb.backward(pb.sum(y))[w]._raw, 1.2**20)
