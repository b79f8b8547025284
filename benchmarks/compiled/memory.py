"""The peak memory of a GPT step in steady state: the process's own, in a process for each system."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .. import peers
from ..measure import Effort, Measurement

# Writing 5 there starts the high-water mark anew (Linux).
_STEPS = """
import gc, sys
from benchmarks.compiled import gpt
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
if sys.argv[1] == "torch":
    import torch
    torch.set_num_threads(2)
    torch.nn.Linear(2, 2)(torch.zeros(1, 2)).sum().backward()
else:
    import pullback as pb
    warm = pb.compile(lambda x: x * 2)
    warm(pb.asarray([1.0]))
    pb.nn.Linear(2, 2)
gc.collect()
before = status("VmRSS")
step = getattr(gpt, sys.argv[1])()
for _ in range(3):
    step()
gc.collect()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
for _ in range(3):
    step()
print(status("VmHWM") - before)
"""


def measured(benchmark: str, effort: Effort) -> Iterator[Measurement]:
    if not Path("/proc/self/clear_refs").exists():
        return
    with tempfile.TemporaryDirectory() as cache:
        for system in peers.installed(("pullback", "torch")):
            if system == "pullback":
                _peak(system, cache)  # leaves its code in the cache, so that the compiler's own memory is not counted
            yield Measurement(benchmark, "gpt", system, "memory", _peak(system, cache), "bytes")


def _peak(system: str, cache: str) -> float:
    folder = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", _STEPS, system]
    environment = {**os.environ, "PULLBACK_CACHE_DIR": cache}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
    return float(done.stdout.split()[-1])
