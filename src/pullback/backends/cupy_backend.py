"""CuPy arrays as a backend."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from . import cupy_namespace
from .standard import StandardBackend


class CupyBackend(StandardBackend):
    """CuPy on each GPU that is there: "cupy:0", "cupy:1", ..."""

    def __init__(self) -> None:
        count = cupy.cuda.runtime.getDeviceCount()
        super().__init__(cupy_namespace, "cupy", (cupy.ndarray,), {str(i): cupy.cuda.Device(i) for i in range(count)})

    def _from_host(self, data: Any, dtype: Any, device: Any) -> Any:
        with device:
            return cupy.asarray(data, dtype=dtype)

    def _moved(self, raw: Any, device: Any) -> Any:
        with device:
            return cupy.array(raw)

    def to_numpy(self, raw: Any) -> Any:
        return cupy.asnumpy(raw)

    def from_scalar(self, value: Any) -> Any:
        return value if isinstance(value, cupy.ndarray) else cupy.asarray(value)

    def copy(self, raw: Any) -> Any:
        return cupy.array(raw, order="C")

    def constant(self, values: Any, like: Any) -> Any:
        with like.device:
            return cupy.asarray(np.asarray(values))


BACKEND = CupyBackend()
