"""Skipping what needs a library that is not installed: NumPy, pytest and Hypothesis are enough to run the suite.

A module has `torch = optional("torch")` in place of `import torch`, and a test is skipped where it first uses it. A
test on a device calls `require(device)`; one in bfloat16 has the parameter `BFLOAT16` or the mark `needs_ml_dtypes`;
one that runs native code has the mark `needs_llvmlite`, unless it calls `pb.compile` itself, where it is skipped.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

import pytest

import pullback as pb


def optional(name: str) -> Any:
    """The module `name`; where the library that it needs is not installed, a stand-in that skips the test that uses it.

    In tables and parameters, outside of tests, the stand-in can be named (`torch.add`) but not called: a parameter is
    skipped then, not its test, and a test, not its module.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if is_installed(missing):  # it is there, but has no such module
            raise
        return _Missing(missing)


class _Missing:
    """Stands for a module that cannot be imported without `library`, and for all that is in it."""

    def __init__(self, library: str) -> None:
        self._library = library

    def __getattr__(self, attribute: str) -> Any:
        if "PYTEST_CURRENT_TEST" in os.environ:
            self()
        if attribute.startswith("__"):  # Python and pytest look for these at whatever a module has
            raise AttributeError(attribute)
        return self

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if "PYTEST_CURRENT_TEST" not in os.environ:
            raise RuntimeError(f"{self._library} is not installed, and called outside of a test: call it in a lambda.")
        pytest.skip(f"{self._library} is not installed")

    def __repr__(self) -> str:
        return f"<something of {self._library}, which is not installed>"


def is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def needs(library: str, what: str) -> pytest.MarkDecorator:
    """The mark of a test, or of one of its parameters, that tries `what` and cannot without `library`."""
    return pytest.mark.skipif(not is_installed(library), reason=f"{what} needs {library}")


#: For a test, or one of its parameters, that computes in bfloat16 on NumPy.
needs_ml_dtypes = needs("ml_dtypes", "bfloat16 on NumPy")
BFLOAT16 = pytest.param(pb.bfloat16, marks=needs_ml_dtypes)

#: For a test, or one of its parameters, that needs native code and does not say so by calling `pb.compile`.
needs_llvmlite = needs("llvmlite", "native code")


def require(device: str, dtype: Any = None) -> None:
    """Skip the test unless what `device` needs is installed, for `dtype` too; array-api-strict is then registered."""
    library = device.partition(":")[0]
    if library == "numpy" and getattr(dtype, "name", dtype) == "bfloat16":
        library = "ml_dtypes"
    if library == "strict":
        from . import strict  # noqa: F401

        library = "array_api_strict"
    if library != "numpy":
        pytest.importorskip(library)
