"""The Triton kernels, in Triton's interpreter: no GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .installed import require

CODE = """
import torch
from torch.nn import functional
from pullback.backends import torch_triton as kernels

torch.manual_seed(0)
for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
    for classes in (5, 65, 5000):  # fewer than a block, and more than one
        x = (3 * torch.randn(7, classes + 3)).to(dtype)[:, :classes]  # rows with a gap between them
        x[0, 1], x[2, 0], x[3, 4] = -float("inf"), float("inf"), 40.0
        target = torch.tensor([1, 0, -100, 4, 2, 3, 0])
        losses, lse = kernels.losses_and_lse(x, target, -100)
        assert losses[0] == float("inf") and losses[2] == 0
        rows = [1, 3, 4, 5, 6]
        wide = x[rows].double().requires_grad_()
        expected = functional.cross_entropy(wide, target[rows], reduction="none")
        torch.testing.assert_close(losses[rows].double(), expected.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(lse[rows].double(), torch.logsumexp(wide, 1).detach(), rtol=1e-5, atol=1e-5)
        scale = torch.rand(7)
        grad = kernels.gradient(scale, x, target, lse, -100)
        (wanted,) = torch.autograd.grad(expected, wide, scale[rows].double())
        torch.testing.assert_close(grad[rows].double(), wanted, rtol=tolerance, atol=1e-6)
        assert not grad[2].any()
        torch.testing.assert_close(grad[0, 1], -scale[0].to(dtype), rtol=tolerance, atol=0.0)
        whole = kernels.gradient(torch.tensor(0.5), x, target, lse, -100)
        torch.testing.assert_close(whole[rows].double() * 2 * scale[rows, None], wanted, rtol=2 * tolerance, atol=1e-6)
beyond, _ = kernels.losses_and_lse(torch.zeros(1, 3), torch.tensor([3]), -100)
assert beyond.isnan().all()  # no class: seen by the guard, and nothing else is read
"""

DROPOUT = """
import numpy as np
import torch
from pullback.backends import NUMPY, torch_triton_random as kernels

for dtype in (torch.float32, torch.bfloat16):
    for shape, p, key, offset in (
        ((3, 1001), 0.3, 2**63 + 12345, 0),
        ((9001,), 0.5, 1, 4 * (2**32 - 700)),  # the counter's lower half overflows on the way
        ((1,), 0.9, 2**64 - 1, 4 * (2**64 - 1)),
        ((64, 8), 0.0, 0, 16),
    ):
        x = torch.randn(shape).to(dtype)
        threshold = round(p * 2**32)
        assert kernels.takes(x, threshold, offset) and not kernels.takes(x, 2**32, offset)
        out, kept = kernels.dropout(x, threshold, 1 / (1 - p), key, offset)
        expected = NUMPY.xp.dropout_mask(np.zeros(shape, np.float32), p, key, offset)
        assert (kept.numpy() == expected).all(), (shape, p, key, offset)
        close = 0 if dtype is torch.float32 else 2**-7  # the interpreter rounds bfloat16 towards zero
        torch.testing.assert_close(out, torch.where(kept, x * (1 / (1 - p)), 0), rtol=close, atol=0)
"""


@pytest.mark.parametrize("code", [CODE, DROPOUT], ids=["cross_entropy", "dropout"])
def test_kernels(code):
    require("torch:cpu")
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
