"""Arrays on the short way: how native code looks at those of each library, and how their memory is made."""

from __future__ import annotations

from functools import cache
from typing import Any, Callable

import numpy as np

from ..guards.native import object_layout as layout
from ..guards.rows import Rows

READ = layout.CONTIGUOUS | layout.ALIGNED
_WRITE = READ | layout.OWNS_DATA | layout.WRITEABLE


class Memory:
    """The arrays of a library: rows for one of a form, and what the text of a call has to say for a new one."""

    def __init__(
        self, emit: Callable[..., None], empty: Any, dtype: Callable[[Any], Any], arguments: str, no_memory: str
    ) -> None:
        #: `emit(rows, register, dtype, shape, is_written, references, base)`
        self.emit = emit
        self.empty = empty
        self.dtype = dtype  # the library's, for one of NumPy's
        self.arguments = arguments  # of `empty`
        self.no_memory = no_memory  # the name of what it raises where there is none


def _emit_array(
    rows: Rows, register: int, dtype: Any, shape: Any, is_written: bool, references: int, base: int
) -> None:
    rows.array(register, dtype, shape, _WRITE if is_written else READ, references, base)


NUMPY = Memory(_emit_array, np.empty, lambda dtype: dtype, "{shape}, {dtype}", "MemoryError")


def _numpy() -> Memory | None:
    return NUMPY if layout.is_possible() else None


@cache
def _torch() -> Memory | None:
    import torch

    from ...backends.torch_memory import torch_dtype
    from ..guards.torch_rows import emit_tensor, is_possible

    if not is_possible():
        return None
    return Memory(emit_tensor, torch.empty, torch_dtype, '{shape}, dtype={dtype}, device="cpu"', "RuntimeError")


#: By device: None where native code cannot look at its arrays.
MEMORIES: dict[str, Callable[[], Memory | None]] = {"numpy": _numpy, "torch:cpu": _torch}
