"""The demo does its job."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_digits_are_learnt_and_drawn(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--epochs", "10", "--output", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    accuracy = float(re.search(r"^test accuracy ([\d.]+)%", result.stdout, re.MULTILINE)[1])
    assert accuracy > 93
    assert "epoch  10 of 10" in result.stdout
    picture = tmp_path / "digits.png"
    assert str(picture) in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
