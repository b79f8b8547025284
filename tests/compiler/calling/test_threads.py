"""Several Python threads: calling compiled functions, tracing, and running eagerly on the same tensors."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.calling.arguments import Arguments
from pullback.compiler.calling.specialize import specialize

from ...backends.installed import needs_llvmlite
from .test_memory import batch, training_step


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], Any]) -> None:
    """Run in a thread each; the first error of any of them is raised here."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize(("width", "size", "calls"), [(16, 1, 1000), (160, 64, 150)], ids=["small", "large"])
def test_steps_of_several_threads_are_steps_one_after_the_other(width: int, size: int, calls: int) -> None:
    x, y = batch(size)
    expected, _, reference = training_step(width)
    for _ in range(4 * calls):
        reference(x, y)
    model, optimizer, step = training_step(width)
    step_in_a_loop = lambda: [step(x, y) for _ in range(calls)]
    together(*[step_in_a_loop] * 4)
    assert step.traces == 1
    assert {slot.step for group in optimizer._slots for slot in group} == {4 * calls}
    for ours, theirs in zip(model.parameters(), expected.parameters()):
        assert np.array_equal(ours._raw, theirs._raw)


def test_no_two_calls_get_the_same_random_numbers() -> None:
    f = pb.compile(lambda x: pb.dropout(x, 0.5))
    x = pb.ones(128)
    f(x)
    assert f._latest().fast_path is not None
    seen: list[bytes] = []

    def work() -> None:
        seen.extend([f(x)._raw.tobytes() for _ in range(3000)])

    together(*[work] * 4)
    assert len(set(seen)) == len(seen) == 12_000


def test_others_use_the_tensors_of_a_trace_and_do_not_wait() -> None:
    """While one thread is in the middle of a trace, reading, writing, walking and tracing go on elsewhere."""
    w = pb.tensor(np.arange(8, dtype=np.float32), requires_grad=True)
    count = pb.tensor([0.0])
    inside, go_on = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        with pb.no_grad():
            count[...] = count + loss
            w[0] = 100.0
        inside.set()
        assert go_on.wait(30)
        return (w * x).sum() + count.sum()

    def elsewhere() -> None:
        assert inside.wait(30)
        try:
            assert type(w._raw) is np.ndarray and w.grad is None and count.item() == 0.0
            for read in READS:
                assert np.array_equal(read(w), read(pb.tensor(np.arange(8, dtype=np.float32), requires_grad=True)))
            (w * w).sum().backward()
            assert w.grad is not None and w.grad.tolist() == (2 * np.arange(8)).tolist()
            w.grad = None
            with pb.no_grad():
                w[1] = 7.0
            trace = specialize("other", lambda x: (w * x).sum(), Arguments("other", (pb.ones(8),), {}))
            assert [entry.tensor for entry in trace.inputs[1:]] == [w]
        finally:
            go_on.set()

    f = pb.compile(function, ignore=["inside", "go_on"])
    together(lambda: f(pb.ones(8)), elsewhere)
    assert w.tolist() == [100.0, 7.0, *range(2, 8)]
    assert w.grad is not None and w.grad.tolist() == [1.0] * 8
    assert count.item() == 34.0


READS = [
    lambda w: (w * 2).sum().item(), lambda w: (w.detach() * 2).numpy(), lambda w: np.asarray(w.detach()),
    lambda w: w.clone().tolist(), lambda w: pb.add(pb.ones(8), w).detach().numpy(), lambda w: w.sum().item(),
    lambda w: (w.detach().reshape((8,)) + 1).numpy(), lambda w: w[2:].detach().numpy(), lambda w: float(w[3].detach()),
]  # fmt: skip


@needs_llvmlite
def test_threads_that_a_traced_function_wakes_find_the_tensors_as_they_are() -> None:
    w = pb.tensor([1.0, 2.0])
    found: list[Any] = []
    handed: queue.Queue[Any] = queue.Queue()
    done = threading.Event()

    def use() -> None:
        x = handed.get(timeout=30)
        found.append((w * 2).tolist())
        try:
            w * x
        except pb.TraceError as error:
            found.append(error)
        done.set()

    def function(x: Any) -> Any:
        y = w * x
        handed.put(y)
        assert done.wait(30)
        return y

    thread = threading.Thread(target=use)
    thread.start()
    assert pb.compile(function, ignore=["handed", "done"])(pb.ones(2)).tolist() == [1.0, 2.0]
    thread.join()
    assert found[0] == [2.0, 4.0] and "in the thread that calls it" in str(found[1])


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "in place": lambda w, optimizer: w.__imul__(3.0),
    "an element": lambda w, optimizer: w.__setitem__(0, 3.0),
    "an optimizer": lambda w, optimizer: optimizer.step([pb.ones(8)]),
}


@needs_llvmlite
@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("read", [
    lambda w: w * 2, lambda w: pb.add(pb.ones(8), w), lambda w: w.detach() + 1, lambda w: w.clone() * 1,
    lambda w: w.sum(), lambda w: pb.linear(pb.ones((3, 4)), w.reshape((2, 4)), pb.ones(2)),
])  # fmt: skip
def test_others_find_a_tensor_that_a_trace_has_written_to_as_it_was(read: Any, write: Any) -> None:
    w = pb.tensor(np.arange(8, dtype=np.float32), requires_grad=True)
    optimizer = pb.optim.SGD([w], lr=0.1, momentum=0.9)
    before = read(w).detach().tolist()
    inside, go_on = threading.Event(), threading.Event()
    results: list[Any] = []

    def function(x: Any) -> Any:
        with pb.no_grad():
            write(w, optimizer)
        inside.set()
        assert go_on.wait(30)
        return x * 2

    def elsewhere() -> None:
        assert inside.wait(30)
        results.append(read(w).detach().tolist())
        go_on.set()

    together(lambda: pb.compile(function, ignore=["inside", "go_on"])(pb.ones(8)), elsewhere)
    assert before != read(w).detach().tolist()
    assert results[0] == before


def test_the_function_that_is_traced_still_has_no_values() -> None:
    w = pb.tensor([1.0, 2.0])
    with pytest.raises(pb.TraceError, match="float"):
        pb.compile(lambda x: x * float(w.sum()))(pb.ones(2))
    kept: list[Any] = []
    pb.compile(lambda x: (kept.append(w.detach()), x * w)[1], ignore=["kept"])(pb.ones(2))
    with pytest.raises(pb.TraceError):
        kept[0] * 2


def test_everything_at_once() -> None:
    """Steps of two shapes, evaluation, eager calls, new traces and new arrays in the parameters: no error, no crash."""
    model, _, step = training_step(160)
    x, y = batch(64)
    step(x, y)
    evaluate = pb.compile(lambda x: model(x).sum())
    stop = time.monotonic() + 3

    def repeatedly(work: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            while time.monotonic() < stop:
                work()

        return run

    def eagerly() -> None:
        with pb.no_grad():
            assert np.isfinite(model(x).sum().item())

    def swap() -> None:
        parameter = next(iter(model.parameters()))
        parameter._raw = parameter._raw.copy()
        time.sleep(0.0003)

    together(
        repeatedly(lambda: step(x, y)),
        repeatedly(lambda: step(*batch(32))),
        repeatedly(lambda: evaluate(x)),
        repeatedly(eagerly),
        repeatedly(lambda: pb.compile(lambda x: pb.sin(model(x)).sum())(x)),
        repeatedly(swap),
    )
    assert np.isfinite(step(x, y).item())


def test_an_array_that_is_replaced_during_a_run_lives_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last reference to what a run without Python's lock reads and writes is dropped in the middle of it."""
    w = pb.tensor(np.ones((512, 512), np.float32))
    f = pb.compile(lambda x: (pb.tanh(x @ w) @ w).sum())
    x = pb.ones((512, 512))
    expected = f(x).item()
    assert f._latest().fast_path is not None and not f._latest().built.executable.keeps_lock
    stop = time.monotonic() + 1.5

    def swap() -> None:
        while time.monotonic() < stop:
            w._raw = np.ones((512, 512), np.float32)
            np.full((512, 512), np.nan, np.float32)  # takes the memory of what was freed

    def call() -> None:
        while time.monotonic() < stop:
            assert f(x).item() == expected
            assert f(pb.ones((512, 512))).item() == expected

    together(call, swap)


# -- fork ------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def in_child(work: Callable[[], Any], seconds: int = 30) -> int:
    """Fork, do it there, and give the exit status; a child that hangs is killed."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("width", [16, 256])
def test_fork_while_others_step_and_compile(width: int) -> None:
    model, _, step = training_step(width)
    x, y = batch(64)
    step(x, y)
    ended = threading.Event()
    results: list[int] = []

    def stepping() -> None:
        while not ended.is_set():
            step(x, y)

    def compiling() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            pb.compile(lambda x, c: pb.sin(model(x)).sum() * c)(x, float(number))

    def work() -> None:
        for _ in range(3):
            step(x, y)
        with pb.no_grad():
            assert np.isfinite(model(x).sum().item())
        pb.compile(lambda x: model(x) * 3)(x)

    def forking() -> None:
        try:
            results.extend([in_child(work) for _ in range(6)])
        finally:
            ended.set()

    together(stepping, compiling, forking)
    assert results == [0] * 6


_POOLS = """
import multiprocessing, sys
import pullback as pb

@pb.compile
def f(x):
    return pb.tanh(x @ x).sum()

def work(n):
    return f(pb.ones((n, n))).item()

if __name__ == "__main__":
    expected = [work(n) for n in (4, 300)]
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(work, [4, 300]) == expected, method
    print("done")
"""


@needs_llvmlite
@needs_fork
def test_processes_of_a_pool(tmp_path: Path) -> None:
    program = tmp_path / "pools.py"
    program.write_text(_POOLS)
    done = subprocess.run(
        [sys.executable, str(program), "fork", "spawn"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "done\n", done.stderr


_EXIT = """
import threading, time
import pullback as pb
x = pb.ones((400, 400))
f = pb.compile(lambda x: pb.tanh(x @ x).sum())
f(x)

def forever():
    while True:
        f(x)

for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
"""


@needs_llvmlite
def test_the_interpreter_ends_while_threads_call() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", _EXIT], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
