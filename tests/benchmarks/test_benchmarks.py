"""Every benchmark runs and prints what it should. Nothing here depends on how long anything takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as program, measure, peers, report

ROOT = Path(__file__).parents[2]
FIELDS = {"benchmark": str, "workload": str, "system": str, "metric": str, "value": (int, float), "unit": str}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


#: The language model takes a minute, most of it in the peers' compilers: in the long product alone.
SHORT = {"compiled": "mlp-tiny scan", "eager-networks": "depthwise"}


@pytest.mark.parametrize(
    ("name", "workloads"),
    [
        *[(name, SHORT.get(name, "")) for name in program.BENCHMARKS],
        *[pytest.param(name, "", marks=pytest.mark.slow) for name in SHORT],
    ],
)
def test_json_lines(name, workloads):
    if name in ("compiled", "audits", "xla"):
        pytest.importorskip("llvmlite")
    if name == "xla":
        pytest.importorskip("jax")
    result = run("--quick", "--json", name, WORKLOADS=workloads)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    for line in lines:
        assert line.keys() == FIELDS.keys()
        assert all(isinstance(line[field], kind) for field, kind in FIELDS.items())
        assert line["benchmark"] == name
        assert line["value"] >= 0
    systems = {line["system"] for line in lines}
    assert program.BENCHMARKS[name].SYSTEMS[0] in systems
    assert len(systems) > 1 or len(peers.installed(program.BENCHMARKS[name].SYSTEMS)) == 1
    keys = [(line["workload"], line["system"], line["metric"]) for line in lines]
    assert len(keys) == len(set(keys))


def test_table_has_a_ratio_to_each_peer():
    result = run("--quick", "chain")
    assert result.returncode == 0, result.stderr
    for system in peers.installed(program.BENCHMARKS["chain"].SYSTEMS):
        (line,) = [line for line in result.stdout.splitlines() if line.strip().startswith(system + " ")]
        if system != "pullback":
            assert float(line.split()[-1]) > 0


def test_missing_peer_is_left_out_and_named(monkeypatch, capsys):
    monkeypatch.setitem(peers.MODULES, "torch", "no_such_module")
    program.main(["--quick", "--json", "deep"])
    output = capsys.readouterr()
    assert "torch" not in output.out
    assert "left out because not installed: torch" in output.err


def test_unknown_name_is_refused_with_the_names_there_are():
    result = run("nonsense")
    assert result.returncode == 2
    assert "no benchmark nonsense; there are chain, eager-mlp" in result.stderr


def test_systems_take_turns():
    calls = []
    functions = {name: lambda name=name: calls.append(name) for name in "ab"}
    measure.best_times(functions, measure.Effort(rounds=3, seconds=0.0))
    assert "".join(calls[-6:]) == "abbaab"


def test_systems_that_disagree_are_not_timed():
    with pytest.raises(AssertionError, match="work: b computes"):
        peers.check_equal({"a": np.array([1.0]), "b": np.array([2.0])}, "work")


def test_report_sorts_by_value_and_gives_ratios():
    rows = [measure.Measurement("chain", "w", s, "time", v, "us") for s, v in (("torch", 200.0), ("pullback", 100.0))]
    assert report.table(rows).splitlines() == [
        "w               time  pullback /",
        "  pullback  100.0 us",
        "  torch     200.0 us        0.50",
    ]
