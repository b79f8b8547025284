"""Where threads wait for each other."""

from __future__ import annotations

from pullback.targets.kernels import Buffer
from pullback.targets.llvm.runtime.sharing import shared

from .kernels import Affine, Builder, Columns, Reversed, Total

SHARED = 1e6


def barriers(builder: Builder, threads: int = 2) -> list[bool]:
    (calls,), _ = shared([builder.schedule.calls], threads, builder.schedule.arena_bytes)
    return [one.barrier for one in calls]


def test_a_call_waits_for_what_it_reads():
    builder = Builder()
    x, a, b = builder.input(64), builder.temporary(64), builder.temporary(64)
    builder.call(Reversed(64, SHARED), [x], [a])
    builder.call(Reversed(64, SHARED), [a], [b])
    assert barriers(builder) == [False, True]


def test_a_call_waits_before_it_overwrites_what_others_read_or_write():
    builder = Builder()
    x, a, b = builder.temporary(64), builder.temporary(64), builder.temporary(64)
    builder.call(Reversed(64, SHARED), [x], [a])
    builder.call(Reversed(64, SHARED), [b], [x])  # over what was read
    builder.call(Affine(64, 1.0, 0.0, SHARED), [b], [x])  # over what was written
    assert barriers(builder) == [False, True, True]


def test_independent_calls_do_not_wait():
    builder = Builder()
    x = builder.input(64)
    places = [builder.temporary(64) for _ in range(3)]
    for place in places:
        builder.call(Reversed(64, SHARED), [x], [place])
    assert barriers(builder) == [False, False, False]


def test_temporaries_that_overlap_in_the_arena_are_the_same_memory():
    builder = Builder()
    x, a = builder.input(64), builder.temporary(64)
    b = Buffer("temporary", -1, 64 * 8)
    b.offset = a.offset + a.nbytes - 8
    builder.call(Reversed(64, SHARED), [x], [a])
    builder.call(Reversed(64, SHARED), [x], [b])
    assert barriers(builder) == [False, True]
    b.offset += 8
    assert barriers(builder) == [False, False]


def test_inputs_may_be_the_same_array_but_outputs_are_new():
    builder = Builder()
    x, y, out, other = builder.input(64), builder.input(64), builder.output(64), builder.output(64)
    builder.call(Reversed(64, SHARED), [x], [out])
    builder.call(Affine(64, 1.0, 0.0, SHARED), [x], [other])
    builder.call(Affine(64, 1.0, 0.0, SHARED), [out], [y])
    assert barriers(builder) == [False, False, True]


def test_what_one_thread_does_in_order_needs_no_waiting():
    builder = Builder()
    x, a, b, c = (builder.temporary(64) for _ in range(4))
    builder.call(Reversed(64), [x], [a])
    builder.call(Reversed(64), [a], [b])
    builder.call(Reversed(64, SHARED), [b], [c])  # others need what thread 0 did
    builder.call(Reversed(64), [c], [a])
    builder.call(Reversed(64), [a], [b])
    assert barriers(builder) == [False, False, True, True, False]


def test_a_conflict_with_a_call_that_is_not_the_last_one_counts():
    builder = Builder()
    x, a, b, c = (builder.temporary(64) for _ in range(4))
    builder.call(Reversed(64, SHARED), [x], [a])
    builder.call(Reversed(64), [x], [b])
    builder.call(Reversed(64), [a], [c])
    assert barriers(builder) == [False, False, True]


def test_partial_results_are_combined_before_their_memory_is_used_again():
    builder = Builder()
    x, a, b = builder.input(64), builder.output(1), builder.output(1)
    builder.call(Total(64, SHARED), [x], [a])
    builder.call(Total(64, SHARED), [x], [b])
    assert barriers(builder) == [False, True, True, True]


def test_partial_results_that_cost_more_than_they_save_are_not_made():
    builder = Builder()
    x, out = builder.input(2), builder.output(1)
    builder.call(Columns(2, 1_000_000, 20_000.0), [x], [out])
    (calls,), needed = shared([builder.schedule.calls], 2, 0)
    assert [one.parts for one in calls] == [1]
    assert needed == 0
