"""Settings for the whole suite; they must hold before NumPy, JAX and PyTorch are loaded."""

from __future__ import annotations

import os
import tempfile
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec

import pytest

for variable, value in {
    "OMP_NUM_THREADS": "1",  # the inputs are tiny and the tests run in parallel
    "OPENBLAS_NUM_THREADS": "1",
    # Compiled code is kept apart from the user's own, and found again by the other workers and the next run.
    "PULLBACK_CACHE_DIR": os.path.join(tempfile.gettempdir(), f"pullback-tests-{os.getuid()}"),
    "TRITON_INTERPRET": "0" if os.path.exists("/dev/nvidia0") else "1",  # read when Triton is imported
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    # JAX is a reference here: its compilation, not its speed, is what the suite waits for.
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
}.items():
    os.environ.setdefault(variable, value)

STRATEGIES = ("balanced", "budget", "region")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--checkpointing", choices=STRATEGIES, help="run every test under a checkpointing strategy")


def pytest_configure(config: pytest.Config) -> None:
    """Without llvmlite, a test is skipped where it calls `pb.compile`."""
    if find_spec("llvmlite") is None:
        module = import_module("pullback.compiler.calling.compiled")
        pytest.MonkeyPatch().setattr(module, "_require_target", lambda: pytest.importorskip("llvmlite"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--checkpointing") is not None:
        left_out = [item for item in items if item.get_closest_marker("plain_graph")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def _under_a_strategy(request: pytest.FixtureRequest):
    """Run the test under the strategy that was asked for, if any."""
    with _recording_under(request.config.getoption("--checkpointing")):
        yield


def _recording_under(name: str | None):
    if name is None:
        return nullcontext()
    import pullback as pb
    from pullback import modes
    from pullback.autodiff.checkpointing.strategies import Region

    if name == "region":
        return modes.changed(checkpointing=Region(None))  # as if the whole test were one call of `pb.checkpoint`
    # With nothing to spend, everything that can be computed again is.
    return pb.checkpointing(pb.BalancedCheckpointing() if name == "balanced" else pb.BudgetCheckpointing(0))
