"""Eight devices give what one gives: sharded arrays, the user's own `jax.jit` and `jax.shard_map`, compiled steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ...backends.installed import require

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found() -> Any:
    """What `eight_devices.py` says: how many devices there are must be known before JAX begins."""
    require("jax:cpu")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.compiler.xla.eight_devices"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **flags}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_arrays_on_several_devices_are_named_by_the_first(found: Any) -> None:
    assert found["count"] == 8
    assert found["device"] == "jax:cpu"


@pytest.mark.parametrize("way", ["operation by operation", "jit", "shard_map", "a compiled function inside jit"])
def test_gradients_are_those_of_one_device(found: Any, way: str) -> None:
    np.testing.assert_allclose(found["gradients"][way], found["gradients"]["one device"], rtol=1e-5, atol=1e-7)


def test_a_compiled_step_leaves_parameters_spread_and_the_same(found: Any) -> None:
    alone, together = found["weights"]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)
    assert found["devices"] == [1, 8]
