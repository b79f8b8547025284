"""Compiling one kernel and running it on NumPy arrays, for the tests of this folder."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from pullback.targets.llvm.runtime.jit import Library, compile_object

_SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)  # fmt: skip
_ALIVE: list[Library] = []


@cache
def compiled(emit: Any, kernel: Any) -> tuple[Any, Any]:
    """A kernel's native function and what was said of it when it was emitted."""
    module = ir.Module("test")
    emitted = emit(module, "kernel", kernel)
    library = Library([compile_object(str(module))], ["kernel"], {})
    _ALIVE.append(library)
    return _SIGNATURE(library.addresses["kernel"]), emitted


def run(emit: Any, kernel: Any, arrays: list[Any], parts: int = 1) -> None:
    """Run a kernel on its arrays, with the work shared by a number of parts, from the last part to the first."""
    function, emitted = compiled(emit, kernel)
    table = np.array([array.ctypes.data for array in arrays], np.int64)
    cuts = [emitted.units * part // parts // emitted.grain * emitted.grain for part in range(parts)] + [emitted.units]
    for part in reversed(range(parts)):
        scratch = np.full(emitted.scratch + 64, 0xFF, np.uint8)  # NaN, if it is read before it is written
        start = -scratch.ctypes.data % 64
        function(table.ctypes.data, cuts[part], cuts[part + 1], part, scratch.ctypes.data + start)


def strides(array: Any) -> tuple[int, ...]:
    """An array's strides in elements."""
    return tuple(step // array.itemsize for step in array.strides)


def broadcast_strides(array: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides with which an array is read as if it had another shape."""
    return strides(np.broadcast_to(array, shape))


def laid_out(array: Any, layout: str) -> Any:
    """The same numbers in memory of another layout: "contiguous", "transposed", "reversed" or "gaps"."""
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "reversed":
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    if layout == "gaps":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return np.ascontiguousarray(array)
