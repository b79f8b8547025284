"""NumPy's kernels are where the backend looks for them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import FunctionType

import pytest

from pullback import backends
from pullback.backends import numpy as numpy_backend
from pullback.backends.portable import special


@pytest.mark.parametrize("module", numpy_backend._LATER)
def test_what_is_imported_later_is_listed(module):
    found = vars(import_module(f"pullback.backends.numpy.{module}"))
    own = {name for name, kernel in found.items() if type(kernel) is FunctionType and name[0] != "_"}
    own = {name for name in own if found[name].__module__.endswith(module)}
    assert own == set(numpy_backend._LATER[module].split())


def test_special_functions_are_computed_in_blocks():
    formulas = [name for name, f in vars(special).items() if type(f) is FunctionType and name[0] != "_"]
    assert "erf" in formulas
    for name in formulas:
        assert backends.NUMPY.xp.defines(name), name
        assert "numpy" in getattr(getattr(backends.NUMPY.xp, name), "func", getattr(backends.NUMPY.xp, name)).__module__


def test_kernels_made_of_others_are_not_their_own():
    assert backends.NUMPY.xp.defines("matmul")
    assert backends.NUMPY.xp.defines("softmax")
    assert not backends.NUMPY.xp.defines("sum_to")
    assert not backends.NUMPY.xp.defines("einsum")
    assert not backends.NUMPY.xp.defines("nothing_of_this_name")


def test_importing_loads_no_kernels_of_networks():
    code = "import pullback, sys; print([m for m in sys.modules if m.startswith('pullback.backends.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for module in numpy_backend._LATER:
        assert f"backends.numpy.{module}'" not in loaded
