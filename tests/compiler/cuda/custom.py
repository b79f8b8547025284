"""Kernels of whole operations in Triton's interpreter, in place of native ones: for the tests of those."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.torch_memory import torch_dtype
from pullback.targets.cuda.kernels.table import kernel_for

from ..loops.evaluation import dtype_of
from .interpreted import tensor_at, torch


def run(emit: Any, kernel: Any, arrays: list[np.ndarray], parts: int = 1) -> None:
    """Run a kernel on its arrays; `emit` and `parts` are for native ones."""
    made = kernel_for(kernel)
    scratch = [torch.full((count + 64,), 77, dtype=torch_dtype(dtype_of(dtype))) for dtype, count in made.scratch]
    with np.errstate(all="ignore"):
        made.launch([tensor_at(array) for array in arrays], scratch)
    for part, (_, count) in zip(scratch, made.scratch):
        assert (part[count:] == 77).all(), "wrote behind its own memory"
