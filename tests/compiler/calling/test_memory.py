"""Calls take no memory but their outputs', and everything goes when the compiled function does."""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="counts the process's pages")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def training_step(width: int) -> tuple[Any, Any, Any]:
    pb.random.seed(0)
    model = pb.nn.Sequential(
        pb.nn.Linear(2, width), pb.nn.Tanh(), pb.nn.Linear(width, width), pb.nn.Tanh(), pb.nn.Linear(width, 1)
    )
    optimizer = pb.optim.AdamW(model.parameters(), lr=1e-3)

    @pb.compile
    def step(x: Any, y: Any) -> Any:
        loss = pb.mse_loss(model(x), y)
        optimizer.step(pb.backward(loss))
        return loss

    return model, optimizer, step


def batch(size: int) -> tuple[Any, Any]:
    return pb.tensor(np.ones((size, 2), np.float32)), pb.tensor(np.ones((size, 1), np.float32))


def test_memory_is_flat_over_many_small_calls() -> None:
    _, _, step = training_step(16)
    x, y = batch(1)
    for _ in range(2000):
        step(x, y)
    assert step._latest().fast_path is not None and step._latest().built.executable.keeps_lock
    before = resident()
    for _ in range(100_000):
        step(x, y)
    assert resident() - before < 512 * 1024


@pytest.mark.parametrize("threads", ["2", "1"])
def test_memory_is_flat_over_calls_that_let_other_threads_run(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("PULLBACK_NUM_THREADS", threads)
    _, _, step = training_step(160)
    x, y = batch(32)
    for _ in range(300):
        step(x, y)
    executable = step._latest().built.executable
    assert executable.threads == int(threads) and not executable.keeps_lock
    before = resident()
    for _ in range(5000):
        step(x, y)
    assert resident() - before < 512 * 1024


def test_memory_is_flat_over_calls_of_the_long_way() -> None:
    w = pb.tensor(np.ones(64, np.float32), requires_grad=True)
    f = pb.compile(lambda tree: {"total": (w * tree["x"]).sum()})
    x = pb.ones(64)
    for _ in range(200):
        f({"x": x})["total"].backward()
    assert f._latest().fast_path is None and f._latest().vjp is not None
    before = resident()
    for _ in range(3000):
        f({"x": x})["total"].backward()
    assert resident() - before < 512 * 1024


@pytest.mark.parametrize("width", [16, 512])
def test_a_call_allocates_its_outputs_and_nothing_else(width: int) -> None:
    _, _, step = training_step(width)
    x, y = batch(4)
    for _ in range(50):
        step(x, y)
    step._latest().schedule.stop()  # an audit in between would be counted
    kept: list[Any] = [None] * 200
    tracemalloc.start()
    try:
        for i in range(100):  # what Python keeps for reuse (frames, free lists) is there then
            kept[i] = step(x, y)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(100):
            step(x, y)
        after, peak = tracemalloc.get_traced_memory()
        assert after - before < 256  # nothing stays
        assert peak - before < 2048  # a loss, its tensor and a few lists for the time of a call
        for i in range(100, 200):
            kept[i] = step(x, y)
        assert tracemalloc.get_traced_memory()[0] - after < 100 * 300  # a tensor, its array and four bytes each
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("width", [8, 300])
def test_all_is_freed_when_the_function_dies(width: int) -> None:
    model, optimizer, step = training_step(width)
    x, y = batch(4)
    step(x, y)
    made = step._latest()
    executable = made.built.executable
    library = executable._spans[0].calls[0].native.library
    things = [step, made, executable, model, next(iter(model.parameters())), library]
    references = [weakref.ref(thing) for thing in things]
    arena = weakref.ref(executable._arena.base)
    gc.collect()
    gc.disable()
    try:  # without the collector: an arena is large, and the collector does not know how large
        del model, optimizer, step, made, executable, library, things
        assert [reference() for reference in references] == [None] * len(references)
        assert arena() is None
    finally:
        gc.enable()


def test_arguments_and_results_are_not_kept() -> None:
    f = pb.compile(lambda x: pb.tanh(x) * 2)
    for _ in range(3):
        x = pb.ones(1000)
        y = f(x)
        references = [weakref.ref(thing) for thing in (x, x._raw, y, y._raw)]
        del x, y
        assert [reference() for reference in references] == [None] * 4


def test_tensors_made_while_tracing_are_not_kept() -> None:
    seen: list[Any] = []

    @pb.compile(ignore=["seen"])
    def f(x: Any) -> Any:
        inner = pb.sin(x) + 1
        seen.append(weakref.ref(inner))
        return inner * 2

    f(pb.ones(3))
    assert seen[0]() is None


def test_many_programs_take_memory_for_themselves_and_give_it_back() -> None:
    f = pb.compile(lambda x: pb.tanh(x @ x).sum())
    programs = []
    for n in range(2, 10):
        f(pb.ones((n, n)))
        programs.append(weakref.ref(f._latest().built.executable))
    assert f.traces == 8 and all(program() is not None for program in programs)
    assert float(f(pb.zeros((5, 5)))) == 0.0 and f.traces == 8
    del f
    assert [program() for program in programs] == [None] * 8
