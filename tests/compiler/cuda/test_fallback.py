"""What Triton cannot compile in blocks of several rows is compiled row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.targets.cuda.loops.kernel import LoopKernel, kernel_for
from pullback.targets.kernels import Access, Loop, Step, Write

from .interpreted import torch


def _loop() -> Loop:
    steps = (
        Step("read", (), "float32"),
        Step("row_sum", (0,), "float32"),
        Step("multiply", (0, 1), "float32"),
        Step("column_sum", (2,), "float32"),
    )
    rows, whole, columns = Access("float32", (1, 0)), Access("float32", (7, 1)), Access("float32", (0, 1))
    return Loop((300,), (7,), (whole,), steps, (Write(1, rows), Write(2, whole), Write(3, columns)))


def test_a_loop_that_cannot_be_compiled_goes_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_for.cache_clear()
    kernel = kernel_for(_loop())
    assert kernel.blocks.row_block > 1
    original = LoopKernel._launch

    def launch(self: Any, arrays: Any, scratch: Any) -> None:
        if self.blocks.row_block > 1:
            raise RuntimeError("PassManager::run failed")
        original(self, arrays, scratch)

    monkeypatch.setattr(LoopKernel, "_launch", launch)
    x = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    arrays = [torch.from_numpy(x.copy()), torch.zeros(300), torch.zeros(300, 7), torch.zeros(7)]
    kernel.launch(arrays, [torch.zeros(count) for _, count in kernel.scratch])
    product = x * x.sum(1, keepdims=True)
    np.testing.assert_allclose(arrays[1].numpy(), x.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(arrays[2].numpy(), product, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(arrays[3].numpy(), product.sum(0), rtol=1e-4, atol=1e-4)
    kernel_for.cache_clear()


def test_other_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(self: Any, arrays: Any, scratch: Any) -> None:
        raise RuntimeError("out of resources")

    monkeypatch.setattr(LoopKernel, "_launch", launch)
    with pytest.raises(RuntimeError, match="out of resources"):
        LoopKernel(kernel_for(_loop()).blocks).launch([], [])
