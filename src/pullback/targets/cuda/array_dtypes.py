"""The dtypes of a kernel's arrays, in its order."""

from __future__ import annotations

from typing import Any

from .. import custom_kernels as described
from ..kernels import Loop


def array_dtypes(kernel: Any) -> list[str]:
    """The dtypes of what a kernel reads, then of what it writes."""
    if isinstance(kernel, Loop):
        return [access.dtype for access in (*kernel.reads, *(write.access for write in kernel.writes))]
    if isinstance(kernel, (described.Gather, described.Scatter)):
        onto = [kernel.dtype] if isinstance(kernel, described.Scatter) and kernel.onto else []
        return [*onto, kernel.dtype, *[dtype for dtype, _ in kernel.indices], kernel.dtype]
    if isinstance(kernel, (described.GatherAlong, described.ScatterAlong)):
        return [kernel.dtype, kernel.index_dtype, kernel.dtype]
    if isinstance(kernel, described.Philox):
        return ["int64", "int64", kernel.made]
    if isinstance(kernel, described.Extreme):
        return [kernel.dtype, "int64"]
    if isinstance(kernel, described.CrossEntropy):
        given = [form[0] for form in (kernel.target, kernel.bias, kernel.weight) if form is not None]
        gradient = [] if kernel.scale is None else [kernel.dtype]
        return [kernel.dtype, *given, *[kernel.wide] * len(gradient), kernel.wide, *gradient]
    return [kernel.dtype] * _MOST_ARRAYS


_MOST_ARRAYS = 7  # of a scan's gradient, which has as many as it needs, all of one dtype
