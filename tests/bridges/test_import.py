"""Bridges cost nothing until they are used, and say what they need."""

from __future__ import annotations

import pytest

from tests.test_import import run


def test_import_loads_no_bridge():
    program = "import sys, pullback as pb; print([m for m in sys.modules if m.startswith('pullback.bridges')])"
    assert run(program) == "[]"
    program = (
        "import sys, pullback as pb; pb.from_torch, pb.to_torch, pb.from_jax, pb.to_jax; print('torch' in sys.modules)"
    )
    assert run(program) == "False"


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("bridge", ["from", "to"])
def test_a_library_that_is_missing_is_named(library, bridge):
    program = f"""
import sys
sys.modules[{library!r}] = None  # importing it raises
import pullback as pb
try:
    pb.{bridge}_{library}(lambda x: x)
except pb.DeviceError as error:
    print(error)
"""
    assert run(program).startswith(f"{bridge}_{library} needs the package {library}")
