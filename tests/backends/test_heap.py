"""Memory that a step frees is there for the next one: the operating system is not asked for it again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pullback.backends import heap

from .installed import needs_llvmlite, require

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's heap")

STEPS = """
import resource, sys
import numpy as np
import pullback as pb

w = pb.asarray(np.ones((512, 512), np.float32), device=sys.argv[1].replace("compiled", "numpy")).set_requires_grad(True)

def step():
    x = w
    for _ in range(30):
        x = pb.silu(x)
    pb.backward(x.sum())

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "compiled":
    step = pb.compile(lambda w=pb.asarray(np.ones((1024, 1024), np.float32)): (w + 1, w * 2))

for _ in range(4):
    step()
before = faults()
for _ in range(4):
    step()
print(faults() - before)
"""


@needs_glibc
@pytest.mark.parametrize(
    "device",
    [pytest.param("numpy", marks=needs_llvmlite), pytest.param("compiled", marks=needs_llvmlite), "torch:cpu"],
)
def test_a_step_takes_the_memory_of_the_one_before(device):
    require(device.replace("compiled", "numpy"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", STEPS, device]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2000  # pages; a step alone has 8,000


@pytest.mark.parametrize(
    ("name", "value", "count"),
    [("MALLOC_TRIM_THRESHOLD_", "131072", 0), ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072", 0),
     ("GLIBC_TUNABLES", "glibc.rtld.nns=4", 2)],
)  # fmt: skip
def test_what_the_environment_says_about_the_heap_stays(monkeypatch, name, value, count):
    calls = []
    for known in [known for known in os.environ if known.startswith(("MALLOC_", "GLIBC_"))]:
        monkeypatch.delenv(known)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(heap, "_is_done", False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(
        heap, "ctypes", SimpleNamespace(CDLL=lambda _: SimpleNamespace(mallopt=lambda *a: calls.append(a)))
    )
    heap.keep_freed_memory()
    heap.keep_freed_memory()
    assert len(calls) == count
