"""Arrays to compute in, and arrays that were given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..train.metrics import as_array

__all__ = ["aligned_zeros", "real_array"]

_CACHE_LINE = 64


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """Zeros that start at a cache line: products of aligned arrays are faster, and round alike in every run."""
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    room = np.zeros(size * dtype.itemsize + _CACHE_LINE, np.uint8)
    start = -room.ctypes.data % _CACHE_LINE
    return room[start : start + size * dtype.itemsize].view(dtype).reshape(shape)


def real_array(name: str, value: Any, dtype: Any) -> Any:
    """Real numbers of any library or in lists, as a contiguous array of this dtype: as it is, if it is one."""
    array = as_array(name, value)
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{name} must be real numbers, got {array.dtype}.")
    return np.asarray(array, dtype, order="C")
