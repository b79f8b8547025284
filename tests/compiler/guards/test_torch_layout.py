"""Where PyTorch's tensors keep things is found whatever else is in memory."""

from __future__ import annotations

from typing import Any

import pytest

from ...backends.installed import needs, needs_llvmlite

pytestmark = [needs("torch", "its tensors"), needs_llvmlite]


def test_memory_that_looks_like_a_tensor_is_no_reason_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.compiler.guards.native import torch_layout as module

    search, tries = module._in_tensors, []

    def unlucky() -> Any:
        tries.append(1)
        return search() if len(tries) > 2 else None

    expected = module.torch_layout("cpu")
    monkeypatch.setattr(module, "_in_tensors", unlucky)
    found = module.torch_layout.__wrapped__()
    assert len(tries) > 2 and found == expected
