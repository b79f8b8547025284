"""Running schedules: memory of all kinds, patching, partial results, host calls, scratch memory."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import numpy as np
import pytest

from pullback.compiler.calling.inventory import inventory
from pullback.compiler.host import HOST
from pullback.targets.kernels import Buffer, Hole, Host, Schedule
from pullback.targets.llvm.runtime import executable as executables
from pullback.targets.llvm.runtime.sharing import MOST_PARTIALS

from .kernels import (
    Affine,
    Builder,
    Columns,
    Moments,
    Parts,
    Reversed,
    ScratchPlaces,
    Total,
    Twice,
    chain,
    chain_expected,
    run,
)

build = partial(executables.build, host=HOST)

THREADS = (1, 2, 4)
SHARED = 1e6  # nanoseconds: worth any number of threads


def host(op, args, reads, writes):
    return Host(op, args, tuple(reads), tuple(writes))


def dense(*shape, dtype="float64"):
    strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    return dtype, shape, tuple(strides)


@pytest.mark.parametrize("threads", THREADS)
def test_a_chain_gives_the_same_on_any_number_of_threads(threads):
    x = np.random.default_rng(0).normal(size=1001)
    executable = build(chain(1001, 8, SHARED), threads)
    assert executable.threads == threads
    for shift in range(3):
        total, out = np.full(1, np.nan), np.full(1001, np.nan)
        run(executable, [x + shift], [total, out])
        expected = chain_expected(x + shift, 8)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_allclose(total, expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("threads", THREADS)
def test_inputs_and_outputs_are_wherever_a_run_says_and_offsets_count(threads):
    builder = Builder()
    x, y, out, other = builder.input(10), builder.input(4), builder.output(10), builder.output(4)
    builder.call(Affine(4, 2.0, 0.0), [(x, 3 * 8)], [(out, 5 * 8)])
    builder.call(Affine(4, 1.0, 5.0), [y], [other])
    executable = build(builder.schedule, threads)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x_now, y_now, out_now, other_now = rng.normal(size=10), rng.normal(size=4), np.zeros(10), np.zeros(4)
        run(executable, [x_now, y_now], [out_now, other_now])
        np.testing.assert_array_equal(out_now, [0, 0, 0, 0, 0, *(x_now[3:7] * 2), 0])
        np.testing.assert_array_equal(other_now, y_now + 5)


def test_constants_are_kept_alive_and_made_dense():
    builder = Builder()
    array = np.arange(8.0)[::-2]
    constant, out = builder.constant(array), builder.output(4)
    builder.call(Affine(4, 1.0, 1.0), [constant], [out])
    executable = build(builder.schedule)
    expected, result = array + 1, np.zeros(4)
    del array, constant
    builder.schedule.constants.clear()
    gc.collect()
    run(executable, [], [result])
    np.testing.assert_array_equal(result, expected)


def test_an_input_may_be_written_in_place():
    builder = Builder()
    x = builder.input(5)
    builder.call(Affine(5, 3.0, 0.0), [x], [x])
    executable = build(builder.schedule)
    array = np.arange(5.0)
    run(executable, [array], [])
    run(executable, [array], [])
    np.testing.assert_array_equal(array, np.arange(5.0) * 9)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64])
def test_partial_results_are_combined(threads, rows):
    x = np.random.default_rng(rows).normal(size=(rows, 5))
    builder = Builder()
    given, out, total, copy = builder.input(x.size), builder.output(5), builder.output(1), builder.temporary(x.size)
    builder.call(Affine(x.size, 2.0, 0.0, SHARED), [given], [copy])
    builder.call(Columns(rows, 5, SHARED), [copy], [out])
    builder.call(Total(x.size, SHARED), [copy], [total])
    executable = build(builder.schedule, threads)
    for _ in range(2):
        sums, whole = np.full(5, np.nan), np.full(1, np.nan)
        run(executable, [x], [sums, whole])
        np.testing.assert_allclose(sums, 2 * x.sum(0), rtol=1e-12)
        np.testing.assert_allclose(whole, 2 * x.sum(), rtol=1e-12)


@pytest.mark.parametrize("threads", THREADS)
def test_a_call_with_two_partial_results(threads):
    x = np.random.default_rng(2).normal(size=100)
    builder = Builder()
    given, total, squares = builder.input(100), builder.output(1), builder.output(1)
    builder.call(Moments(100, SHARED), [given], [total, squares])
    results = [np.zeros(1), np.zeros(1)]
    run(build(builder.schedule, threads), [x], results)
    np.testing.assert_allclose(np.concatenate(results), [x.sum(), (x * x).sum()], rtol=1e-12)


def test_parts_of_temporaries_and_constants():
    builder = Builder()
    constant, temporary, out = builder.constant(np.arange(6.0)), builder.temporary(6), builder.output(6)
    builder.call(Affine(6, 0.0, -1.0), [constant], [temporary])
    builder.call(Affine(2, 1.0, 0.0), [(constant, 3 * 8)], [(temporary, 2 * 8)])
    builder.call(Affine(6, 1.0, 0.0), [temporary], [out])
    result = np.zeros(6)
    run(build(builder.schedule), [], [result])
    np.testing.assert_array_equal(result, [-1, -1, 3, 4, -1, -1])


@pytest.mark.parametrize("threads", THREADS)
def test_scratch_memory_is_a_threads_own(threads):
    x = np.random.default_rng(1).normal(size=4096)
    builder = Builder()
    given, out = builder.input(4096), builder.output(4096)
    builder.call(Twice(4096, SHARED), [given], [out])
    executable = build(builder.schedule, threads)
    result = np.zeros(4096)
    run(executable, [x], [result])
    np.testing.assert_array_equal(result, 2 * x)
    assert executable.arena_bytes >= threads * 4096 * 8


@pytest.mark.parametrize("threads", THREADS)
def test_scratch_memory_is_aligned_and_does_not_overlap(threads):
    builder = Builder()
    out = builder.output(4)
    builder.call(ScratchPlaces(4, 100, SHARED), [], [out])
    places = np.zeros(4, np.int64)
    run(build(builder.schedule, threads), [], [places])
    distinct = np.unique(places)
    assert 1 <= len(distinct) <= threads  # workers that do not come in time are not waited for
    assert np.all(np.diff(distinct) >= 100)
    assert np.all(distinct % 64 == 0)


@pytest.mark.parametrize("threads", THREADS)
def test_parts_are_cut_at_grains_and_all_units_are_done(threads):
    builder = Builder()
    out = builder.output(103)
    builder.call(Parts(103, SHARED, 10), [], [out])
    result = np.full(103, -1.0)
    run(build(builder.schedule, threads), [], [result])
    assert set(result) == set(range(threads))
    assert all(np.flatnonzero(np.diff(result)) % 10 == 9)
    assert np.all(np.diff(result) >= 0)


def test_what_is_not_worth_sharing_is_not_shared():
    builder = Builder()
    out = builder.output(100)
    builder.call(Parts(100, 15_000.0), [], [out])
    executable = build(builder.schedule, 4)
    assert executable.threads == 1
    builder.call(Parts(100, 24_001.0), [], [out])
    assert build(builder.schedule, 4).threads == 3


def test_a_kernel_with_nothing_to_do():
    builder = Builder()
    x, out = builder.input(0), builder.output(0)
    builder.call(Affine(0, 2.0, 0.0, SHARED), [x], [out])
    executable = build(builder.schedule, 4)
    run(executable, [np.zeros(0)], [np.zeros(0)])
    assert executable.threads == 1


def test_a_schedule_without_calls():
    executable = build(Schedule([], [], [], []))
    executable.run([], [])
    assert executable.run_native(0) == 0


def test_numbers_that_are_equal_but_not_the_same_have_functions_of_their_own():
    results = []
    for shift in (0.0, -0.0):
        builder = Builder()
        x, out = builder.input(1), builder.output(1)
        builder.call(Affine(1, 1.0, shift), [x], [out])
        result = np.ones(1)
        run(build(builder.schedule), [np.array([-0.0])], [result])
        results.append(bool(np.signbit(result[0])))
    assert results == [False, True]


def test_a_temporary_without_a_place_is_refused():
    builder = Builder()
    x = builder.input(1)
    builder.call(Affine(1, 1.0, 0.0), [x], [Buffer("temporary", -1, 8)])
    with pytest.raises(ValueError, match="not planned"):
        build(builder.schedule)


def test_the_number_of_threads_is_checked():
    with pytest.raises(ValueError, match="not 0"):
        build(Schedule([], [], [], []), 0)


def test_memory_is_given_back_with_the_executable():
    executable = build(chain(16, 1, 1.0))
    library = weakref.ref(executable._spans[0].calls[0].native)
    reference = weakref.ref(executable)
    del executable
    gc.collect()
    assert reference() is None
    assert library() is None


def test_measuring_says_how_long_each_call_takes_and_computes_the_same():
    schedule = chain(100, 2, SHARED)
    executable = build(schedule, 2)
    x, total, out = np.random.default_rng(5).normal(size=100), np.zeros(1), np.zeros(100)
    measured = executable.measure([x.ctypes.data], [total.ctypes.data, out.ctypes.data])
    np.testing.assert_array_equal(out, chain_expected(x, 2))
    assert len(measured) == len(schedule.calls) + 1  # one combines the parts of the total
    assert all(parts in (1, 2, MOST_PARTIALS) and nanoseconds > 0 for _, parts, nanoseconds in measured)


# -- host calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
def test_host_calls_between_native_ones(threads):
    n = 100
    builder = Builder()
    x, out = builder.input(n), builder.output(n)
    a, b, c = builder.temporary(n), builder.temporary(n), builder.temporary(n)
    builder.call(Affine(n, 2.0, 0.0, SHARED), [x], [a])
    builder.call(host("sort", (Hole(0), (-1,), False, True), [dense(n)], [dense(n)]), [a], [b])
    builder.call(Reversed(n, SHARED), [b], [c])
    builder.call(Affine(n, 1.0, 1.0, SHARED), [c], [out])
    builder.call(host("flip", (Hole(0), (-1,)), [dense(n)], [dense(n)]), [out], [out])
    executable = build(builder.schedule, threads)
    for seed in range(3):
        given, result = np.random.default_rng(seed).normal(size=n), np.zeros(n)
        run(executable, [given], [result])
        np.testing.assert_array_equal(result, np.sort(given * 2) + 1)
    assert [(type(use.kernel).__name__, use.how, use.times) for use in inventory(builder.schedule.calls)] == [
        ("Affine", "native", 1),
        ("Host", "numpy", 1),
        ("Reversed", "native", 1),
        ("Affine", "native", 1),
        ("Host", "numpy", 1),
    ]


def test_host_calls_see_strides_and_offsets():
    builder = Builder()
    x, out = builder.input(6), builder.output(6)
    transposed = ("float64", (3, 2), (1, 3))
    backwards = ("float64", (3, 2), (-2, -1))
    builder.call(host("negative", (Hole(0),), [transposed], [backwards]), [x], [(out, 5 * 8)])
    given, result = np.arange(6.0), np.zeros(6)
    run(build(builder.schedule), [given], [result])
    np.testing.assert_array_equal(result, -given.reshape(2, 3).T.reshape(-1)[::-1])


def test_host_calls_with_arrays_in_tuples_and_several_results():
    builder = Builder()
    x, y, joined = builder.input(2), builder.input(3), builder.output(5)
    first, second = builder.output(1), builder.output(1)
    builder.call(host("concat", ((Hole(0), Hole(1)), -1), [dense(2), dense(3)], [dense(5)]), [x, y], [joined])
    builder.call(host("unstack", (Hole(0), -1), [dense(2)], [dense(), dense()]), [x], [first, second])
    results = [np.zeros(5), np.zeros(1), np.zeros(1)]
    run(build(builder.schedule), [np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])], results)
    assert [list(result) for result in results] == [[1, 2, 3, 4, 5], [1], [2]]


def test_host_calls_on_arrays_without_elements():
    builder = Builder()
    x, out = builder.input(0), builder.output(1)
    builder.call(host("sum", (Hole(0), None, False), [dense(0)], [dense()]), [x], [out])
    result = np.ones(1)
    run(build(builder.schedule), [np.zeros(0)], [result])
    assert result[0] == 0


def test_a_host_call_does_not_warn_about_numbers():
    builder = Builder()
    x, out = builder.input(1), builder.output(1)
    builder.call(host("log", (Hole(0),), [dense(1)], [dense(1)]), [x], [out])
    result = np.zeros(1)
    run(build(builder.schedule), [np.zeros(1)], [result])
    assert result[0] == -np.inf


@pytest.mark.parametrize("declared", [dense(3), dense(2, dtype="float32")])
def test_a_host_result_of_another_form_is_an_error(declared):
    builder = Builder()
    x, out = builder.input(2), builder.output(4)
    builder.call(host("exp", (Hole(0),), [dense(2)], [declared]), [x], [out], site="model.py:41")
    executable = build(builder.schedule)
    with pytest.raises(RuntimeError, match=r"exp \(model.py:41\) gave float64\[2\]"):
        run(executable, [np.zeros(2)], [np.zeros(4)])
    with pytest.raises(RuntimeError, match="exp"):  # and the executable is not locked for ever
        run(executable, [np.zeros(2)], [np.zeros(4)])


def test_a_host_call_with_another_number_of_results_is_an_error():
    builder = Builder()
    x, out = builder.input(2), builder.output(2)
    builder.call(host("unstack", (Hole(0), -1), [dense(2)], [dense()]), [x], [out])
    with pytest.raises(RuntimeError, match="gave 2 results; the program has 1"):
        run(build(builder.schedule), [np.zeros(2)], [np.zeros(2)])
