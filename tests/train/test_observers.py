"""Who watches a run: a display where somebody looks, a report where there is a folder, all of one voice."""

from __future__ import annotations

import io
import re
import sys
from html import escape
from types import SimpleNamespace
from weakref import WeakSet

import numpy as np
import pytest

import pullback as pb
from pullback.train import JsonLines, Progress, Report, Trainer, progress, read_log
from pullback.train.rates import Rates, rate_texts

from .test_progress import Terminal

X = np.random.default_rng(0).standard_normal((24, 3)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def nobody_else_is_shown(monkeypatch):
    """Displays that other tests have begun and not ended count no more."""
    monkeypatch.setattr(progress, "_active", WeakSet())


def trainer(**options):
    model = pb.nn.Linear(3, 1)
    return Trainer(model, pb.mse_loss, pb.optim.SGD(model.parameters(), lr=0.1), compile=False, **options)


def fit(trainer, **how):
    return trainer.fit(pb.data.Batches((X, Y), 8), **{"epochs": 2, **how})


def terminal(monkeypatch):
    """A standard error stream that says it is a terminal, which cannot move its cursor. (Not a fixture: pytest has its
    own stream there before a test begins.)"""
    for name in ("CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def pipe(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


# -- progress ----------------------------------------------------------------------------------------


def test_on_a_terminal_progress_is_shown(monkeypatch):
    errors = terminal(monkeypatch)
    fit(trainer())
    assert "epoch 2/2  step 6/6" in errors.getvalue()


def test_a_pipe_stays_quiet_unless_asked(monkeypatch):
    errors = pipe(monkeypatch)
    fit(trainer())
    assert errors.getvalue() == ""
    fit(trainer(progress=True))
    assert "epoch 2/2  step 6/6" in errors.getvalue()


def test_a_terminal_of_a_build_server_stays_quiet(monkeypatch):
    errors = terminal(monkeypatch)
    monkeypatch.setenv("CI", "true")
    fit(trainer())
    assert errors.getvalue() == ""


def test_progress_can_be_turned_off(monkeypatch):
    errors = terminal(monkeypatch)
    fit(trainer(progress=False))
    assert errors.getvalue() == ""


@pytest.mark.parametrize("progress", [None, True])
def test_a_display_of_one_s_own_takes_the_place_of_the_default(progress, monkeypatch):
    errors = terminal(monkeypatch)
    stream = io.StringIO()
    made = trainer(progress=progress)
    made.callbacks.append(Progress(stream))
    fit(made)
    assert errors.getvalue() == "" and "step 6/6" in stream.getvalue()


class Inner(pb.train.Callback):
    """Trains another model in the middle of a run."""

    def on_epoch(self, outer, record):
        fit(trainer(), epochs=7)


def test_a_run_inside_of_another_one_is_not_shown(monkeypatch):
    errors = terminal(monkeypatch)
    fit(trainer(callbacks=[Inner()]))
    assert "step 6/6" in errors.getvalue() and "/7" not in errors.getvalue()
    fit(trainer(), epochs=3)
    assert "epoch 3/3" in errors.getvalue()


def test_after_a_run_that_failed_the_next_one_is_shown(monkeypatch):
    errors = terminal(monkeypatch)
    with pytest.raises(ValueError, match="no"):
        fit(trainer(callbacks=[Ends(ValueError("no"))]))
    fit(trainer(), epochs=3)
    assert "failed: ValueError: no" in errors.getvalue() and "epoch 3/3" in errors.getvalue()


@pytest.mark.parametrize("stream", [None, "closed"])
def test_without_a_stream_there_is_nothing(monkeypatch, stream):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", None if stream is None else closed)
    assert len(fit(trainer()).epochs) == 2


class Notebook:
    """What a kernel of Jupyter's has of IPython: a shell with a kernel, and displays that are replaced."""

    def __init__(self, monkeypatch):
        self.shown = []
        display = SimpleNamespace(HTML=lambda text: text, display=self.display)
        shell = SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, content, display_id):
        assert display_id is True
        self.shown.append(content)
        return SimpleNamespace(update=self.shown.append)


def test_in_a_notebook_there_is_one_output_that_is_replaced(monkeypatch):
    errors = pipe(monkeypatch)
    notebook = Notebook(monkeypatch)
    fit(trainer(callbacks=[Named("<b>x</b>")]))
    assert errors.getvalue() == ""
    last = notebook.shown[-1]
    assert "epoch 2/2" in last and "step 6/6" in last and "width:100%" in last and ">finished</b>" in last
    assert "<b>x</b>" not in last and "&lt;b&gt;x" in last
    assert len(last) < 5000


class Named(pb.train.Callback):
    """Puts a value of a name into the records of validations and epochs."""

    def __init__(self, name):
        self.name = name

    def on_epoch(self, trainer, record):
        record[f"validation_{self.name}"] = 1.0


# -- the report --------------------------------------------------------------------------------------


def test_a_folder_gets_a_report(tmp_path):
    fit(trainer(folder=tmp_path / "run"))
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert ">finished<" in text and (tmp_path / "run" / "loss.svg").exists()


def test_no_report_where_none_is_wanted(tmp_path):
    fit(trainer(folder=tmp_path / "run", report=False))
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_report_of_one_s_own_takes_the_place_of_the_default(tmp_path):
    fit(trainer(folder=tmp_path / "run", callbacks=[Report(tmp_path / "mine.html", title="Mine")]))
    assert "Mine" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert not (tmp_path / "run" / "report.html").exists()


def test_the_report_of_a_resumed_run_begins_with_the_run(tmp_path):
    fit(trainer(folder=tmp_path / "run"), epochs=1)
    fit(trainer(folder=tmp_path / "run"), epochs=2, resume=True)
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "&quot;steps&quot;:[1,2,3,4,5,6]" in text


def test_a_file_of_somebody_else_s_in_the_place_of_the_report_is_left_alone(tmp_path):
    (tmp_path / "report.html").write_text("precious")
    with pytest.raises(pb.ConfigurationError, match=r"report\.html is not of this run"):
        fit(trainer(folder=tmp_path))
    assert (tmp_path / "report.html").read_text() == "precious"
    assert fit(trainer(folder=tmp_path, report=False)).stop_reason is None


# -- one voice ---------------------------------------------------------------------------------------


def figures_of(folder, stream):
    """What the last line of the display, the last step of the log and the report say about the speed."""
    report = (folder / "report.html").read_text(encoding="utf-8")
    records = [line for line in read_log(folder / "log.jsonl") if line["kind"] == "step"]
    shown = dict(rate_texts(records[-1]))
    line = stream.getvalue().splitlines()[-1]
    of_line = {unit: value for value, unit in re.findall(r"(\S+) ((?:samples|steps|tokens)/s)", line)}
    of_report = dict(re.findall(r"<span>([a-z]+/s)</span><b>([^<]+)</b>", report))
    return shown, of_line, of_report


@pytest.mark.parametrize("steps", [6, 7])
def test_the_display_the_log_and_the_report_give_the_same_rates(tmp_path, steps):
    stream = io.StringIO()
    fit(trainer(folder=tmp_path, callbacks=[Progress(stream), JsonLines()]), epochs=None, steps=steps)
    shown, of_line, of_report = figures_of(tmp_path, stream)
    assert set(shown) == {"samples/s", "steps/s"} and shown == of_line == of_report


class Tokens:
    """Batches that tell how many tokens they had."""

    tokens_given = 0

    def __iter__(self):
        for _ in range(3):
            self.tokens_given += 50
            yield X[:8], Y[:8]


def test_data_that_counts_its_tokens_has_a_rate_of_them(tmp_path):
    stream = io.StringIO()
    made = trainer(folder=tmp_path, callbacks=[Progress(stream), JsonLines()])
    history = made.fit(Tokens(), epochs=2, validation=[(X, Y)])
    shown, of_line, of_report = figures_of(tmp_path, stream)
    assert set(shown) == {"tokens/s", "steps/s"} and shown == of_line == of_report
    for record in history.steps:
        assert record["tokens_per_second"] == pytest.approx(50 / 8 * record["samples_per_second"])
        assert record["samples_per_second"] == pytest.approx(8 * record["steps_per_second"])


class Slow(pb.train.Callback):
    """Takes its time, which is not that of the training."""

    def on_validation(self, trainer, record):
        import time

        time.sleep(0.2)


def test_what_is_between_steps_does_not_count(tmp_path):
    history = trainer(callbacks=[Slow()]).fit([(X, Y)] * 4, epochs=1, validation=[(X, Y)], validate_every=1)
    assert history.steps.last["steps_per_second"] > 5.5  # with the pauses there would be at most 5


def test_rates_are_of_the_last_seconds_and_weigh_steps_by_their_time():
    rates = Rates()
    for seconds in (1.0, 3.0):
        latest = rates.step(seconds, samples=8)
    assert 1 / 3 < latest["steps_per_second"] < 0.5  # the mean of 1 and 1/3 would be 2/3
    for _ in range(100):
        latest = rates.step(0.1, samples=8)
    assert latest["steps_per_second"] == pytest.approx(10, rel=0.1)
    assert latest["samples_per_second"] == pytest.approx(8 * latest["steps_per_second"])


def test_steps_in_which_programs_are_made_do_not_count():
    rates = Rates()
    assert rates.step(10.0, is_usual=False, samples=1)["steps_per_second"] == pytest.approx(0.1)
    assert rates.step(0.5, samples=1)["steps_per_second"] == 2.0
    assert rates.step(10.0, is_usual=False, samples=1)["steps_per_second"] == 2.0


def test_no_time_at_all_is_no_rate():
    assert Rates().step(0.0, samples=8) == {"samples_per_second": 0.0, "steps_per_second": 0.0}


class Ends(pb.train.Callback):
    """Ends a run in the way it is told to."""

    def __init__(self, how):
        self.how = how

    def on_step(self, trainer, record):
        if record["step"] == 4:
            if isinstance(self.how, BaseException):
                raise self.how
            trainer.request_stop(self.how)


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        (None, "finished", None),
        ("no gain & <no> pain", "stopped", "no gain & <no> pain"),
        (KeyboardInterrupt(), "stopped", "interrupted (Ctrl-C)"),
        (ValueError("the disk\nis gone"), "failed", "ValueError: the disk is gone"),
    ],
)
def test_an_end_is_told_in_the_same_words_everywhere(tmp_path, how, status, reason):
    stream = io.StringIO()
    callbacks = [Progress(stream), JsonLines(), *([Ends(how)] if how is not None else [])]
    made = trainer(folder=tmp_path, callbacks=callbacks)
    if isinstance(how, BaseException):
        with pytest.raises(type(how)):
            fit(made)
    else:
        fit(made)
    words = f"{status}: {reason}" if reason else status
    last = read_log(tmp_path / "log.jsonl")[-1]
    assert (last["status"], last["stop_reason"], last["step"]) == (status, reason, 6 if how is None else 4)
    assert f">{escape(words)}</span>" in (tmp_path / "report.html").read_text()
    assert made.history.stop_reason == reason
    assert (stream.getvalue().splitlines()[-1] == words) == (reason is not None)
