"""Reductions of loops that threads share: parts have results of their own, which are combined."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.targets.kernels import Access, Loop, Step, Write
from pullback.targets.llvm.runtime import sharing
from pullback.targets.llvm.runtime.executable import build

from .kernels import Builder, run

REFERENCES = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all,
}  # fmt: skip
ROWS, COLUMNS = 400, 257


@pytest.fixture(autouse=True)
def sharing_always_pays(monkeypatch):
    monkeypatch.setattr(sharing, "PART_COST", 1.0)
    monkeypatch.setattr(sharing, "COMBINING_COST", 0.0)


def executed(loop: Loop, x: np.ndarray, out: np.ndarray, threads: int) -> int:
    """Run a loop of one input and one output; how many threads shared it."""
    builder = Builder()
    given, made = builder.input(x.nbytes // 8 + 1), builder.output(out.nbytes // 8 + 1)
    builder.call(loop, [given], [made])
    executable = build(builder.schedule, threads)
    run(executable, [x], [out])
    return executable.threads


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("operation", REFERENCES)
def test_totals(operation, threads):
    rng = np.random.default_rng(0)
    if operation in ("any", "all"):
        dtype, x = "bool", np.full((ROWS * 30, COLUMNS), operation == "all")
        x[-1, -1] = operation == "any"  # what decides is in the last part
    elif operation == "prod":
        dtype, x = "float64", rng.uniform(0.9995, 1.0005, size=(ROWS, COLUMNS))
    else:
        dtype, x = "float64", rng.normal(size=(ROWS, COLUMNS))
    rows, columns = x.shape
    steps = (Step("read", (), dtype), Step(f"total_{operation}", (0,), dtype))
    read, write = Access(dtype, (columns, 1)), Access(dtype, (0, 0))
    loop = Loop((rows,), (columns,), (read,), steps, (Write(1, write),))
    out = np.zeros(1, dtype)
    assert executed(loop, x, out, threads) == threads
    np.testing.assert_allclose(out[0], REFERENCES[operation](x), rtol=1e-9)


@pytest.mark.parametrize("operation", ["max", "min"])
@pytest.mark.parametrize("position", [0, -1])
def test_nan_in_any_part_is_the_extreme(operation, position):
    x = np.random.default_rng(1).normal(size=(ROWS, COLUMNS))
    x[position, position] = np.nan
    steps = (Step("read", (), "float64"), Step(f"total_{operation}", (0,), "float64"))
    read, write = Access("float64", (COLUMNS, 1)), Access("float64", (0, 0))
    out = np.zeros(1)
    assert executed(Loop((ROWS,), (COLUMNS,), (read,), steps, (Write(1, write),)), x, out, 4) == 4
    assert np.isnan(out[0])


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_columns(dtype, threads):
    x = (np.random.default_rng(2).normal(size=(ROWS * 10, COLUMNS)) * 100).astype(dtype)
    steps = (Step("read", (), dtype), Step("column_sum", (0,), dtype))
    loop = Loop(
        (len(x),), (COLUMNS,), (Access(dtype, (COLUMNS, 1)),), steps, (Write(1, Access(dtype, (0, 1))),)
    )  # fmt: skip
    out = np.zeros(COLUMNS, dtype)
    assert executed(loop, x, out, threads) == threads
    np.testing.assert_allclose(
        out, x.sum(0), rtol=1e-12 if dtype != "float32" else 1e-4, atol=0.5 * (dtype == "float32")
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_columns_of_two_axes_written_in_another_order(threads):
    x = np.random.default_rng(3).normal(size=(ROWS * 4, 6, 50))
    steps = (Step("read", (), "float64"), Step("column_sum", (0,), "float64"))
    read, write = Access("float64", (300, 50, 1)), Access("float64", (0, 1, 6))
    loop = Loop((len(x),), (6, 50), (read,), steps, (Write(1, write),))
    out = np.zeros((50, 6))
    assert executed(loop, x, out, threads) == threads
    np.testing.assert_allclose(out, x.sum(0).T, rtol=1e-12, atol=1e-12)
