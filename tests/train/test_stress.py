"""Broken files, a full disk, and SIGTERM at any moment: errors of ours, and nothing lost."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.train import JsonLines, Report, Trainer
from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from tests.train.test_resume_after_kill import finish, started

HERE = Path(__file__).parent


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutated_files_are_read_or_refused_with_an_error_of_ours(tmp_path, count):
    """In a process of its own, which must not die either."""
    environment = {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-X", "faulthandler", str(HERE / "mutated_files.py"), str(count), str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]
    outcomes = json.loads(result.stdout)
    assert sum(outcomes.values()) == count and outcomes["FileFormatError"] > count / 3, outcomes
    assert set(outcomes) <= {"read", "FileFormatError", "ConfigurationError"}, outcomes


# -- a full disk -------------------------------------------------------------------------------------


X = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)


def made(folder):
    pb.random.seed(1)
    model = pb.nn.Sequential(pb.nn.Linear(30, 64), pb.nn.ReLU(), pb.nn.Linear(64, 1))
    return Trainer(
        model,
        pb.mse_loss,
        pb.optim.Adam(model.parameters()),
        callbacks=[JsonLines(), Report()],
        folder=folder,
        checkpoint_every=2,
        best="validation_loss",
    )


def fit(trainer, steps=8, **options):
    data = pb.data.Batches((X, X[:, :1]), 10, shuffle=True, seed=2)
    return trainer.fit(data, steps=steps, validation=data, **options)


def weights(trainer):
    return {name: tensor.numpy().tobytes() for name, tensor in trainer.model.state_dict().items()}


def small_disk(path: Path, kilobytes: int) -> bool:
    """Whether a file system of that size could be mounted."""
    path.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def largest_file():
    """Set how large a file may become: writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that it is an error, not the end
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [0, 300, 20_000])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_cannot_be_written_whole_loses_nothing(tmp_path, largest_file, size, overwrite):
    expected = made(tmp_path / "undisturbed")
    fit(expected)
    trainer = made(tmp_path / "run")
    fit(trainer, steps=4)
    sound = {path.name: path.read_bytes() for path in (tmp_path / "run" / "checkpoints").glob("step*")}
    largest_file(size)
    try:
        with pytest.raises((OSError, pb.ConfigurationError), match="File too large"):
            fit(made(tmp_path / "run"), **({"overwrite": True} if overwrite else {"resume": True}))
    finally:
        largest_file(resource.RLIM_INFINITY)
    again = made(tmp_path / "run")
    fit(again, resume=True)
    assert weights(again) == weights(expected)
    assert not list((tmp_path / "run").rglob("*.part")) and not (tmp_path / "run" / "replaced-run").exists()
    assert CheckpointFolder(tmp_path / "run").steps() == [6, 8] and sound


@pytest.mark.parametrize("kilobytes", [60, 120])
def test_a_full_disk_loses_nothing(tmp_path, kilobytes):
    disk = tmp_path / "disk"
    if not small_disk(disk, kilobytes):
        pytest.skip("no file system can be mounted here; a limit on the size of files is tested instead")
    try:
        with pytest.raises((OSError, pb.ConfigurationError), match="No space left"):
            fit(made(disk / "run"), steps=40)
        steps = CheckpointFolder(disk / "run").steps()
        for step in steps:
            assert read_checkpoint(CheckpointFolder(disk / "run").path(step))["step"] == step
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        again, expected = made(disk / "run"), made(tmp_path / "undisturbed")
        fit(again, steps=40, resume=True)
        fit(expected, steps=40)
        assert weights(again) == weights(expected)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# -- SIGTERM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_a_run_terminated_again_and_again_ends_as_an_undisturbed_one(tmp_path, times):
    epochs = 2 + times * 4
    undisturbed = started(tmp_path / "undisturbed", epochs, 0)
    moments = random.Random(times)
    for _ in range(times):
        process = started(tmp_path / "terminated", epochs, 0)
        for _ in range(1 + moments.randrange(12)):
            assert process.stdout.readline()
        time.sleep(moments.uniform(0, 0.01))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and b"Terminated: ending after this step" in errors, errors.decode()
        step = CheckpointFolder(tmp_path / "terminated").steps()[-1]
        assert f"Stopped after step {step}:".encode() in errors
    last = started(tmp_path / "terminated", epochs, 0)
    finish(undisturbed)
    finish(last)
    for name in ("final.safetensors", "best.safetensors", "losses.txt"):
        expected = (tmp_path / "undisturbed" / name).read_bytes()
        assert (tmp_path / "terminated" / name).read_bytes() == expected, name
