"""A run killed at any moment and resumed ends with the weights of an undisturbed one, bit for bit."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pullback.train.checkpoints import CheckpointFolder, read_checkpoint
from pullback.train.jsonl import read_log

PROGRAM = Path(__file__).with_name("killed_run.py")
STEPS_PER_EPOCH = 9


def started(folder: Path, epochs: int, prefetch: int) -> subprocess.Popen:
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": source, "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(PROGRAM), str(folder), str(epochs), str(prefetch)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def kill_at_a_random_moment(process: subprocess.Popen, folder: Path, moments: random.Random, most_steps: int) -> None:
    """While it starts; or after some steps and a few milliseconds; or then, as soon as it is seen writing a file."""
    kind = moments.random()
    if kind < 0.15:
        time.sleep(moments.uniform(0, 0.3))
    else:
        for _ in range(1 + moments.randrange(most_steps)):
            line = process.stdout.readline()
            assert line, process.stderr.read().decode()
        time.sleep(moments.uniform(0, 0.012))
        give_up = time.monotonic() + (0.2 if kind > 0.6 else 0.0)
        while time.monotonic() < give_up and not is_writing(folder):
            pass
    process.kill()
    process.communicate()
    assert process.returncode == -9, "the run was over before it could be killed"


def is_writing(folder: Path) -> bool:
    return any(name.endswith(".part") for name in os.listdir(folder / "checkpoints"))


def check_files(folder: Path) -> bool:
    """Every file with the name of a checkpoint is sound; whether something half written was left behind."""
    checkpoints = CheckpointFolder(folder)
    for step in checkpoints.steps():
        assert read_checkpoint(checkpoints.path(step))["step"] == step
    return checkpoints.folder.is_dir() and any(checkpoints.folder.glob(".*.part"))


@pytest.mark.parametrize(
    ("kills", "prefetch"),
    [(5, 0), (4, 3), pytest.param(50, 0, marks=pytest.mark.slow), pytest.param(50, 2, marks=pytest.mark.slow)],
)
def test_a_run_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path, kills, prefetch):
    most_steps = 12
    epochs = 2 + kills * (most_steps + 24) // STEPS_PER_EPOCH  # so many that no kill comes too late
    undisturbed = started(tmp_path / "undisturbed", epochs, prefetch)
    moments = random.Random(kills + prefetch)
    cut_off = 0
    for _ in range(kills):
        process = started(tmp_path / "killed", epochs, prefetch)
        kill_at_a_random_moment(process, tmp_path / "killed", moments, most_steps)
        cut_off += check_files(tmp_path / "killed")
    last = started(tmp_path / "killed", epochs, prefetch)
    finish(undisturbed)
    finish(last)
    for name in ("final.safetensors", "best.safetensors", "losses.txt"):
        expected = (tmp_path / "undisturbed" / name).read_bytes()
        assert (tmp_path / "killed" / name).read_bytes() == expected, name
    logs = [read_log(tmp_path / run / "log.jsonl") for run in ("undisturbed", "killed")]
    for log in logs:
        for line in log:
            for name in ("seconds", "samples_per_second", "steps_per_second", "time"):
                line.pop(name, None)
    assert logs[0] == logs[1]
    assert not check_files(tmp_path / "killed")
    if kills >= 50:
        assert cut_off >= 5, "too few kills came while a checkpoint was being written"
