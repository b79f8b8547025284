"""Arrays on the short way: how native code looks at those of each library, and how their memory is made."""

from __future__ import annotations

from functools import cache
from typing import Any, Callable

import numpy as np

from ..guards.native import object_layout as layout
from ..guards.rows import Rows
from ..program import Value

READ = layout.CONTIGUOUS | layout.ALIGNED
_MOST_KEPT = 4096  # bytes of a tensor that is kept as an example for others
_WRITE = READ | layout.OWNS_DATA | layout.WRITEABLE


class Memory:
    """The arrays of a library: rows for one of a form, and what the text of a call has to say for a new one."""

    def __init__(self, emit: Callable[..., None], new: Callable[[dict[str, Any], int, Value], str], error: str) -> None:
        #: `emit(rows, register, dtype, shape, is_written, references, base)`
        self.emit = emit
        #: `new(names, number, value)`: an expression for output `number`, and names for what it needs
        self.new = new
        self.error = error  # the name of what the expression raises where there is no memory


def _emit_array(
    rows: Rows, register: int, dtype: Any, shape: Any, is_written: bool, references: int, base: int
) -> None:
    rows.array(register, dtype, shape, _WRITE if is_written else READ, references, base)


def _new_array(names: dict[str, Any], number: int, value: Value) -> str:
    names["empty"], names[f"shape{number}"], names[f"dtype{number}"] = np.empty, value.shape, value.dtype
    return f"empty(shape{number}, dtype{number})"


NUMPY = Memory(_emit_array, _new_array, "MemoryError")


def _numpy() -> Memory | None:
    return NUMPY if layout.is_possible() else None


@cache
def _torch() -> Memory | None:
    import torch

    from ...backends.torch_memory import host_empty
    from ..guards.torch_rows import emit_tensor, is_possible

    def new_tensor(names: dict[str, Any], number: int, value: Value) -> str:
        if value.nbytes > _MOST_KEPT:
            names["empty"], names[f"shape{number}"], names[f"dtype{number}"] = host_empty, value.shape, value.dtype
            return f"empty(shape{number}, dtype{number})"
        with torch.inference_mode(False):
            names["empty_like"], names[f"like{number}"] = torch.empty_like, host_empty(value.shape, value.dtype)
        return f"empty_like(like{number})"  # which takes half the time

    return Memory(emit_tensor, new_tensor, "(MemoryError, RuntimeError)") if is_possible() else None


#: By device: None where native code cannot look at its arrays.
MEMORIES: dict[str, Callable[[], Memory | None]] = {"numpy": _numpy, "torch:cpu": _torch}
