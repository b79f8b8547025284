"""Memory: places are shared by what lives at different times, and taken over where a loop can."""

from __future__ import annotations

from typing import Any

import numpy as np

from .building import Building
from .checking import checked, kinds

RNG = np.random.default_rng(11)


def _normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype("float32")


def test_a_chain_of_products_needs_two_places() -> None:
    b = Building()
    x, w = b.input(_normal(16, 16)), b.input(_normal(16, 16) / 4)
    for _ in range(10):
        x = b.matmul(x, w)
    schedule = checked(b.program([x]), b.given())
    assert kinds(schedule) == "P" * 10 and schedule.arena_bytes == 2 * 16 * 16 * 4


def test_a_loop_writes_over_what_it_reads_last() -> None:
    b = Building()
    x, w = b.input(_normal(16, 16)), b.input(_normal(16, 16) / 4)
    for _ in range(5):
        x = b.tanh(b.matmul(x, w))
    schedule = checked(b.program([x]), b.given())
    assert kinds(schedule) == "PL" * 5 and schedule.arena_bytes == 2 * 16 * 16 * 4


def test_what_is_read_again_is_not_written_over() -> None:
    b = Building()
    x, w = b.input(_normal(8, 8)), b.input(_normal(8, 8))
    y = b.matmul(x, w)
    z = b.matmul(b.tanh(y), w)
    schedule = checked(b.program([b.matmul(b.add(z, 1.0), y)]), b.given())
    assert schedule.arena_bytes >= 3 * 256


def test_transposed_reads_are_not_written_over() -> None:
    b = Building()
    x, w = b.input(_normal(8, 8)), b.input(_normal(8, 8))
    y = b.matmul(x, w)
    out = b.matmul(b.add(b.matrix_transpose(y), y), w)
    checked(b.program([out]), b.given())


def test_a_deep_network_keeps_only_what_its_gradient_needs() -> None:
    b = Building()
    n, depth = 32, 8
    x = b.input(_normal(n, n))
    weights = [b.input(_normal(n, n) / 6) for _ in range(depth)]
    hidden = [x]
    for w in weights:
        hidden.append(b.tanh(b.matmul(hidden[-1], w)))
    g = b.subtract(hidden[-1], 1.0)
    updates = []
    for w, before, after in reversed(list(zip(weights, hidden, hidden[1:]))):
        g = b.multiply(g, b.subtract(1.0, b.square(after)))
        updates.append((w, b.subtract(w, b.multiply(b.matmul(b.matrix_transpose(before), g), 0.1))))
        g = b.matmul(g, b.matrix_transpose(w))
    schedule = checked(b.program([], updates), b.given())
    # what is kept of each layer, and a few more
    assert schedule.arena_bytes <= (depth + 4) * n * n * 4


def test_places_are_aligned_and_inside_the_arena() -> None:
    b = Building()
    x = b.input(_normal(5, 3))
    y = b.matmul(x, b.matrix_transpose(x))
    schedule = checked(b.program([b.matmul(y, x), b.sort(b.matmul(y, y), (-1,), False, True)]), b.given())
    for call in schedule.calls:
        for location in (*call.reads, *call.writes):
            if location.buffer.kind == "temporary":
                assert location.buffer.offset % 64 == 0
                assert location.buffer.offset + location.buffer.nbytes <= schedule.arena_bytes


def test_what_nobody_wants_is_not_computed() -> None:
    b = Building()
    x = b.input(_normal(4, 4))
    b.matmul(x, b.exp(x))
    assert kinds(checked(b.program([b.add(x, 1.0)]), b.given())) == "L"


def test_a_place_that_is_too_large_is_divided() -> None:
    b = Building()
    x, w = b.input(_normal(32, 32)), b.input(_normal(32, 16))
    first = b.matmul(b.matmul(x, x), w)
    second = b.matmul(x, first)
    third = b.matmul(x, second)  # both lie where the product of x with itself was
    schedule = checked(b.program([b.add(b.add(first, second), third)]), b.given())
    assert schedule.arena_bytes == 32 * 32 * 4 + 32 * 16 * 4
