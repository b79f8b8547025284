"""Settings for the whole suite; they must hold before NumPy, JAX and PyTorch are loaded."""

from __future__ import annotations

import os

for variable, value in {
    "OMP_NUM_THREADS": "1",  # the inputs are tiny and the tests run in parallel
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    # JAX is a reference here: its compilation, not its speed, is what the suite waits for.
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
}.items():
    os.environ.setdefault(variable, value)
