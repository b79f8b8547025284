"""Compiling and running native code: none of these tests can do without llvmlite."""

import pytest

pytest.importorskip("llvmlite")
