"""What goes wrong in the middle: a kernel that raises, memory that is not there, Ctrl-C. Nothing is half done."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ...backends.installed import needs_llvmlite, require
from .test_memory import batch, training_step

GOOD, BAD = pb.tensor(np.eye(3, dtype=np.float32)), pb.tensor(-np.eye(3, dtype=np.float32))


@pytest.mark.parametrize("device", ["numpy", "torch:cpu", "jax:cpu"])
@pytest.mark.parametrize("failure", ["kernel", "index", "loss"])
def test_rows_written_at_indices_are_not_written_twice(failure: str, device: str) -> None:
    """They are written in place before it is known that something is wrong, and then the call is made again."""
    require(device)
    if failure == "kernel" and device == "jax:cpu":
        pytest.skip("JAX's kernels do not raise")
    rows = pb.zeros((1000, 2), device=device)

    @pb.compile
    def step(at: Any, value: Any, x: Any) -> Any:
        rows[at] = rows[at] + value
        inverse = pb.linalg.cholesky(x) if failure == "kernel" else x
        loss = (inverse.sum() * rows.sum()) + (rows[at + 990].sum() if failure == "index" else 0.0)
        if failure == "loss":
            pb.backward(pb.log(weight).sum() + loss)
        return loss

    weight = pb.ones(1, device=device).set_requires_grad(True)
    good, bad = (pb.asarray(x, device=device) for x in (GOOD, BAD))
    one = pb.ones((2, 2), device=device)
    step(pb.asarray(np.array([2, 2]), device=device), one, good)
    assert rows[2].tolist() == [1.0, 1.0]
    places = pb.asarray(np.array([-1 if failure != "index" else 5, 10 if failure == "index" else 3]), device=device)
    if failure == "loss":
        with pb.no_grad():
            weight -= 1.0
    before, once = rows.tolist(), rows.clone()
    once[places] = once[places] + one
    with pytest.raises((pb.PullbackError, IndexError)), np.errstate(all="ignore"):
        step(places, one, bad)
    assert rows.tolist() in (before, once.tolist()) and step.traces == 1


@pytest.mark.parametrize("guard", ["raise", "off"])
def test_a_kernel_that_raises_changes_nothing(guard: str) -> None:
    """The update comes before the matrix is factored, and with the guard off it is not held back by a check."""
    v = pb.tensor(np.arange(1, 4, dtype=np.float32), requires_grad=True)
    optimizer = pb.optim.Adam([v], lr=0.5)

    @pb.compile
    def step(x: Any) -> Any:
        optimizer.step(pb.backward((v * v).sum()))
        noise = pb.random.uniform((3, 3))
        return (pb.linalg.cholesky(x) * (1 + 0 * v.detach())).sum() + 0 * noise.sum()

    def state() -> tuple[Any, ...]:
        slot = optimizer._slots[0][0]
        return v.detach().tolist(), slot.step, [buffer.tolist() for buffer in slot.buffers], generator.state

    generator = pb.random.default_generator()
    with pb.guard(guard):
        step(GOOD)
        before = state()
        for _ in range(2):
            with pytest.raises(pb.LinearAlgebraError, match="positive definite") as caught:
                step(BAD)
            assert "test_failures.py" in caught.value.__notes__[0]
            assert state() == before
        step(GOOD)
        assert state()[1] == before[1] + 1 and step.traces == 1


def test_errors_are_those_of_the_function_itself() -> None:
    for function in (lambda a: pb.linalg.solve(a, pb.ones(3)), lambda a: pb.linalg.inv(a)):
        zeros = pb.zeros((3, 3))
        with pytest.raises(Exception) as eager:
            function(zeros)
        with pytest.raises(type(eager.value)) as compiled:
            pb.compile(function)(zeros)
        assert str(compiled.value) == str(eager.value)


def line_of(function: Any, offset: int = 1) -> str:
    return f"test_failures.py:{function.__code__.co_firstlineno + offset}"


def test_no_memory_for_a_result_names_the_line() -> None:
    def outer(x: Any) -> Any:
        return x.reshape((-1, 1)) * x

    f = pb.compile(outer)
    for _ in range(2):
        with pytest.raises(MemoryError, match=r"281,474,976,710,656 bytes.*shape \(8388608, 8388608\)") as caught:
            f(pb.ones(1 << 23))
        assert line_of(outer) in str(caught.value)


def test_no_memory_on_the_way_names_the_line() -> None:
    def gram(x: Any) -> Any:
        y = x.reshape((-1, 1)) * x
        return (y @ y).sum()

    with pytest.raises(MemoryError, match="beside its inputs and outputs") as caught:
        pb.compile(gram)(pb.ones(1 << 23))
    assert "test_failures.py" in str(caught.value)


def test_no_memory_while_tracing_names_the_line() -> None:
    def ordered(x: Any) -> Any:
        return pb.sort(pb.broadcast_to(x, (1 << 24, 1 << 24)), axis=0).sum()

    with pytest.raises(MemoryError) as caught:
        pb.compile(ordered)(pb.ones(1))
    assert line_of(ordered) in str(caught.value)


def test_no_memory_at_a_later_call_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pb.random.seed(3)
    f = pb.compile(lambda x: pb.dropout(x, 0.5))
    x = pb.ones(64)
    f(x)
    made = f._latest()
    state = pb.random.default_generator().state

    def no_memory(*args: Any) -> Any:
        raise MemoryError("none")

    monkeypatch.setitem(made.fast_path.__globals__, "empty", no_memory)
    monkeypatch.setattr("pullback.compiler.calling.specialization.np.empty", no_memory)
    with pytest.raises(MemoryError, match="256 bytes"):
        f(x)
    monkeypatch.undo()
    assert pb.random.default_generator().state == state
    f(x)
    assert f.traces == 1


# -- Ctrl-C ----------------------------------------------------------------------------------------

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")


@pytest.fixture(params=[KeyboardInterrupt, TimeoutError])  # what people's handlers raise is an `Exception` mostly
def interrupts(request: Any) -> Any:
    error = request.param

    def interrupt(*_: Any) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@needs_timer
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a callback
def test_an_interrupt_while_tracing_and_compiling(interrupts: Any) -> None:
    chance = random.Random(0)
    x, y = batch(8)
    interrupted = 0
    for width in range(5, 20):
        model, optimizer, step = training_step(width)
        before = [parameter._raw.copy() for parameter in model.parameters()]
        try:
            interrupts(chance.uniform(0.0005, 0.03))
            step(x, y)
            interrupts(0)
        except (KeyboardInterrupt, TimeoutError):
            interrupted += 1
            assert all(type(parameter._raw) is np.ndarray for parameter in model.parameters())
            steps = {slot.step for group in optimizer._slots for slot in group}
            changed = {not np.array_equal(p._raw, array) for p, array in zip(model.parameters(), before)}
            assert (steps or {0}, changed) in (({0}, {False}), ({1}, {True}))
        assert np.isfinite(step(x, y).item())
    assert interrupted


@needs_timer
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("width", [16, 400])
def test_an_interrupt_while_running_leaves_a_whole_step(interrupts: Any, width: int) -> None:
    chance = random.Random(0)
    x, y = batch(64)
    model, optimizer, step = training_step(width)
    step(x, y)
    begin = time.perf_counter()
    for _ in range(20):
        step(x, y)
    usual = (time.perf_counter() - begin) / 20
    slots = [slot for group in optimizer._slots for slot in group]
    outcomes = set()
    for _ in range(60):
        number = slots[0].step
        before = [parameter._raw.copy() for parameter in model.parameters()]
        try:
            interrupts(max(usual * chance.uniform(0.3, 0.9), 1e-6))
            step(x, y)
            interrupts(0)
        except (KeyboardInterrupt, TimeoutError):
            pass
        changed = {not np.array_equal(p._raw, array) for p, array in zip(model.parameters(), before)}
        outcomes.add(({slot.step - number for slot in slots} == {1}, changed == {True}))
        assert len({slot.step for slot in slots}) == 1 and len(changed) == 1
    assert outcomes <= {(True, True), (False, False)}


# -- without llvmlite ------------------------------------------------------------------------------


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_llvmlite_the_call_says_what_to_install() -> None:
    said = run("""
import sys
sys.modules["llvmlite"] = None
import pullback as pb
print(pb.compile.__name__, callable(pb.compiled))
for use in (lambda: pb.compile(lambda x: x), lambda: pb.compile(max_traces=1)(lambda x: x)):
    try:
        use()
    except ImportError as error:
        print(error)
""")
    assert said.startswith("compile True") and said.count("pip install 'pullback[compile]'") == 2


@needs_llvmlite
def test_a_version_of_llvmlite_that_is_too_old_is_named() -> None:
    said = run("""
import llvmlite
llvmlite.__version__ = "0.44.0"
import pullback as pb
try:
    pb.compile(lambda x: x)
except ImportError as error:
    print(error)
""")
    assert "0.45" in said and "0.44.0" in said


def test_compiling_is_not_loaded_before_it_is_asked_for() -> None:
    assert run("import sys, pullback; print('pullback.compiler.calling' in sys.modules)").strip() == "False"


# -- long programs ---------------------------------------------------------------------------------


def chain(length: int) -> Any:
    def function(x: Any) -> Any:
        for i in range(length):
            x = pb.sin(x) if i % 2 else x + 1.5
        return x

    return function


def test_a_chain_of_20000_operations() -> None:
    x = pb.tensor(np.linspace(0, 1, 4, dtype=np.float32))
    seconds = []
    for length in (5000, 20_000):
        begin = time.perf_counter()
        result = pb.compile(chain(length))(x)
        seconds.append(time.perf_counter() - begin)
    assert np.allclose(result._raw, chain(20_000)(x)._raw, atol=1e-5)
    assert seconds[1] < 4 * 3 * seconds[0]  # about linear


def test_a_chain_of_5000_operations_with_its_gradient() -> None:
    x = pb.tensor(np.linspace(0, 1, 4, dtype=np.float32))
    gradient = lambda x: pb.grad(lambda x: chain(2500)(x).sum())(x)
    assert np.allclose(pb.compile(gradient)(x)._raw, gradient(x)._raw, rtol=1e-3, atol=1e-12)


def test_a_function_that_calls_itself_for_ever() -> None:
    def endless(x: Any) -> Any:
        return endless(x + 1)

    w = pb.tensor([1.0])
    with pytest.raises(RecursionError):
        pb.compile(lambda x: endless(x * w))(pb.ones(1))
    assert type(w._raw) is np.ndarray and w.item() == 1.0


@needs_timer
def test_a_signal_while_compiling_is_handled_when_that_is_done(interrupts: Any) -> None:
    from pullback.compiler.deferral import signals_later

    reached = False
    with pytest.raises((KeyboardInterrupt, TimeoutError)), signals_later():
        interrupts(0.001)
        time.sleep(0.02)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGALRM).__name__ == "interrupt"
