"""Triton's interpreter: kernels run on the processor, statement by statement, on tensors in its memory.

It has no CUDA functions: NumPy's and SciPy's stand in for those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter

from ...backends.installed import optional

__all__ = ["torch"]

special = optional("scipy.special")

_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "trunc": np.trunc, "rint": np.rint, "floor": np.floor, "ceil": np.ceil,
    "pow": np.power, "copysign": np.copysign, "nextafter": np.nextafter, "fmod": np.fmod,
    "erf": lambda x: special.erf(x), "erfc": lambda x: special.erfc(x),
    "signbit": lambda x: np.signbit(x).astype(np.int32),
}  # fmt: skip


def _on_blocks(function: Any) -> Any:
    def called(*blocks: Any) -> Any:
        x = blocks[0]
        shape = np.broadcast_shapes(*[block.handle.data.shape for block in blocks])
        arrays = [np.broadcast_to(block.handle.data, shape) for block in blocks]
        made = np.asarray(function(*arrays))
        kind = tl.int32 if made.dtype == np.int32 else x.dtype
        return tl.tensor(
            interpreter.TensorHandle(made, kind.scalar), tl.block_type(kind.scalar, list(shape)) if shape else kind
        )

    return called


for _name, _function in _FUNCTIONS.items():
    setattr(libdevice, _name, _on_blocks(_function))
