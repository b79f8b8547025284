"""The examples that come with the command line do what they promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def train(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pullback", "train", "--folder", "run", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_digits_are_learnt_and_drawn(tmp_path):
    pytest.importorskip("sklearn")
    out = train(tmp_path, "--example", "digits")
    assert float(re.search(r"^test accuracy ([\d.]+)%$", out, re.MULTILINE)[1]) >= 97
    for name, file in {"report": "report.html", "picture": "predictions.svg"}.items():
        path = Path(re.search(rf"^{name}: +(.+)$", out, re.MULTILINE)[1])
        assert path == tmp_path / "run" / file and path.stat().st_size > 1000
    picture = (tmp_path / "run" / "predictions.svg").read_text()
    wrong = re.findall(r">(\d), is (\d)<", picture)
    right = re.findall(r'class="caption"[^>]*>(\d)<', picture)
    assert all(said != is_ for said, is_ in wrong) and len(wrong) + len(right) == 96
    assert len(wrong) == round((1 - float(re.search(r"accuracy ([\d.]+)%", out)[1]) / 100) * 359)


def test_regression_is_fitted(tmp_path):
    out = train(tmp_path, "--example", "regression", "--quiet")
    assert float(re.search(r"^test r2 ([\d.]+)$", out, re.MULTILINE)[1]) > 0.97


def test_charlm_ends_with_a_sample_and_bits_per_character(tmp_path):
    settings = ["train.steps=40", "data.characters=50_000", "model.width=32", "model.layers=1", "schedule.warmup=5"]
    out = train(tmp_path, "--example", "charlm", "--quiet", *(part for s in settings for part in ("--set", s)))
    assert 1 < float(re.search(r"^test bits per character ([\d.]+)$", out, re.MULTILINE)[1]) < 5.5
    sample = (tmp_path / "run" / "sample.txt").read_text()
    assert len(sample) == 400
    assert out.startswith("a sample of what it writes:\n    " + sample.splitlines()[0])


def test_a_signal_is_forecast_and_streamed(tmp_path):
    settings = ["train.epochs=3", "model.width=16", "model.states=4", "data.length=1500", "data.context=48"]
    out = train(tmp_path, "--example", "signal", "--quiet", *(part for s in settings for part in ("--set", s)))
    assert float(re.search(r"^test r2 ([\d.]+)$", out, re.MULTILINE)[1]) > 0.8
    count, apart = re.search(r"^streamed (\d+) steps one at a time, .* at most (\S+) from", out, re.MULTILINE).groups()
    assert count == "296" and float(apart) < 1e-5  # the last 300, as far as windows and what follows them go
    report = (tmp_path / "run" / "report.html").read_text()
    assert [report.count(f">Channel {number}: 24 steps ahead<") for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    picture = (tmp_path / "run" / "predictions.svg").read_text()
    assert "forecast" in picture and "Channel 1" in picture


def test_what_was_marked_is_copied_by_a_model_that_chooses_and_not_by_one_that_cannot(tmp_path):
    settings = [
        "data.samples=6000", "data.length=40", "data.marked=3", "data.symbols=4", "model.width=16",
        "optimizer.lr=0.02", "schedule.warmup=20", "train.steps=400", "train.validate_every=1000",
        "train.checkpoint_every=1000",
    ]  # fmt: skip
    found = {}
    for layer in ("mamba", "s4d"):
        chosen = [*settings, f"model.layer={layer}"]
        (tmp_path / layer).mkdir()
        out = train(tmp_path / layer, "--example", "copying", "--quiet", *(p for s in chosen for p in ("--set", s)))
        found[layer] = float(re.search(r"^test accuracy ([\d.]+)%$", out, re.MULTILINE)[1])
    assert found["mamba"] > 93 and found["s4d"] < 90, found
