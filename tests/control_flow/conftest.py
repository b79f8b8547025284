"""Both forms of control flow: step by step on known values, and the one for programs that are being traced."""

from __future__ import annotations

import pytest

from pullback.functions import carry, control_flow


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every value for one that is not known yet, so that choices become selections and loops are unrolled."""
    for module in (carry, control_flow):
        monkeypatch.setattr(module, "is_symbolic", lambda x: True)


@pytest.fixture(params=["eager", "inline"])
def form(request: pytest.FixtureRequest) -> str:
    """Run a test with both forms."""
    if request.param == "inline":
        request.getfixturevalue("inline")
    return request.param
