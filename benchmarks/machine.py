"""What figures depend on: the processor, as its maker calls it, and how many of its cores are ours."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from pathlib import Path


def machine() -> str:
    """For example "2 cores of AMD EPYC 9B14"."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        names = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        processor = names[0] if names else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {processor}"
