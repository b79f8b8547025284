"""The log: valid JSON whatever the numbers are, and the same after a crash as without one."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.train import JsonLines, read_log
from pullback.train.jsonl import line_of

HISTORY = SimpleNamespace(stop_reason=None)


def trainer_in(folder, step=0):
    return SimpleNamespace(folder=folder, step=step)


def record(step, **values):
    return {"step": step, "epoch": 1 + step // 10, "loss": 1.0 / step, "seconds": 0.5 * step, **values}


def run(log, trainer, first, last, *, checkpoint_at=None):
    """Steps with a validation at every fifth and an epoch at every tenth; the state at the checkpoint."""
    state = None
    for step in range(first, last + 1):
        trainer.step = step
        log.on_step(trainer, record(step))
        if step % 5 == 0:
            log.on_validation(trainer, {"step": step, "validation_loss": 2.0 / step})
        if step % 10 == 0:
            log.on_epoch(trainer, record(step))
        if step == checkpoint_at:
            state = json.loads(json.dumps(log.state_dict()))
    return state


def test_log_has_a_line_per_step_validation_epoch_and_event(tmp_path):
    log, trainer = JsonLines(), trainer_in(tmp_path)
    log.on_start(trainer)
    run(log, trainer, 1, 10)
    log.on_end(trainer, SimpleNamespace(stop_reason="no gain"))
    records = read_log(tmp_path / "log.jsonl")
    kinds = [entry["kind"] for entry in records]
    assert kinds == ["start"] + ["step"] * 5 + ["validation"] + ["step"] * 5 + ["validation", "epoch", "end"]
    assert records[3] == {"kind": "step", **record(3)}
    assert records[-1] == {"kind": "end", "step": 10, "status": "stopped", "stop_reason": "no gain"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64(math.nan), np.float32(math.inf)])
def test_values_that_are_not_finite_are_null_with_their_name_and_come_back(tmp_path, value):
    line = line_of("step", record(1, loss=value, other=np.float32(0.5)))
    raw = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert raw["loss"] is None and raw["not_finite"] == {"loss": str(float(value))} and raw["other"] == 0.5
    path = tmp_path / "log.jsonl"
    path.write_text(line + "\n")
    (read,) = read_log(path)
    assert "not_finite" not in read
    np.testing.assert_equal(read["loss"], float(value))


def test_lines_can_be_read_while_the_run_goes_on(tmp_path):
    log, trainer = JsonLines(tmp_path / "deep" / "own.jsonl"), trainer_in(None)
    log.on_start(trainer)
    log.on_step(trainer, record(1))
    assert read_log(tmp_path / "deep" / "own.jsonl")[-1]["loss"] == 1.0
    log.on_end(trainer, HISTORY)


def test_every_thins_the_steps_by_their_number(tmp_path):
    log, trainer = JsonLines(every=4), trainer_in(tmp_path)
    log.on_start(trainer)
    run(log, trainer, 1, 12)
    log.on_end(trainer, HISTORY)
    assert [e["step"] for e in read_log(tmp_path / "log.jsonl") if e["kind"] == "step"] == [4, 8, 12]


@pytest.mark.parametrize("killed_at", [8, 10, 17])
@pytest.mark.parametrize("torn", [b"", b'{"kind":"step","st', b'{"kind":"step","step":3}\n{"ki'])
def test_a_resumed_log_is_that_of_an_undisturbed_run(tmp_path, killed_at, torn):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    log, trainer = JsonLines(), trainer_in(whole)
    log.on_start(trainer)
    run(log, trainer, 1, 20)
    log.on_end(trainer, HISTORY)

    first, trainer = JsonLines(), trainer_in(broken)
    first.on_start(trainer)
    state = run(first, trainer, 1, killed_at, checkpoint_at=8)
    first.on_error(trainer, KeyboardInterrupt())
    with open(broken / "log.jsonl", "ab") as file:
        file.write(torn)

    second, trainer = JsonLines(), trainer_in(broken, step=8)
    second.load_state_dict(state)
    second.on_start(trainer)
    assert (broken / "log.jsonl").stat().st_size == state["offset"]
    run(second, trainer, 9, 20)
    second.on_end(trainer, HISTORY)
    lines = [(folder / "log.jsonl").read_text().splitlines()[1:] for folder in (whole, broken)]  # the first has a date
    assert lines[0] == lines[1]


@pytest.mark.parametrize("whole", [0, 1, 6000])
@pytest.mark.parametrize("cut", ["", '{"kind":"step"', "x" * 70_000])
def test_a_log_shorter_than_the_checkpoint_says_goes_on_after_its_last_whole_line(tmp_path, whole, cut):
    (tmp_path / "log.jsonl").write_text('{"kind":"start"}\n' * whole + cut)
    log, trainer = JsonLines(), trainer_in(tmp_path, step=8)
    log.load_state_dict({"offset": 1_000_000})
    log.on_start(trainer)
    log.on_step(trainer, record(9))
    log.on_end(trainer, HISTORY)
    assert read_log(tmp_path / "log.jsonl")[:-1] == [{"kind": "start"}] * whole + [{"kind": "step", **record(9)}]


def test_a_new_run_begins_a_new_log_and_more_training_goes_on_with_it(tmp_path):
    log, trainer = JsonLines(), trainer_in(tmp_path)
    for _ in range(2):
        trainer.step = 0
        log.on_start(trainer)
        run(log, trainer, 1, 3)
        log.on_end(trainer, HISTORY)
    log.on_start(trainer)
    run(log, trainer, 4, 4)
    log.on_end(trainer, HISTORY)
    kinds = [e["kind"] for e in read_log(tmp_path / "log.jsonl")]
    assert kinds == ["start", "step", "step", "step", "end", "step", "end"]


class Stop(pb.train.Callback):
    """Ends a run as a crash would."""

    def __init__(self, step):
        self.step = step

    def on_step(self, trainer, record):
        if record["step"] == self.step:
            raise RuntimeError("crash")


@pytest.mark.parametrize("crash", [3, 12, 15, 19])
@pytest.mark.parametrize("checkpoint_every", [None, 4])
def test_a_real_run_that_crashed_and_was_resumed_has_the_log_of_an_undisturbed_one(tmp_path, crash, checkpoint_every):
    x = np.random.default_rng(0).normal(size=(40, 3))
    data = (x, x.sum(axis=1, keepdims=True))

    def fit(folder, stop, resume=False):
        pb.random.seed(0)
        model = pb.nn.Linear(3, 1)
        trainer = pb.train.Trainer(
            model,
            pb.mse_loss,
            pb.optim.SGD(model.parameters(), lr=0.1),
            metrics=["mae"],
            callbacks=[JsonLines(), Stop(stop)],
            folder=folder,
            checkpoint_every=checkpoint_every,
        )
        batches = pb.data.Batches(data, 8, shuffle=True)
        trainer.fit(batches, epochs=4, validation=pb.data.Batches(data, 40), resume=resume)

    fit(tmp_path / "whole", stop=None)
    with pytest.raises(RuntimeError, match="crash"):
        fit(tmp_path / "broken", stop=crash)
    assert read_log(tmp_path / "broken" / "log.jsonl")[-1]["kind"] == "error"
    fit(tmp_path / "broken", stop=None, resume=True)
    logs = [read_log(tmp_path / name / "log.jsonl") for name in ("whole", "broken")]
    for entry in logs[0] + logs[1]:
        for timing in ("seconds", "samples_per_second", "steps_per_second", "time"):
            entry.pop(timing, None)
    assert logs[0] == logs[1]
    assert [entry["kind"] for entry in logs[0]].count("step") == 20


def test_an_error_is_the_last_line(tmp_path):
    log, trainer = JsonLines(), trainer_in(tmp_path, step=7)
    log.on_error(trainer, ValueError("too early: nothing is open"))
    trainer.step = 0
    log.on_start(trainer)
    trainer.step = 7
    log.on_error(trainer, ValueError('a "bad"\nvalue'))
    reason = {"status": "failed", "stop_reason": 'ValueError: a "bad" value', "error": 'ValueError: a "bad"\nvalue'}
    assert read_log(tmp_path / "log.jsonl")[-1] == {"kind": "error", "step": 7, **reason}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 100_000, id="deep"),
        "nonsense",
        "[1, 2]",
        '{"not_finite": 3}',
        '{"not_finite": {"loss": "much"}}',
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text('{"kind":"start"}\n' + line + '\n{"kind":"end"}\n')
    with pytest.raises(pb.errors.FileFormatError, match="line 2"):
        read_log(path)


def test_without_a_folder_the_error_says_what_to_write():
    with pytest.raises(pb.errors.ConfigurationError, match=r"JsonLines\('log.jsonl'\).*folder="):
        JsonLines().on_start(trainer_in(None))
    with pytest.raises(pb.errors.ConfigurationError, match="every=0"):
        JsonLines(every=0)
