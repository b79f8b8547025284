"""Progress: what it says, and that it never gets in the way of the training."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.train import Progress, progress as module

from ..backends.installed import needs

needs_rich = needs("rich", "a progress bar")

HISTORY = SimpleNamespace(stop_reason=None)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")
    return Terminal()


def trainer_of(steps=100, epochs=2, at=0):
    return SimpleNamespace(step=at, total_steps=steps, total_epochs=epochs)


def record(step, **values):
    epoch = 1 + (step - 1) // 50
    return {"step": step, "epoch": epoch, "loss": 0.5, "learning_rate": 0.001, "samples_per_second": 1234.0, **values}


def run(progress, trainer, steps=100, *, clock=None, seconds=0.0):
    progress.on_start(trainer)
    for step in range(trainer.step + 1, steps + 1):
        if clock:
            clock.now += seconds
        progress.on_step(trainer, record(step))
        if step % 50 == 0:
            progress.on_validation(trainer, {"step": step, "validation_accuracy": 0.875})
            progress.on_epoch(trainer, record(step, loss=0.25, validation_accuracy=0.875))
    progress.on_end(trainer, HISTORY)


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_elsewhere_than_on_a_terminal_there_is_a_line_per_epoch(clock):
    stream = io.StringIO()
    run(Progress(stream), trainer_of(), clock=clock, seconds=0.0625)
    assert stream.getvalue().splitlines() == [
        "epoch 1/2  step 50/100  loss 0.25  validation_accuracy 0.875  learning_rate 0.001  1,234 samples/s"
        "  elapsed 0:03  left 0:03",
        "epoch 2/2  step 100/100  loss 0.25  validation_accuracy 0.875  learning_rate 0.001  1,234 samples/s"
        "  elapsed 0:06  left 0:00",
    ]
    assert stream.getvalue().isascii()


def test_long_epochs_have_lines_in_between_but_few(clock):
    stream = io.StringIO()
    run(Progress(stream), trainer_of(), clock=clock, seconds=0.75)
    steps = [int(re.search(r"step (\d+)", line)[1]) for line in stream.getvalue().splitlines()]
    assert steps == [*range(7, 50, 7), 50, *range(57, 100, 7), 100]


def test_the_loss_of_a_line_within_an_epoch_is_smoothed(clock):
    stream, trainer = io.StringIO(), trainer_of()
    progress = Progress(stream)
    progress.on_start(trainer)
    for step in range(1, 41):
        clock.now = 1000.0 + (10.0 if step == 40 else 0.0)
        progress.on_step(trainer, record(step, loss=2.0 + (-1) ** step))
    loss = float(re.search(r"loss (\S+)", stream.getvalue())[1])
    assert 1.9 < loss < 2.1


def test_a_loss_that_is_not_finite_is_shown_and_then_forgotten(clock):
    stream, trainer = io.StringIO(), trainer_of()
    progress = Progress(stream)
    progress.on_start(trainer)
    for step, loss in enumerate([1.0, float("nan"), 1.0], 1):
        clock.now += 10.0
        progress.on_step(trainer, record(step, loss=loss))
    assert re.findall(r"loss (\S+)", stream.getvalue()) == ["1", "nan", "1"]


def test_the_time_left_of_a_resumed_run_counts_its_own_steps_only(clock):
    stream = io.StringIO()
    progress, trainer = Progress(stream), trainer_of(steps=200, at=90)
    progress.on_start(trainer)
    for step in range(91, 101):
        clock.now += 2.0
        progress.on_step(trainer, record(step, seconds=3700.0))
    assert (
        "step 99/200  loss 0.5  learning_rate 0.001  1,234 samples/s  elapsed 1:01:40  left 3:22"
        in stream.getvalue().splitlines()[-1]
    )


def test_a_real_run_has_a_line_per_epoch():
    x = np.random.default_rng(0).normal(size=(24, 3))
    data = (x, x.sum(axis=1, keepdims=True))
    model, stream = pb.nn.Linear(3, 1), io.StringIO()
    optimizer = pb.optim.SGD(model.parameters(), lr=0.1)
    trainer = pb.train.Trainer(model, pb.mse_loss, optimizer, metrics=["mae"], callbacks=[Progress(stream)])
    history = trainer.fit(pb.data.Batches(data, 8), epochs=3, validation=pb.data.Batches(data, 24))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    for number, (line, record) in enumerate(zip(lines, history.epochs), 1):
        assert line.startswith(f"epoch {number}/3  step {3 * number}/9  loss {record['loss']:.4g}"[:30])
        assert "validation_loss" in line and "validation_mae" in line and "learning_rate 0.1" in line


def test_a_run_without_known_length_has_no_totals(clock):
    stream = io.StringIO()
    run(Progress(stream), trainer_of(None, None), clock=clock)
    assert stream.getvalue().startswith("epoch 1  step 50  loss") and "left" not in stream.getvalue()


def test_a_run_that_ends_within_an_epoch_has_a_last_line(clock):
    stream = io.StringIO()
    run(Progress(stream), trainer_of(steps=70), steps=70, clock=clock)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2  step 70/70  loss 0.5  validation_accuracy 0.875")


def test_why_a_run_failed_is_said_in_a_line():
    stream, trainer = io.StringIO(), trainer_of()
    progress = Progress(stream)
    progress.on_start(trainer)
    progress.on_step(trainer, record(7))
    progress.on_error(trainer, ValueError("a long\nstory " + 1000 * "x"))
    where, why = stream.getvalue().splitlines()
    assert where.startswith("epoch 1/2  step 7/100") and "left" not in where
    assert why.startswith("failed: ValueError: a long story xxx") and len(why) < 320


def test_a_second_ctrl_c_is_a_stop():
    stream, trainer = io.StringIO(), trainer_of()
    progress = Progress(stream)
    progress.on_start(trainer)
    progress.on_error(trainer, KeyboardInterrupt())
    assert stream.getvalue() == "stopped: interrupted (Ctrl-C)\n"


def test_why_a_run_was_stopped_is_said():
    stream, trainer = io.StringIO(), trainer_of()
    progress = Progress(stream)
    progress.on_start(trainer)
    progress.on_end(trainer, SimpleNamespace(stop_reason="no gain for 5 epochs"))
    assert stream.getvalue() == "stopped: no gain for 5 epochs\n"


@needs_rich
def test_on_a_terminal_there_is_a_bar_and_the_cursor_comes_back(terminal):
    run(Progress(terminal), trainer_of())
    text = terminal.getvalue()
    assert "\u2501" in text and "step 100/100" in plain(text) and "validation_accuracy 0.875" in plain(text)
    assert text.count("\x1b[?25l") == 1 and text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


@needs_rich
def test_a_bar_says_that_its_run_was_stopped(terminal):
    progress, trainer = Progress(terminal), trainer_of()
    progress.on_start(trainer)
    progress.on_step(trainer, record(7))
    progress.on_end(trainer, SimpleNamespace(stop_reason="no gain"))
    lines = [line for line in re.split(r"[\r\n]+", plain(terminal.getvalue())) if line.strip()]
    assert "step 7/100" in lines[-1] and "stopped" in lines[-1] and "left" not in lines[-1]
    assert "stopped: no gain" in lines


@needs_rich
@pytest.mark.parametrize("width", [1, 5, 12, 20, 30, 36, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("total", [100, None])
def test_the_bar_is_one_line_of_any_width(terminal, monkeypatch, width, total):
    monkeypatch.setenv("COLUMNS", str(width))
    progress, trainer = Progress(terminal), trainer_of(total)
    progress.on_start(trainer)
    for step in range(1, 4):
        progress.on_step(trainer, record(step))
        progress.on_validation(trainer, {"validation_loss": 1.0, "validation_accuracy": 0.5})
    before_end = terminal.getvalue()
    progress.on_end(trainer, HISTORY)
    lines = re.split(r"[\r\n]+", plain(before_end))
    assert "\n" not in before_end and all(len(line) <= width for line in lines)
    assert lines[-1].startswith("epoch 1/2  step 3"[:width])


@needs_rich
@pytest.mark.parametrize("seconds", [0.001, 0.03])
def test_the_bar_is_drawn_at_most_ten_times_a_second(terminal, clock, monkeypatch, seconds):
    drawn = []
    monkeypatch.setattr(Progress, "_draw", lambda self: drawn.append(clock.now))
    progress, trainer = Progress(terminal), trainer_of(1000)
    progress.on_start(trainer)
    drawn.clear()
    for step in range(1, 1001):
        clock.now += seconds
        progress.on_step(trainer, record(step))
    progress.on_error(trainer, ValueError())
    assert 0.5 * 10 * 1000 * seconds < len(drawn) <= 10 * 1000 * seconds + 1


@needs_rich
def test_short_epochs_do_not_flood_a_terminal(terminal, clock):
    progress, trainer = Progress(terminal), trainer_of()
    progress.on_start(trainer)
    for step in range(1, 101):
        clock.now += 0.125
        progress.on_epoch(trainer, record(step))
    before_end = plain(terminal.getvalue())
    progress.on_end(trainer, HISTORY)
    assert [int(step) for step in re.findall(r"step (\d+)/100[^\r\n]*\n", before_end)] == [*range(1, 101, 8)]


@needs_rich
def test_slow_terminals_are_drawn_on_less_often(terminal, clock, monkeypatch):
    drawn = []

    def draw(self):
        drawn.append(clock.now)
        clock.now += 0.5

    progress, trainer = Progress(terminal), trainer_of(1000)
    progress.on_start(trainer)
    monkeypatch.setattr(Progress, "_draw", draw)
    for step in range(1, 1001):
        clock.now += 0.1
        progress.on_step(trainer, record(step))
    progress.on_error(trainer, ValueError())
    assert 2 <= len(drawn) <= 6  # a fiftieth of 100 seconds


def test_prints_of_a_program_appear_above_the_bar_and_those_into_a_file_stay_there(terminal, monkeypatch):
    output, errors = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", errors)
    progress, trainer = Progress(), trainer_of()
    progress.on_start(trainer)
    print("to a file")
    print("to the terminal", file=sys.stderr)
    progress.on_end(trainer, HISTORY)
    assert output.getvalue() == "to a file\n" and "to the terminal\n" in errors.getvalue()
    assert sys.stderr is errors and sys.stdout is output


@needs_rich
@pytest.mark.parametrize("ending", ["on_error", "exit", "start"])
def test_every_ending_gives_the_terminal_back(terminal, monkeypatch, ending):
    monkeypatch.setattr(sys, "stderr", terminal)
    exits = []
    monkeypatch.setattr(module.atexit, "register", exits.append)
    progress, trainer = Progress(), trainer_of()
    progress.on_start(trainer)
    assert sys.stderr is not terminal
    if ending == "on_error":
        progress.on_error(trainer, KeyboardInterrupt())
    elif ending == "exit":
        for callback in exits:
            callback()
    else:
        progress.on_start(trainer)  # another run without an end of the first
        progress.on_end(trainer, HISTORY)
    assert sys.stderr is terminal
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(5, "gone"), ValueError("closed file")])
@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_stream_that_breaks_silences_it_and_nothing_else(terminal, monkeypatch, error, kind):
    stream = kind()
    progress, trainer = Progress(stream), trainer_of()
    progress.on_start(trainer)

    def fail(text):
        raise error

    stream.write = fail
    monkeypatch.setattr(sys, "stderr", kept := io.StringIO())
    for step in range(1, 3):
        progress.on_step(trainer, record(step))
        progress.on_validation(trainer, {"validation_loss": 1.0})
        progress.on_epoch(trainer, record(step))
    progress.on_end(trainer, HISTORY)
    assert sys.stderr is kept and kept.getvalue() == ""


@pytest.mark.parametrize("stream", ["closed", "none", "ascii"])
def test_streams_that_cannot_take_it_do_no_harm(monkeypatch, stream):
    given = io.TextIOWrapper(io.BytesIO(), encoding="ascii") if stream == "ascii" else io.StringIO()
    if stream == "closed":
        given.close()
    if stream == "none":
        monkeypatch.setattr(sys, "stderr", None)
    progress, trainer = Progress(None if stream == "none" else given), trainer_of()
    progress.on_start(trainer)
    progress.on_epoch(trainer, record(1, validation_größe=1.0))
    progress.on_end(trainer, HISTORY)


def test_a_closed_terminal_does_no_harm(terminal):
    """A real one: its other side goes away in the middle of the run."""
    ours, theirs = pty.openpty()
    drained = threading.Thread(target=_drain, args=(ours,))
    drained.start()
    stream = os.fdopen(theirs, "w", encoding="utf-8")
    progress, trainer = Progress(stream), trainer_of()
    progress.on_start(trainer)
    progress.on_step(trainer, record(1))
    stream.write("\x04end\n")
    stream.flush()
    drained.join()
    os.close(ours)
    run_on = [progress.on_validation(trainer, {"validation_loss": 1.0}) for _ in range(3)]
    progress.on_epoch(trainer, record(2))
    progress.on_end(trainer, HISTORY)
    assert run_on == [None] * 3
    with suppress(OSError):  # what was left in its buffer
        stream.close()


def _drain(descriptor):
    seen = b""
    while b"end" not in seen:
        seen += os.read(descriptor, 4096)


@needs_rich
@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(terminal, monkeypatch, name):
    monkeypatch.setenv("TERM", name)
    run(Progress(terminal), trainer_of())
    assert "\x1b" not in terminal.getvalue() and terminal.getvalue().count("\n") == 2


def test_without_rich_there_are_lines_and_one_hint(terminal, monkeypatch):
    monkeypatch.setattr(module, "_told", set())
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    run(Progress(terminal), trainer_of())
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "For a live progress bar: pip install 'pullback[train]'" and len(lines) == 3
    run(Progress(terminal), trainer_of())
    assert len(terminal.getvalue().splitlines()) == 5  # the hint is given once


def test_short_epochs_do_not_flood_a_terminal_without_rich(terminal, clock, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    progress, trainer = Progress(terminal), trainer_of()
    progress.on_start(trainer)
    for step in range(1, 101):
        clock.now += 0.125
        progress.on_epoch(trainer, record(step, loss=step / 4))
    progress.on_end(trainer, HISTORY)
    lines = [line for line in terminal.getvalue().splitlines() if "step" in line]
    assert [int(re.search(r"step (\d+)/100", line)[1]) for line in lines] == [*range(1, 101, 8), 100]
    assert "loss 25 " in lines[-1]  # that of the epoch, as in the others


def test_names_of_metrics_are_shown_as_they_are(terminal):
    progress, trainer = Progress(terminal), trainer_of()
    progress.on_start(trainer)
    progress.on_epoch(trainer, record(1, **{"validation_[red]x[/]": 1.0}))
    progress.on_end(trainer, HISTORY)
    shown = plain(terminal.getvalue())
    assert re.search(r"validation_\[red\]x\[/\] 1[^\r\n]*\r?\n", shown)  # the line above the bar
    assert not re.search(r"validation_x", shown)
