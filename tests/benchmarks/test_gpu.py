"""The scripts for GPUs run, on devices that every machine has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.gpu.{module}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_operations_are_counted_per_device():
    result = run("operations", "--processes", "1", "--samples", "5", "numpy", "nowhere")
    assert result.returncode == 1, result.stderr
    assert "unknown device 'nowhere'" in result.stdout
    rows = [line.split()[:4] for line in result.stdout.splitlines()[-2:]]
    assert rows == [["numpy", "5", "0", "0"], ["nowhere", "0", "5", "0"]]


def test_operations_that_do_not_finish_in_time_are_counted():
    result = run("operations", "--processes", "1", "--samples", "5", "--limit", "0", "numpy")
    assert result.returncode == 1, result.stderr
    assert result.stdout.splitlines()[-1].split()[:4] == ["numpy", "0", "0", "5"]


def test_scans_beside_copies_of_as_many_bytes(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    path = tmp_path / "rows.json"
    result = run("scan", "--small", "--systems", "pullback,jax", "--json", str(path))
    assert result.returncode == 0, result.stderr
    rows = json.loads(path.read_text())
    assert {(row["work"], row["system"]) for row in rows if row["part"] == "both"} == {
        ("linear", "pullback eager"), ("linear", "pullback compiled"), ("linear", "jax associative_scan"),
        ("linear", "jax scan"), ("selective", "pullback eager"), ("selective", "pullback compiled"),
        ("selective", "jax"),
    }  # fmt: skip
    assert all(row["milliseconds"] > 0 for row in rows)
    assert "linear both: pullback" in result.stdout
