"""Operators of PyTorch's that have no name in its own namespace: mostly gradients."""

from __future__ import annotations

from typing import Any

import torch


def operator(name: str, overload: str = "default") -> Any:
    """The operator as a function: without the search for an overload, and the checks in Python, half of a call."""
    found = getattr(getattr(torch.ops.aten, name), overload)
    return getattr(found, "_op", found)
