"""Skipping what needs a library that is not installed: the core is tested with NumPy alone, too."""

from __future__ import annotations

import importlib.util

import pytest

import pullback as pb

#: For a test, or one of its parameters, that computes in bfloat16 on NumPy.
needs_ml_dtypes = pytest.mark.skipif(
    importlib.util.find_spec("ml_dtypes") is None, reason="bfloat16 on NumPy needs ml_dtypes"
)
BFLOAT16 = pytest.param(pb.bfloat16, marks=needs_ml_dtypes)


def require(device: str) -> None:
    """Skip the test unless the library of `device` is installed; array-api-strict is registered as a backend."""
    library = device.partition(":")[0]
    if library == "strict":
        pytest.importorskip("array_api_strict")
        from . import strict  # noqa: F401
    elif library != "numpy":
        pytest.importorskip(library)
