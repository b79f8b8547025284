"""Public functions of operations that are nothing but their kernel and rule, with their documentation."""

from __future__ import annotations

from typing import Any

from ..autodiff.fast import function_for
from ..operations import OPERATIONS
from ..tensor.core import Tensor


def elementwise(name: str, text: str, module: str) -> Any:
    """The function for a differentiable elementwise operation without static arguments; `text` is its docstring."""
    function = function_for(name)
    function.__doc__ = text
    function.__module__ = module
    function.__annotations__ = {**dict.fromkeys(OPERATIONS[name].inputs, Any), "return": Tensor}
    return function
