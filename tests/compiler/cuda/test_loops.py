"""Loops as Triton kernels, in Triton's interpreter, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.backends.torch_memory import torch_dtype
from pullback.targets.cuda.loops import blocks
from pullback.targets.cuda.loops.kernel import kernel_for
from pullback.targets.kernels import Loop

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
