"""Products of matrices as native code: none of these tests can do without llvmlite."""

import pytest

pytest.importorskip("llvmlite")
