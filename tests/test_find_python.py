"""scripts/find_python.py, which says where another Python is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "find_python.py"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="programs are shell scripts here")


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python(path: Path, version: str, free_threaded: int = 0) -> Path:
    """A program that answers as a Python of this version."""
    return program(path, f"echo {path}; echo {version}; echo {free_threaded}")


def find(version: str, *folders: Path, pyenv: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.pathsep.join(map(str, folders)), "PYENV_ROOT": str(pyenv)}
    return subprocess.run([sys.executable, SCRIPT, version], env=environment, capture_output=True, text=True)


def test_what_does_not_run_or_is_another_version_is_passed_over(tmp_path: Path) -> None:
    broken = program(tmp_path / "shims" / "python3.99", "echo 'python3.99: command not found' >&2; exit 127")
    other = python(tmp_path / "other" / "python3.99", "3.98")
    free = python(tmp_path / "free" / "python3.99", "3.99", free_threaded=1)
    wanted = python(tmp_path / "last" / "python3.99", "3.99")
    found = find("3.99", *[path.parent for path in (broken, other, free, wanted)], pyenv=tmp_path / "none")
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{wanted}\n", "")


def test_the_newest_of_pyenvs(tmp_path: Path) -> None:
    for release in ("3.99.2", "3.99.10", "3.99.9"):
        python(tmp_path / "versions" / release / "bin" / "python3.99", "3.99")
    python(tmp_path / "versions" / "3.9.1" / "bin" / "python3.9", "3.9")
    found = find("3.99", tmp_path / "none", pyenv=tmp_path)
    assert found.stdout == f"{tmp_path}/versions/3.99.10/bin/python3.99\n"


def test_none_is_said_in_one_line(tmp_path: Path) -> None:
    found = find("3.99", tmp_path, pyenv=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "Python 3.99: not found, its tests are left out\n"


def test_the_default_one_is_not_another(tmp_path: Path) -> None:
    found = find(f"{sys.version_info.major}.{sys.version_info.minor}", tmp_path, pyenv=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.endswith("this is the default one\n") and found.stderr.count("\n") == 1
