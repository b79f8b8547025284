"""Half precision: float16 and bfloat16 have too few digits to add up in, so that is done in float32."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

import numpy as np


def is_half(x: Any) -> bool:
    """Whether `x` is float16 or bfloat16 (a dtype that is not NumPy's own: its kind is "V")."""
    return x.dtype.itemsize == 2 and x.dtype.kind in "fV"


def computed_in(dtype: Any) -> Any:
    """The dtype to add up in what is to be of `dtype`."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def widened(x: Any) -> Any:
    """`x`, in float32 if its own precision is only half."""
    return x.astype(np.float32) if is_half(x) else x


def narrowed(x: Any, dtype: Any) -> Any:
    """`x` in `dtype`: undoes `widened`."""
    return x if x.dtype == dtype else x.astype(dtype)


def in_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that computes in float32 where its first input has half precision, and rounds once."""

    @wraps(kernel)
    def wide(x: Any, *arguments: Any, **named: Any) -> Any:
        dtype = x.dtype
        if dtype.itemsize == 2 and dtype.kind in "fV":
            return kernel(x.astype(np.float32), *arguments, **named).astype(dtype)
        return kernel(x, *arguments, **named)

    return wide
