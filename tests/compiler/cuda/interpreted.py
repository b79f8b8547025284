"""Triton's interpreter: kernels run on the processor, statement by statement, on tensors in its memory.

It has no CUDA functions: NumPy's and SciPy's stand in for those. Its scans call Python for every element: here they
are of whole blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter

from ...backends.installed import optional

__all__ = ["tensor_at", "torch"]

special = optional("scipy.special")

_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp, "fast_expf": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "trunc": np.trunc, "rint": np.rint, "floor": np.floor, "ceil": np.ceil,
    "pow": np.power, "copysign": np.copysign, "nextafter": np.nextafter, "fmod": np.fmod,
    "fast_dividef": np.divide,
    "erf": lambda x: special.erf(x), "erfc": lambda x: special.erfc(x), "normcdf": lambda x: special.ndtr(x),
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


def _scan_by_doubling(scan: Any, inputs: Any) -> list[Any]:
    """What `ScanOps.generic_scan` does, in steps that are twice as long each time: as a GPU may, in another order."""
    made = [block.handle.data.copy() for block in inputs]
    stride = 1
    while stride < made[0].shape[scan.axis]:
        parts = [*(np.roll(array, stride, scan.axis) for array in made), *made]
        blocks = [scan.to_tensor(part, block.dtype) for part, block in zip(parts, [*inputs, *inputs])]
        combined = scan.combine_fn.fn(*blocks)
        behind = (slice(None),) * scan.axis + (slice(stride, None),)
        for array, block in zip(made, combined if isinstance(combined, tuple) else (combined,)):
            array[behind] = block.handle.data[behind]
        stride *= 2
    return [scan.to_tensor(array, block.dtype) for array, block in zip(made, inputs)]


interpreter.ScanOps.generic_scan = _scan_by_doubling


def tensor_at(array: np.ndarray) -> Any:
    """A tensor whose first element is the array's."""
    if not array.flags.writeable:  # as tensors cannot be: one number, broadcast
        assert not any(array.strides)
        array = array[(slice(0, 1),) * array.ndim].copy()
    flat = np.lib.stride_tricks.as_strided(array, (1,), (array.itemsize,))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(flat.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(flat)
