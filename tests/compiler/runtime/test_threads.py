"""The pool: many Python threads, fork, the end of the process, memory over many runs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pullback.errors import ConfigurationError
from pullback.targets.llvm.runtime import dispatch as runtime, natives, threads as pool
from pullback.targets.llvm.runtime.executable import build

from .kernels import Affine, Builder, Total, chain, chain_expected, run

SHARED = 1e6
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def check(executable, length: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=257)
    total, out = np.full(1, np.nan), np.full(257, np.nan)
    run(executable, [x], [total, out])
    expected = chain_expected(x, length)
    assert np.array_equal(out, expected)
    assert np.allclose(total, expected.sum(), rtol=1e-12)


def in_python_threads(functions, times: int) -> None:
    """Call the functions `times` times, each in a thread of its own, and raise what any raises."""
    errors = []

    def repeat(function, number):
        try:
            for i in range(times):
                function(1000 * number + i)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=repeat, args=(f, i), daemon=True) for i, f in enumerate(functions)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
        assert not thread.is_alive(), "a run hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_one_executable_in_several_python_threads(threads):
    executable = build(chain(257, 5, SHARED), threads)
    in_python_threads([lambda seed: check(executable, 5, seed)] * 4, 50)


def test_different_executables_in_several_python_threads():
    lengths = (1, 2, 5, 9)
    executables = [build(chain(257, length, SHARED), threads) for length, threads in zip(lengths, (2, 3, 2, 4))]
    checks = [lambda seed, e=e, length=length: check(e, length, seed) for e, length in zip(executables, lengths)]
    in_python_threads(checks, 50)


def test_a_run_that_finds_the_pool_busy_does_all_alone_with_the_same_result():
    executable = build(chain(257, 4, SHARED), 2)
    x = np.random.default_rng(3).normal(size=257)
    results = []
    for busy in (0, 1):
        total, out = np.zeros(1), np.zeros(257)
        pool._pool.word(runtime.BUSY).value = busy
        run(executable, [x], [total, out])
        results.append((total, out))
    assert pool._pool.word(runtime.BUSY).value == 1  # it was not taken, nor given back
    pool._pool.word(runtime.BUSY).value = 0
    assert results[0][0] == results[1][0]  # to the last bit, as the parts are the same
    assert np.array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("missing", [1, 2, 5])
def test_a_run_does_not_wait_for_workers_that_do_not_come(missing, monkeypatch):
    alone = build(chain(257, 4, SHARED), 1)
    build(chain(257, 1, SHARED), 2)  # there is a worker
    workers = pool._pool.word(runtime.WORKERS)
    before = workers.value
    monkeypatch.setattr(pool, "start", lambda threads: None)
    executable = build(chain(257, 4, SHARED), before + 1 + missing)
    x = np.random.default_rng(4).normal(size=257)
    results = []
    for one, said in ((alone, before), (executable, before + missing), (executable, before + missing)):
        total, out = np.zeros(1), np.zeros(257)
        workers.value = said  # more than there are
        assert one.run_native(np.array([a.ctypes.data for a in (x, total, out)]).ctypes.data) == runtime.DONE
        results.append((total, out))
    workers.value = before
    assert pool._pool.word(runtime.BUSY).value == 0
    for total, out in results[1:]:
        assert total == results[0][0]
        assert np.array_equal(out, results[0][1])


def test_workers_that_sleep_are_woken():
    executable = build(chain(257, 2, SHARED), 2)
    for seed in range(5):
        check(executable, 2, seed)
        deadline = time.monotonic() + 10
        while pool._pool.word(runtime.SLEEPERS).value != pool.workers():
            assert time.monotonic() < deadline, "a worker does not go to sleep"
            time.sleep(0.001)
    assert pool._pool.word(runtime.BUSY).value == 0


def test_parts_run_on_threads_of_the_pool():
    builder = Builder()
    x, out = builder.input(4), builder.output(1)
    builder.call(Total(4, SHARED), [x], [out])
    build(builder.schedule, 3)
    assert pool.workers() >= 2
    assert {f"pullback-{number}" for number in (1, 2)} <= {thread.name for thread in threading.enumerate()}


def test_too_few_workers_are_told_and_started(monkeypatch):
    executable = build(chain(257, 2, SHARED), 2)
    workers = pool._pool.word(runtime.WORKERS)
    before, workers.value = workers.value, 0
    x, total, out = np.zeros(257), np.zeros(1), np.zeros(257)
    bases = np.array([x.ctypes.data, total.ctypes.data, out.ctypes.data])
    assert executable.run_native(bases.ctypes.data) == runtime.TOO_FEW_WORKERS
    assert np.array_equal(out, chain_expected(x, 2))
    workers.value = before
    assert executable.run_native(bases.ctypes.data) == runtime.DONE
    started = []
    monkeypatch.setattr(pool, "start", started.append)
    workers.value = 0
    run(executable, [x], [total, out])
    workers.value = before
    assert started == [2]


def test_a_small_run_keeps_pythons_lock_and_a_long_one_does_not():
    small, long = Builder(), Builder()
    for builder, cost in ((small, 100.0), (long, 21_000.0)):
        x, out = builder.input(4), builder.output(4)
        builder.call(Affine(4, 1.0, 0.0, cost), [x], [out])
    assert build(small.schedule, 1)._run_span is runtime.run_function(False)
    assert build(long.schedule, 1)._run_span is runtime.run_function(True)
    # Two threads always let it go: a worker that is starting needs it.
    shared = Builder()
    shared.call(Affine(4, 1.0, 0.0, 16_000.0), [shared.input(4)], [shared.output(4)])
    executable = build(shared.schedule, 2)
    assert executable.threads == 2
    assert executable._run_span is runtime.run_function(True)


@pytest.mark.parametrize("others", [0, 1])
def test_blas_has_one_thread_during_a_run_unless_another_run_sees_to_it(monkeypatch, others):
    asked = []
    setter = ctypes.CFUNCTYPE(None, ctypes.c_int32)(asked.append)
    getter = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 7)
    addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value for function in (setter, getter))
    monkeypatch.setattr(pool, "blas_functions", lambda: addresses)
    executable = build(chain(257, 1, SHARED), 2)
    users = pool._cell("pullback_blas")
    users.value = others
    check(executable, 1, 0)
    assert asked == ([] if others else [1, 7])
    assert users.value == others
    users.value = 0


@pytest.mark.parametrize(("asked", "expected"), [("3", 3), ("1", 1), ("100000", pool.LIMIT)])
def test_the_environment_says_how_many_threads(monkeypatch, asked, expected):
    monkeypatch.setenv("PULLBACK_NUM_THREADS", asked)
    assert pool.default_threads() == expected


@pytest.mark.parametrize("asked", ["0", "-1", "many", "1.5"])
def test_the_environment_is_checked(monkeypatch, asked):
    monkeypatch.setenv("PULLBACK_NUM_THREADS", asked)
    with pytest.raises(ConfigurationError, match="PULLBACK_NUM_THREADS"):
        pool.default_threads()


def test_by_default_there_are_as_many_threads_as_processors(monkeypatch):
    monkeypatch.delenv("PULLBACK_NUM_THREADS", raising=False)
    monkeypatch.setattr(pool, "_granted", lambda: 99)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 5, 7}, raising=False)
    assert pool.default_threads() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(99)))
    assert pool.default_threads() == pool.USUAL_LIMIT


@pytest.mark.parametrize(
    ("content", "expected"),
    [("200000 100000\n", 2), ("150000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", 16), ("", 16)],
)
def test_a_container_may_grant_less(tmp_path, content, expected):
    file = tmp_path / "cpu.max"
    file.write_text(content)
    assert pool._granted(str(file)) == expected
    assert pool._granted(str(tmp_path / "none")) == pool.USUAL_LIMIT


# -- processes -----------------------------------------------------------------------------------


def child(function) -> int:
    """What a child made by fork returns; fails if it does not end."""
    number = os.fork()
    if number == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(number, 9)
    os.waitpid(number, 0)
    raise AssertionError("the child hangs")


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_run_programs_with_workers_of_their_own():
    executable = build(chain(257, 3, SHARED), 2)
    check(executable, 3, 0)

    def work():
        assert pool.workers() == 0
        for seed in range(20):
            check(executable, 3, seed)
        assert pool.workers() == 1
        check(build(chain(257, 2, SHARED), 3), 2, 0)
        assert child(lambda: check(executable, 3, 1)) == 0  # and theirs

    assert child(work) == 0
    check(executable, 3, 2)  # the parent's are as they were


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_while_the_pool_grows_and_blas_is_set(monkeypatch):
    executable = build(chain(257, 3, SHARED), 2)
    cells = [pool._cell("pullback_blas", i) for i in range(3)]
    asked = []
    setter = ctypes.CFUNCTYPE(None, ctypes.c_int32)(asked.append)
    monkeypatch.setattr(pool, "blas_functions", lambda: (ctypes.cast(setter, ctypes.c_void_p).value, 0))

    def work():
        assert asked == [5]
        assert [cells[0].value, cells[2].value] == [0, 0]
        check(executable, 3, 0)
        assert pool.workers() == 1

    with pool._lock:
        for cell, value in zip(cells, (1, 5, 1)):  # one run, five threads before, locked
            cell.value = value
        try:
            assert child(work) == 0
        finally:
            cells[0].value = cells[2].value = 0
    assert asked == []


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_in_the_middle_of_a_run_of_another_thread():
    executable = build(chain(257, 40, SHARED), 2)
    check(executable, 40, 7)  # NumPy imports parts of itself when they are first used: not while we fork
    stop = threading.Event()

    def keep_running():
        while not stop.is_set():
            check(executable, 40, 7)

    thread = threading.Thread(target=keep_running, daemon=True)
    thread.start()
    try:
        for seed in range(20):
            assert child(lambda seed=seed: check(executable, 40, seed)) == 0
    finally:
        stop.set()
        thread.join(30)


@posix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_while_another_thread_compiles():
    begun = threading.Event()

    def compiling():
        with natives.lock:
            begun.set()
            time.sleep(0.2)

    thread = threading.Thread(target=compiling)
    thread.start()
    begun.wait()
    assert child(lambda: check(build(chain(257, 3, SHARED + 1), 2), 3, 0)) == 0
    thread.join()


SCRIPT = """
import sys, threading, time
sys.path.insert(0, {folder!r})
import numpy as np
from tests.compiler.runtime.kernels import chain, chain_expected, run
from pullback.targets.llvm.runtime.executable import build
executable = build(chain(257, 3, 1e6), 2)
x, total, out = np.ones(257), np.zeros(1), np.zeros(257)
run(executable, [x], [total, out])
assert np.array_equal(out, chain_expected(x, 3))
{then}
print("end", flush=True)
"""


@pytest.mark.parametrize(
    "then",
    [
        "",
        "time.sleep(0.05)",  # the worker sleeps
        "forever = lambda: [run(executable, [x], [total, out]) for _ in range(10**9)]\n"
        "threading.Thread(target=forever, daemon=True).start()",
        "sys.exit(0) if print('end', flush=True) is None else 0",
    ],
)
def test_a_process_with_workers_ends(then):
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    script = SCRIPT.format(folder=root, then=then)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "end\n"
    assert done.stderr == ""
    assert done.returncode == 0


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc")
@pytest.mark.parametrize("shared", [False, True])
def test_memory_is_flat_over_many_runs(shared):
    executable = build(chain(16, 1, SHARED if shared else 1.0), 2)
    x, total, out = np.ones(16), np.zeros(1), np.zeros(16)
    inputs, outputs = [x.ctypes.data], [total.ctypes.data, out.ctypes.data]
    for _ in range(1000):
        executable.run(inputs, outputs)
    before = resident()
    for _ in range(10_000 if shared else 100_000):
        executable.run(inputs, outputs)
    assert resident() - before < 256 * 1024
