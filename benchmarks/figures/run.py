"""A run of benchmarks that is kept: its measurements, the machine, the versions, the day."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..machine import machine
from ..measure import Measurement

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("run.json")
#: What the tables show, as the names of benchmarks, in the order in which they run.
BENCHMARKS = (
    "chain",
    "eager-mlp",
    "eager-networks",
    "mlp",
    "memory",
    "checkpointing",
    "deep",
    "second-order",
    "per-example",
    "scan",
    "compiled",
    "torch-cpu",
    "xla",
    "finetune",
    "import",
)
LIBRARIES = {
    "numpy": "NumPy",
    "llvmlite": "llvmlite",
    "torch": "PyTorch",
    "jax": "JAX",
    "autograd": "autograd",
    "mygrad": "MyGrad",
    "mlx": "MLX",
    "transformers": "transformers",
    "peft": "peft",
}


@dataclass
class Run:
    """Everything that the tables are made from."""

    day: str
    commit: str
    machine: str
    python: str
    versions: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)  # benchmarks that were measured once more, and at which commit

    def __post_init__(self) -> None:
        self._values = {(m.benchmark, m.workload, m.system, m.metric): m for m in self.measurements}

    def __getitem__(self, key: tuple[str, str, str, str]) -> Measurement:
        """The measurement of a benchmark, a workload, a system and a metric."""
        try:
            return self._values[key]
        except KeyError:
            raise KeyError(
                f"the run has no {' / '.join(key)}: measure with `python -m benchmarks.figures run`"
            ) from None

    def write(self, path: Path) -> None:
        """Write the run as JSON, whole or not at all."""
        content = asdict(self)
        lines = ",\n".join("    " + json.dumps(m) for m in content.pop("measurements"))
        head = json.dumps(content, indent=2).removesuffix("\n}")
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(f'{head},\n  "measurements": [\n{lines}\n  ]\n}}\n')
        beside.replace(path)

    def with_again(self, other: Run) -> Run:
        """This run with the measurements of another one in the place of those of the same benchmarks."""
        for name in ("machine", "python", "versions"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"{name} is {getattr(other, name)}, the kept run has {getattr(self, name)}: measure everything."
                )
        names = {m.benchmark for m in other.measurements}
        kept = [m for m in self.measurements if m.benchmark not in names]
        again = self.again | dict.fromkeys(sorted(names), other.commit)
        return replace(self, measurements=kept + other.measurements, again=again)

    @classmethod
    def read(cls, path: Path) -> Run:
        content = json.loads(path.read_text())
        measurements = [Measurement(**m) for m in content.pop("measurements")]
        return cls(**content, measurements=measurements)


def measure(names: Iterable[str] = BENCHMARKS, quick: bool = False) -> Run:
    """Run benchmarks, each in a process of its own, with two threads; what they print goes to the terminal."""
    measurements: list[Measurement] = []
    for name in names:
        start = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks", "--json", *["--quick"] * quick, name]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | _THREADS, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"the benchmark {name} failed (exit code {done.returncode}); nothing is written")
        measurements += [Measurement(**json.loads(line)) for line in done.stdout.splitlines()]
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return Run(
        time.strftime("%Y-%m-%d"), _commit(), machine(), platform.python_version(), _versions(), measurements
    )  # fmt: skip


_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")


def _commit() -> str:
    """What was measured, as git names it, with a mark if files were changed since."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def _versions() -> dict[str, str]:
    found: dict[str, Any] = {}
    for name, shown in LIBRARIES.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[shown] = importlib.metadata.version(name)
    return found
