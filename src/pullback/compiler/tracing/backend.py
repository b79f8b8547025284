"""The trace backend: arrays are symbols, and computing with them writes a program (see `compiler/`).

A symbol stands for an array of the device that the program will run on, and says it is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backends, dtypes, modes
from ...backends.protocol import Backend
from .custom_calls import recording
from .kernels import TraceKernels
from .symbol import Symbol


class TraceBackend(Backend):
    name = "trace"
    array_types = (Symbol,)
    writable = False

    def __init__(self) -> None:
        self.xp = TraceKernels()

    def devices(self) -> tuple[str, ...]:
        return ()  # not to be chosen: symbols are on the device of their program

    def full_device_name(self, device: str) -> str:
        return "trace"  # for `Autodiff("trace")`

    def device_of(self, raw: Any) -> str:
        return raw.recorder.device

    def dtype_of(self, raw: Any) -> dtypes.DType:
        return dtypes.from_numpy(raw.dtype)

    def raw_dtype(self, dtype: dtypes.DType) -> Any:
        trace = modes.tracing()
        library = None if trace is None else trace.recorder.library
        return dtypes.numpy_dtype(dtype) if library is None else library.raw_dtype(dtype)

    def asarray(self, data: Any, dtype: dtypes.DType | None, device: str, copy: bool | None) -> Any:
        raw = data if isinstance(data, Symbol) else self._lifted(np.asarray(data))
        return raw if dtype is None else self.xp.astype(raw, self.raw_dtype(dtype))

    def adopt(self, raw: Any, source: Backend, device: str, copy: bool | None) -> Any:
        recorder = modes.tracing().recorder
        recorder.refuse_array(raw)
        return self._lifted(raw if source is recorder.library else source.to_numpy(raw))

    def _lifted(self, array: Any) -> Any:
        return modes.tracing().lift(array)

    def custom_kernel(self, operation: Any) -> Any:
        return operation.kernel if operation.shape_rule is None else recording(operation)

    def to_numpy(self, raw: Any) -> Any:
        return raw.__array__()  # says that there are no values

    def is_concrete(self, raw: Any) -> bool:
        return False

    def is_complex(self, raw: Any) -> bool:
        return raw.dtype.kind == "c"

    def scalar_for(self, value: Any, like: Any) -> Any:
        return np.asarray(value, like.dtype) if type(value) is float and like.dtype.kind == "V" else value

    def copy(self, raw: Any) -> Any:
        return raw  # never written, so never seen by two


TRACE = TraceBackend()
backends.register(TRACE)
