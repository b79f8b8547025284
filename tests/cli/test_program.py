"""The program as a whole: help, version, the ways to start it, and what becomes of a bug."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import pullback as pb
from pullback.cli import configuration, devices


def test_version(pullback):
    assert pullback("--version")[:2] == (0, f"pullback {pb.__version__}\n")


@pytest.mark.parametrize("command", [[], ["train"], ["check"]])
def test_help_has_examples(pullback, command):
    result = pullback(*command, "--help")
    assert result.code == 0
    assert f"examples:\n  {' '.join(['pullback', *command])}" in result.out


def test_python_m_is_the_same_program():
    result = subprocess.run([sys.executable, "-m", "pullback", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"pullback {pb.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["trian"], ["devices", "--fast"], ["check"]])
def test_wrong_usage(pullback, arguments):
    result = pullback(*arguments)
    assert result.code == 2
    assert result.err.startswith("usage: pullback")


def test_a_bug_shows_its_traceback(pullback, monkeypatch):
    def run(options):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(devices, "run", run)
    result = pullback("devices")
    assert result.code == 1
    assert "RuntimeError: unforeseen" in result.err and "Traceback" in result.err
    assert result.err.endswith("this is a bug in Pullback. Please report it with the lines above.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "pullback: interrupted"),
        (PermissionError(13, "Permission denied", "/some/file"), 2, "pullback: error: /some/file: Permission denied"),
        (MemoryError("9 GiB were asked for"), 2, "pullback: error: out of memory. 9 GiB were asked for"),
    ],
)
def test_what_is_no_bug_shows_a_line(pullback, monkeypatch, error, code, message):
    def run(options):
        raise error

    monkeypatch.setattr(devices, "run", run)
    assert pullback("devices") == (code, "", message + "\n")


@pytest.mark.parametrize("name", configuration.examples())
def test_a_configuration_to_start_from(pullback, tmp_path, name):
    printed = pullback("train", "--example", name, "--print-config")
    assert printed.code == 0 and printed.out == configuration.example_text(name)
    (tmp_path / "mine.toml").write_text(printed.out)
    complete = pullback("train", "mine.toml", "--print-config", "--set", "seed=5")
    assert complete.code == 0 and "seed = 5" in complete.out
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.toml"]


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "pullback", "train", "--example", "digits", "--print-config"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()  # before it can have written anything
    assert (process.wait(), process.stderr.read()) == (0, "")
    process.stderr.close()


def test_a_terminal_without_a_character_is_no_error(tmp_path):
    (tmp_path / "text.txt").write_text("äöüß" * 100, encoding="utf-8")
    settings = ["data.source=text.txt", "data.test_fraction=0.2", "model.width=8", "train.steps=2", "schedule.warmup=0"]
    command = [sys.executable, "-m", "pullback", "train", "--example", "charlm", "--quiet"]
    command += [part for setting in settings for part in ("--set", setting)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^    (\\x[ef][46cf]|\\xdf)+$", result.stdout, re.MULTILINE)


def test_help_loads_nothing_heavy():
    heavy = ("torch", "jax", "sklearn", "rich", "pullback.nn", "pullback.train")
    program = f"""
import sys
from pullback.cli import main
try:
    main(["--help"])
except SystemExit:
    print([name for name in {heavy!r} if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("[]\n")
