"""Python's operators on tensors."""

from __future__ import annotations

from ..autodiff.fast import function_for
from .core import Tensor

Tensor.__add__ = Tensor.__radd__ = function_for("add", operator=True)
Tensor.__mul__ = Tensor.__rmul__ = function_for("multiply", operator=True)
Tensor.__sub__ = function_for("subtract", operator=True)
