"""A resumed run is the undisturbed one: everything it depends on is the same, bit for bit, wherever it was cut."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import pullback as pb
from pullback.data import ArrayDataset, Batches
from pullback.optim import SGD, Adam, LossScaler, schedules
from pullback.train import Callback, EarlyStopping, JsonLines, Report, Trainer
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from pullback.train.packing import packed

from ..backends.installed import needs_ml_dtypes, require

NUMBERS = np.random.default_rng(11)
X, CLASSES = NUMBERS.standard_normal((19, 4)).astype(np.float32), np.arange(19) % 3


class CrashError(Exception):
    """What ends a run in these tests."""


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    """What is on the disk after a loss of power cannot be tested here; waiting for it would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class CrashAfter(Callback):
    """Ends the run right after the checkpoint of a step was written."""

    def __init__(self, step):
        self.step = step

    def on_checkpoint(self, trainer, path):
        if trainer.step == self.step:
            raise CrashError


def network(seed=0, width=6):
    pb.random.seed(seed)
    return pb.nn.Sequential(
        pb.nn.Linear(4, width), pb.nn.BatchNorm1d(width), pb.nn.ReLU(), pb.nn.Dropout(0.4), pb.nn.Linear(width, 3)
    )


SETTINGS = {
    "adam": {"optimizer": lambda model: Adam(model.parameters(), lr=0.05)},
    "momentum": {"optimizer": lambda model: SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)},
    "accumulation": {"accumulate": 2},
    "average": {"average": 0.8, "clip_norm": 0.5},
    "plateau": {"schedule": lambda: schedules.Plateau(patience=0, decay=0.5, threshold=0.5)},
    "scaler": {"scaler": lambda: LossScaler(init_scale=2.0**8, growth_interval=3), "autocast": "bfloat16"},
    "metrics": {"metrics": ["accuracy", "f1"]},
    "best": {"best": "validation_loss", "goal": "highest"},  # that is at the beginning, before the interruption
    "torch": {"device": "torch:cpu"},
}
DATA = {
    "shuffled": lambda: Batches((X, CLASSES), 4, shuffle=True, seed=9),
    "prefetched": lambda: Batches((X, CLASSES), 4, shuffle=True, seed=9, prefetch=3),
    "list": lambda: [(X[start : start + 4], CLASSES[start : start + 4]) for start in range(0, 17, 4)],
    "iterable": lambda: Unsized(),
}


class Unsized:
    """Data that says neither its length nor its position."""

    def __iter__(self):
        yield from Batches((X, CLASSES), 4)


def made(folder, setting="adam", callbacks=(), **changes):
    options = {"metrics": "accuracy", "schedule": lambda: schedules.Cosine(total=30, warmup=3), **SETTINGS[setting]}
    options |= changes
    model = network().to_device(options.pop("device", "numpy"))
    optimizer = options.pop("optimizer", SETTINGS["adam"]["optimizer"])(model)
    for name in ("schedule", "scaler"):
        if callable(options.get(name)):
            options[name] = options[name]()
    return Trainer(
        model,
        pb.cross_entropy,
        optimizer,
        folder=folder,
        callbacks=[EarlyStopping(patience=100), *callbacks],
        **{"checkpoint_every": 1, **options},
    )


def fingerprint(trainer):
    """Everything in the state of a run but the times."""
    text, arrays = packed(trainer._state())
    state = json.loads(text)

    def without_times(value):
        if isinstance(value, dict):
            return {key: without_times(part) for key, part in value.items() if "second" not in key}
        return [without_times(part) for part in value] if isinstance(value, list) else value

    state["callbacks"] = {name: part for name, part in state["callbacks"].items() if name.startswith("Early")}
    parts = (trainer.scaler, trainer._best, trainer._scheduler)
    states = [part.state_dict() for part in parts if part is not None]
    return without_times(state), {name: (array.dtype, array.tobytes()) for name, array in arrays.items()}, states


def run(trainer, data, epochs=3, **options):
    return trainer.fit(data, epochs=epochs, validation=Batches((X, CLASSES), 8), **options)


def interrupted_and_resumed(folder, step, setting, data, **options):
    with pytest.raises(CrashError):
        run(made(folder, setting, [CrashAfter(step)]), DATA[data](), **options)
    trainer = made(folder, setting)
    run(trainer, DATA[data](), resume=True, **options)
    return trainer


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("steps", [(1, 7), (5, 9)], ids=["mid-epoch", "end-of-epoch"])
def test_a_resumed_run_is_the_undisturbed_one(tmp_path, setting, steps):
    require(SETTINGS[setting].get("device", "numpy"), SETTINGS[setting].get("autocast"))
    undisturbed = made(tmp_path / "a", setting)
    run(undisturbed, DATA["shuffled"]())
    per_epoch = undisturbed.steps_per_epoch
    for step in (min(step, 3 * per_epoch - 1) for step in steps):
        trainer = interrupted_and_resumed(tmp_path / f"b{step}", step, setting, "shuffled")
        assert trainer.step == undisturbed.step == 3 * per_epoch
        assert fingerprint(trainer) == fingerprint(undisturbed)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("validate_every", [None, 2])
def test_a_run_on_any_data_can_be_cut_after_any_step(tmp_path, data, validate_every):
    undisturbed = made(tmp_path / "a")
    run(undisturbed, DATA[data](), 2, validate_every=validate_every)
    for step in range(1, undisturbed.step + 1):
        trainer = interrupted_and_resumed(
            tmp_path / f"b{step}", step, "adam", data, epochs=2, validate_every=validate_every
        )
        assert fingerprint(trainer) == fingerprint(undisturbed)


def test_a_run_limited_by_steps_resumes_into_the_end_of_its_epoch(tmp_path):
    """The last step of the run is the last of an epoch: what belongs to the epoch's end was still to be done."""
    results = []
    for crash in (False, True):
        trainer = made(tmp_path / str(crash), callbacks=[CrashAfter(10)] if crash else ())
        options = {"steps": 10, "validation": Batches((X, CLASSES), 8)}
        if crash:
            with pytest.raises(CrashError):
                trainer.fit(DATA["shuffled"](), **options)
            trainer = made(tmp_path / str(crash))
        trainer.fit(DATA["shuffled"](), **options, resume=True)
        assert trainer.epoch == 2
        results.append(fingerprint(trainer))
    assert results[0] == results[1]


def test_a_finished_run_is_left_alone_or_gone_on_with(tmp_path):
    run(made(tmp_path), DATA["shuffled"](), 2)
    before = {name: (tmp_path / "checkpoints" / name).read_bytes() for name in os.listdir(tmp_path / "checkpoints")}
    trainer = made(tmp_path)
    history = run(trainer, DATA["shuffled"](), 2, resume=True)
    assert (trainer.step, len(history.epochs)) == (10, 2)
    after = {name: (tmp_path / "checkpoints" / name).read_bytes() for name in os.listdir(tmp_path / "checkpoints")}
    assert before == after
    run(trainer, DATA["shuffled"](), 4, resume=True)
    undisturbed = made(tmp_path / "other")
    run(undisturbed, DATA["shuffled"](), 4)
    assert fingerprint(trainer) == fingerprint(undisturbed)


def test_without_a_folder_resuming_goes_on_from_memory():
    changes = {"folder": None, "checkpoint_every": None}
    trainer, undisturbed = made(**changes), made(**changes)
    data = DATA["shuffled"]()
    validation = Batches((X, CLASSES), 8)
    trainer.fit(data, steps=7, validation=validation, validate_every=7)
    next(iter(data))  # somebody else looks at the data
    trainer.fit(data, epochs=3, validation=validation, validate_every=7, resume=True)
    undisturbed.fit(DATA["shuffled"](), epochs=3, validation=validation, validate_every=7)
    assert fingerprint(trainer) == fingerprint(undisturbed)


def test_resuming_where_nothing_was_saved_starts_a_run(tmp_path):
    trainer = made(tmp_path / "new")
    run(trainer, DATA["shuffled"](), 1, resume=True)
    assert trainer.step == 5


def test_a_run_that_was_stopped_early_stays_stopped(tmp_path):
    class Scripted(EarlyStopping):
        def on_validation(self, trainer, record):
            super().on_validation(trainer, {**record, "validation_loss": float(record["step"])})

    for _ in range(2):
        stopping = Scripted(patience=2)
        model = network()
        trainer = Trainer(model, pb.cross_entropy, SGD(model.parameters()), callbacks=[stopping], folder=tmp_path)
        history = run(trainer, DATA["shuffled"](), 9, resume=True)
        assert trainer.epoch == 3 and "has not improved on 5 (step 5)" in history.stop_reason


def test_the_log_of_a_resumed_run_has_no_line_twice(tmp_path):
    logs = []
    for crash in (False, True):
        folder = tmp_path / str(crash)
        if crash:
            with pytest.raises(CrashError):
                run(made(folder, callbacks=[JsonLines(), CrashAfter(4)], checkpoint_every=4), DATA["shuffled"]())
        run(made(folder, callbacks=[JsonLines()], checkpoint_every=4), DATA["shuffled"](), resume=True)
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        logs.append([(line["kind"], line.get("step"), line.get("loss")) for line in lines])
    assert logs[0] == logs[1]


def test_what_killed_processes_left_of_their_writing_is_removed(tmp_path):
    run(made(tmp_path, callbacks=[Report()]), DATA["shuffled"](), 1)
    halves = [".report.html.a1b2c3d4.part", ".loss.svg.a1b2c3d4.part", ".run.json.a1b2c3d4.part"]
    halves += ["checkpoints/.step-00000004.safetensors.a1b2c3d4.part"]
    for name in [*halves, ".theirs.part"]:
        (tmp_path / name).write_bytes(b"half of")
    run(made(tmp_path, callbacks=[Report()]), DATA["shuffled"](), 2, resume=True)
    assert sorted(path.name for path in tmp_path.rglob("*.part")) == [".theirs.part"]


def test_callbacks_may_come_and_go_between_two_stretches(tmp_path):
    class Counting(Callback):
        def __init__(self):
            self.count = 0

        def on_step(self, trainer, record):
            self.count += 1

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    first, second = Counting(), Counting()
    second.count = 100
    run(made(tmp_path, callbacks=[first, second]), DATA["shuffled"](), 1)
    third, fourth, fifth = Counting(), Counting(), Counting()
    run(made(tmp_path, callbacks=[third, JsonLines(), fourth, fifth]), DATA["shuffled"](), 2, resume=True)
    assert [callback.count for callback in (third, fourth, fifth)] == [10, 110, 5]


def test_a_metric_of_one_s_own_goes_on_with_whatever_it_has_added_up(tmp_path):
    class Seen:
        """How often each class was asked for: a dict and a tensor, and a text that never changes."""

        name, unit = "seen", "samples"

        def reset(self):
            self.counts, self.total = {}, pb.zeros(())

        def update(self, output, target):
            for number in target.numpy().tolist():
                self.counts[number] = self.counts.get(number, 0) + 1
            self.total = self.total + target.sum()

        def compute(self):
            return float(self.total.item()) + 100 * self.counts.get(2, 0)

    found = []
    for folder, crash in (("a", ()), ("b", [CrashAfter(3)])):
        if crash:
            with pytest.raises(CrashError):
                run(made(tmp_path / folder, callbacks=crash, metrics=Seen()), DATA["shuffled"](), 1)
        trainer = made(tmp_path / folder, metrics=Seen())
        history = run(trainer, DATA["shuffled"](), 1, resume=True)
        found.append(history.epochs.last["seen"])
    assert found[0] == found[1] == CLASSES.sum() + 100 * (CLASSES == 2).sum()


def test_data_without_a_length_that_ended_with_the_last_step_has_ended_after_a_resume_too(tmp_path):
    """Five batches, two a step: only the end of the data makes the third step, and the limit is reached with it."""
    results = []
    for crash in (False, True):
        trainer = made(tmp_path / str(crash), "accumulation", [CrashAfter(3)] if crash else ())
        if crash:
            with pytest.raises(CrashError):
                run(trainer, DATA["iterable"](), None, steps=3)
            trainer = made(tmp_path / str(crash), "accumulation")
        run(trainer, DATA["iterable"](), None, steps=3, resume=True)
        results.append((trainer.epoch, fingerprint(trainer)))
    assert results[0] == results[1] and results[0][0] == 1


def test_an_error_in_the_validation_after_an_epoch_costs_no_batches():
    class FailingOnce(Callback):
        failed = False

        def on_validation(self, trainer, record):
            if not self.failed:
                self.failed = True
                raise CrashError

    changes = {"folder": None, "checkpoint_every": None}
    trainer, data = made(callbacks=[FailingOnce()], **changes), DATA["shuffled"]()
    with pytest.raises(CrashError):
        run(trainer, data)
    run(trainer, data, resume=True)
    undisturbed = made(**changes)
    run(undisturbed, DATA["shuffled"]())
    assert trainer.step == undisturbed.step and trainer.epoch == data.epoch == 3
    assert fingerprint_of_weights(trainer) == fingerprint_of_weights(undisturbed)


@needs_ml_dtypes
def test_an_optimizer_that_fails_once_does_not_spoil_the_scaler():
    class FailingOnce(SGD):
        failed = False

        def step(self, grads=None):
            if not self.failed:
                self.failed = True
                raise CrashError
            return super().step(grads)

    changes = {"folder": None, "checkpoint_every": None}
    trainer = made(setting="scaler", optimizer=lambda model: FailingOnce(model.parameters(), lr=0.05), **changes)
    with pytest.raises(CrashError):
        run(trainer, DATA["shuffled"]())
    run(trainer, DATA["shuffled"](), resume=True)
    assert trainer.step == 15


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"data": Batches((X, CLASSES), 5, shuffle=True, seed=9)}, pb.ConfigurationError, "batch_size was 4 and is 5"),
        ({"data": DATA["list"]()}, pb.ConfigurationError, r"data with a state of its own.*this is data without"),
        ({"width": 7}, pb.PullbackError, r"0\.weight"),
        ({"average": 0.9}, pb.ConfigurationError, "had no average, this trainer has one"),
        ({"schedule": None}, pb.ConfigurationError, "had the scheduler that this trainer lacks"),
        ({"metrics": ["f1"]}, pb.ConfigurationError, r"metrics \['accuracy'\], this trainer has \['f1'\]"),
        (
            {"optimizer": lambda model: SGD(model.parameters(), momentum=0.9)},
            pb.PullbackError,
            "another kind",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_checkpoint_of_another_run_is_refused_and_changes_nothing(tmp_path, change, error, words):
    run(made(tmp_path), DATA["shuffled"](), 1)
    files = sorted(os.listdir(tmp_path / "checkpoints"))
    data = change.pop("data", None) or DATA["shuffled"]()
    width = change.pop("width", None)
    trainer = made(tmp_path, **change)
    if width:
        model = network(width=width)
        trainer = Trainer(
            model, pb.cross_entropy, Adam(model.parameters()), folder=tmp_path, metrics="accuracy",
            schedule=schedules.Constant(),
        )  # fmt: skip
    before, place = fingerprint_of_weights(trainer), getattr(data, "state_dict", list)()
    with pytest.raises(error, match=words):
        run(trainer, data, 2, resume=True)
    assert fingerprint_of_weights(trainer) == before and getattr(data, "state_dict", list)() == place
    assert trainer.step == 0 and not trainer.optimizer.state_dict()["state"]
    assert sorted(os.listdir(tmp_path / "checkpoints")) == files


def test_a_folder_with_a_run_is_refused_unless_it_may_be_overwritten(tmp_path):
    run(made(tmp_path), DATA["shuffled"](), 2)
    newest = CheckpointFolder(tmp_path).path(10)
    before = newest.read_bytes()
    trainer = made(tmp_path)
    with pytest.raises(pb.ConfigurationError, match=r"already holds a run, up to step 10"):
        run(trainer, DATA["shuffled"](), 1)
    assert newest.read_bytes() == before and trainer.step == 0
    run(trainer, DATA["shuffled"](), 1, overwrite=True)
    assert CheckpointFolder(tmp_path).steps() == [4, 5]


def test_a_damaged_checkpoint_is_not_resumed_from(tmp_path):
    run(made(tmp_path), DATA["shuffled"](), 2)
    folder = CheckpointFolder(tmp_path)
    content = bytearray(folder.path(10).read_bytes())
    content[len(content) // 2] ^= 4
    folder.path(10).write_bytes(content)
    trainer = made(tmp_path)
    before = fingerprint_of_weights(trainer)
    words = r"step-00000010\.safetensors: .*The newest sound checkpoint is step-00000009\.safetensors"
    with pytest.raises(pb.FileFormatError, match=words):
        run(trainer, DATA["shuffled"](), 2, resume=True)
    assert fingerprint_of_weights(trainer) == before and folder.path(10).read_bytes() == bytes(content)
    folder.path(10).unlink()  # as the message says
    run(trainer, DATA["shuffled"](), 2, resume=True)
    assert read_checkpoint(folder.path(10))["step"] == 10


def fingerprint_of_weights(trainer):
    return {name: tensor.numpy().tobytes() for name, tensor in trainer.model.state_dict().items()}


def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path):
    (tmp_path / "file").write_text("in the way")
    trainer = made(tmp_path / "file" / "run")
    before = fingerprint_of_weights(trainer)
    with pytest.raises(pb.ConfigurationError, match="a run cannot be written"):
        run(trainer, DATA["shuffled"]())
    assert fingerprint_of_weights(trainer) == before


def test_checkpoints_of_a_long_run_stay_small(tmp_path):
    model = pb.nn.Linear(1, 1)
    dataset = ArrayDataset(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))
    trainer = Trainer(model, pb.mse_loss, SGD(model.parameters()), folder=tmp_path, keep=1)
    sizes = []
    for epochs in (140, 300):
        trainer.fit(Batches(dataset, 1), epochs=epochs, resume=True)
        (path,) = (tmp_path / "checkpoints").glob("step*")
        sizes.append(path.stat().st_size)
        trainer.checkpoint_every = 10**9
    assert sizes[1] < 2.5 * sizes[0] < 500_000
    assert trainer.history.steps.last["step"] == 600
