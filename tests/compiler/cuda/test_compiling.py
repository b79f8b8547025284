"""Kernels of whole operations can be compiled where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_every_kernel_is_compiled_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.compiler.cuda.compiling"]
    root = Path(__file__).parents[3]
    result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "functions compiled" in result.stdout
