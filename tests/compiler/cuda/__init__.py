"""Kernels for GPUs, in Triton's interpreter: none of these tests can do without PyTorch and Triton."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")
