"""Loops as Triton kernels, in Triton's interpreter, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.backends.torch_memory import torch_dtype
from pullback.targets.cuda.loops import blocks
from pullback.targets.cuda.loops.kernel import kernel_for
from pullback.targets.kernels import Access, Loop, Step, Write

from ..loops.evaluation import RandomLoop, dtype_of
from ..loops.test_random_loops import DTYPES
from .interpreted import tensor_at, torch

SEEDS = 16


def run(loop: Loop, arrays: list[np.ndarray]) -> None:
    kernel = kernel_for(loop)
    parts = [torch.full((count + 64,), 77, dtype=torch_dtype(dtype_of(dtype))) for dtype, count in kernel.scratch]
    with np.errstate(all="ignore"):
        kernel.launch([tensor_at(array) for array in arrays], parts)
    for part, (_, count) in zip(parts, kernel.scratch):
        assert (part[count:] == 77).all(), "wrote behind the parts"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("dtypes", DTYPES)
def test_a_random_loop_computes_what_numpy_does(dtypes: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *dtypes.encode()])
    RandomLoop(rng, DTYPES[dtypes], plain=seed % 3 == 0).check(run)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtypes", DTYPES)
def test_a_random_loop_of_long_rows(dtypes: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are gone over in pieces, by few programs."""
    monkeypatch.setattr(blocks, "_LONGEST_ROW", 4)
    monkeypatch.setattr(blocks, "_LONG_BLOCK", 8)
    monkeypatch.setattr(blocks, "_MOST_STRIPES", 3)
    kernel_for.cache_clear()
    rng = np.random.default_rng([seed, 3, *dtypes.encode()])
    RandomLoop(rng, DTYPES[dtypes], plain=seed % 3 == 0).check(run)
    kernel_for.cache_clear()


@pytest.mark.parametrize(("rows", "columns"), [(64, 96), (3, 300), (300, 5)])
def test_totals_beside_sums_of_columns(rows: int, columns: int) -> None:
    """Every program has a part of a total, also where it has columns for itself."""
    whole, by_column, once = (Access("float32", strides) for strides in ((columns, 1), (0, 1), (0, 0)))
    steps = (
        Step("read", (), "float32"),
        Step("column_sum", (0,), "float32"),
        Step("square", (0,), "float32"),
        Step("total_sum", (2,), "float32"),
        Step("total_max", (0,), "float32"),
        Step("isfinite", (0,), "bool"),
        Step("total_all", (5,), "bool"),
    )
    writes = (Write(1, by_column), Write(3, once), Write(4, once), Write(6, Access("bool", (0, 0))))
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    x[1, 0] = np.nan
    out = [np.zeros(columns, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32), np.ones(1, bool)]
    run(Loop((rows,), (columns,), (whole,), steps, writes), [x, *out])
    np.testing.assert_allclose(out[0], x.sum(0), rtol=1e-5, atol=1e-5)
    assert np.isnan(out[1]) and np.isnan(out[2]) and not out[3]
    x[1, 0] = 7.0
    run(Loop((rows,), (columns,), (whole,), steps, writes), [x, *out])
    np.testing.assert_allclose(out[1], (x * x).sum(), rtol=1e-5)
    assert out[2] == 7.0 and out[3]


@pytest.mark.parametrize(("rows", "columns"), [(70, 64), (5, 16), (40, 200), (3000, 16)])
def test_numbers_that_columns_have_are_read_once_for_a_block_of_rows(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    x, u, v = (rng.normal(size=shape).astype(np.float32) for shape in ((rows, columns), (columns,), (columns,)))
    element, column = Access("float32", (columns, 1)), Access("float32", (0, 1))
    steps = (
        *[Step("read", (), "float32", n) for n in range(3)],
        Step("multiply", (0, 1), "float32"),
        Step("exp", (2,), "float32"),
        Step("add", (3, 4), "float32"),
    )
    loop = Loop((rows,), (columns,), (element, column, column), steps, (Write(5, element),))
    assert blocks.blocks_of(loop).kind == "columns"
    out = np.zeros_like(x)
    run(loop, [x, u, v, out])
    np.testing.assert_allclose(out, x * u + np.exp(v), 1e-5, 1e-5)
