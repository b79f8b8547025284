"""The time of an import in a fresh process: median of many, and what else is loaded by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from . import peers
from .measure import Effort, Measurement

NAME = "import"
SYSTEMS = ("pullback", "numpy", "autograd", "mygrad", "jax", "torch", "mlx")
NOTES = (
    "median over fresh processes, which take turns; bytecode is cached for all of them, as for installed packages.",
)

IMPORTS = {"autograd": "autograd.numpy", "jax": "jax.numpy", "mlx": "mlx.core"}

# Modules that `import pullback` must leave alone, because each costs more than Pullback itself.
HEAVY = ("torch", "jax", "jaxlib", "cupy", "scipy", "sklearn", "llvmlite", "numba", "ml_dtypes", "pandas", "matplotlib")

_PROGRAM = """
import json, sys, time
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {heavy!r} if name in sys.modules]]))
"""


def run(effort: Effort) -> Iterator[Measurement]:
    rounds = 1 if effort.is_quick else 21
    systems = peers.installed(("pullback", "numpy") if effort.is_quick else SYSTEMS)
    seconds: dict[str, list[float]] = {system: [] for system in systems}
    heavy: list[str] = []
    for turn in range(rounds + 1):
        for system in systems:
            taken, loaded = import_in_new_process(IMPORTS.get(system, system))
            if turn > 0 or effort.is_quick:  # the first turn fills the disk's cache
                seconds[system].append(taken)
            if system == "pullback":
                heavy = loaded
    for system, samples in seconds.items():
        yield Measurement(NAME, "fresh process", system, "time", median(samples) * 1e6, "us")
    yield Measurement(NAME, "fresh process", "pullback", "heavy modules loaded", len(heavy), "modules")
    if heavy:
        print(f"import pullback loads {', '.join(heavy)}", file=sys.stderr)


def import_in_new_process(module: str) -> tuple[float, list[str]]:
    """How long `import module` takes in seconds, and which of the modules in `HEAVY` are loaded after it."""
    program = _PROGRAM.format(module=module, heavy=HEAVY)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"import {module} failed:\n{result.stderr}")
    seconds, loaded = json.loads(result.stdout.splitlines()[-1])
    return seconds, loaded
