"""These tests need PyTorch and Triton's interpreter; on a machine with a GPU kernels are compiled instead."""

from __future__ import annotations

import os
from importlib.util import find_spec

#: What the tests run on: the interpreter works in the memory of the processor.
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

if find_spec("torch") is None or find_spec("triton") is None or not IS_INTERPRETED:
    collect_ignore_glob = ["test_*.py"]
