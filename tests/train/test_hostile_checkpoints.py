"""A checkpoint with a right checksum whose contents are not those of a run: a typed error, and nothing is changed."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import pullback as pb
from pullback.data import Batches
from pullback.files.safetensors import read_arrays, write_arrays
from pullback.optim import Adam, LossScaler, schedules
from pullback.train import EarlyStopping, JsonLines, Report, TensorBoard, Trainer
from pullback.train.checkpoints import CheckpointFolder, _checksum
from pullback.train.packing import unpacked

X, CLASSES = np.random.default_rng(3).standard_normal((10, 4)).astype(np.float32), np.arange(10) % 3
WRONG = {"none": None, "text": "x", "negative": -1, "huge": 1 << 70, "infinite": float("inf"), "list": [], "table": {}}
PLACES = [
    "step", "epoch", "seconds", "validated_at", "random", "random.key", "parts", "callbacks",
    "parts.model", "parts.optimizer.state", "parts.optimizer.param_groups.0.lr", "parts.optimizer.param_groups.0.betas",
    "parts.optimizer.state.items.0.1.step", "parts.scheduler.steps", "parts.scheduler.base_lrs",
    "parts.scheduler.base_lrs.0", "parts.scheduler.schedule", "parts.scheduler.schedule.factor",
    "parts.scaler", "parts.scaler.scale", "parts.average.updates", "parts.average.averages", "parts.best.value",
    "parts.history", "parts.history.steps.stride", "parts.history.steps.records", "parts.history.epochs.count",
    "parts.totals.sums", "parts.totals.sums.steps", "parts.totals.sums.weight", "parts.totals.metrics.accuracy._right",
    "parts.data", "parts.data.position", "parts.data.data", "parts.data.data.position",
    "callbacks.EarlyStopping 1.weights", "callbacks.EarlyStopping 1.weights.model",
    "callbacks.EarlyStopping 1.weights.average",
    "callbacks.EarlyStopping 1.waited", "callbacks.EarlyStopping 1.best.value", "callbacks.JsonLines 1.offset",
    "callbacks.TensorBoard 1.step", "callbacks.TensorBoard 1.values", "callbacks.Report 1.began",
    "callbacks.Report 1.curves", "callbacks.Report 1.curves.loss.train.width",
    "callbacks.Report 1.curves.loss.train.buckets", "callbacks.Report 1.curves.loss.train.buckets.0",
    "callbacks.Report 1.curves.loss.train.buckets.0.0",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def made(folder):
    pb.random.seed(1)
    model = pb.nn.Sequential(pb.nn.Linear(4, 3), pb.nn.BatchNorm1d(3))
    return Trainer(
        model,
        pb.cross_entropy,
        Adam(model.parameters(), lr=0.05),
        schedule=schedules.Plateau(patience=0),
        metrics=["accuracy", "f1"],
        callbacks=[EarlyStopping(patience=9, restore_best=True), JsonLines(), TensorBoard(), Report()],
        scaler=LossScaler(init_scale=64.0),
        average=0.9,
        folder=folder,
        best="validation_loss",
    )


def run(trainer, steps, **options):
    return trainer.fit(
        Batches((X, CLASSES), 4), steps=steps, validation=Batches((X, CLASSES), 5), validate_every=2, **options
    )


def rewritten(folder, place, value):
    """Change one value of the newest checkpoint's JSON, and its checksum with it."""
    checkpoints = CheckpointFolder(folder)
    path = checkpoints.path(checkpoints.steps()[-1])
    arrays, metadata = read_arrays(path)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    state = part = json.loads(metadata["state"])
    *parents, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    for key in parents:
        part = part[key]
    assert last in part if isinstance(part, dict) else part[last] is not None
    part[last] = value
    text = json.dumps(state)
    write_arrays(path, arrays, {**metadata, "state": text, "checksum": _checksum(text, arrays)})
    return path


@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_value_anywhere_is_refused_or_does_no_harm(tmp_path, place):
    run(made(tmp_path), 5)
    sound = CheckpointFolder(tmp_path).path(5).read_bytes()
    refused = 0
    for value in WRONG.values():
        for path in (tmp_path / "checkpoints").glob("step*"):
            path.unlink()
        CheckpointFolder(tmp_path).path(5).write_bytes(sound)
        path = rewritten(tmp_path, place, value)
        before = path.read_bytes()
        trainer = made(tmp_path)
        weights = {name: tensor.numpy().tobytes() for name, tensor in trainer.model.state_dict().items()}
        try:
            run(trainer, 7, resume=True)
        except pb.NumericalInstabilityError:  # a learning rate of 2**70 is one, and what it does is said
            pass
        except pb.PullbackError:
            refused += 1
            assert {name: tensor.numpy().tobytes() for name, tensor in trainer.model.state_dict().items()} == weights
            assert trainer.step == 0 and path.read_bytes() == before
    assert refused >= 2  # a text and a table are nowhere right


def test_an_array_can_be_asked_for_once():
    """Else a small file would take any amount of memory."""
    reference = {"$": "array", "name": "large"}
    with pytest.raises(pb.FileFormatError, match="cannot be read"):
        unpacked(json.dumps([reference] * 3), {"large": np.zeros(4)})


def test_a_file_with_a_name_that_is_not_quite_a_checkpoint_s_is_passed_over(tmp_path):
    run(made(tmp_path), 5)
    for name in ("step-000000099.safetensors", "step-" + 8 * "\u0667" + ".safetensors"):
        (tmp_path / "checkpoints" / name).write_bytes(b"")
    trainer = made(tmp_path)
    run(trainer, 7, resume=True)
    assert trainer.step == 7
