"""Matrix products by cuBLAS, on strided matrices, into memory that is there."""

from __future__ import annotations

from itertools import product as indices
from typing import Any

import torch

from ..kernels import Call, Location, Product
from .memory import Memory, torch_dtype

#: Whether PyTorch adds products of half precision to an array of float32; before 2.10 both had to be of one dtype.
_ADDS_WIDE = tuple([int(part) for part in torch.__version__.split(".")[:2]]) >= (2, 10)


def run(call: Call, memory: Memory) -> None:
    """Multiply once."""
    kernel: Product = call.kernel
    *outer, inner = kernel.batch or (1,)
    dtypes = (kernel.dtype, kernel.dtype, kernel.wide or kernel.dtype)
    locations = (*call.reads[:2], *call.writes)
    bias = memory.view(call.reads[2], kernel.dtype, (kernel.n,), (1,)) if kernel.bias else None
    forms = ((kernel.m, kernel.k), (kernel.k, kernel.n), (kernel.m, kernel.n))
    strides = [one if kernel.batch else (0, *one) for one in (kernel.x, kernel.y, kernel.out)]
    # Axes of the batch but the last are gone over one by one: a tensor of three axes has only one.
    for index in indices(*[range(n) for n in outer]):
        x, y, out = (
            memory.view(
                Location(place.buffer, place.offset + _itemsize(dtype) * sum(i * n for i, n in zip(index, steps))),
                dtype,
                (inner, *form),
                steps[len(outer) :],
            )
            for place, dtype, form, steps in zip(locations, dtypes, forms, strides)
        )
        _multiply(x, y, out, bias, kernel.accumulate)


def _itemsize(dtype: str) -> int:
    size: int = torch_dtype(dtype).itemsize
    return size


def _multiply(x: Any, y: Any, out: Any, bias: Any, accumulate: bool) -> None:
    options: dict[str, Any] = {}
    if out.dtype != x.dtype and out.is_cuda and _ADDS_WIDE:
        options["out_dtype"] = out.dtype
    elif out.dtype != x.dtype:  # which cuBLAS alone can do
        x, y = x.to(out.dtype), y.to(out.dtype)
    if len(out) == 1:
        x, y, out = x[0], y[0], out[0]
        if accumulate:
            torch.addmm(out, x, y, out=out, **options)
        elif bias is not None:
            torch.addmm(bias, x, y, out=out)
        else:
            torch.mm(x, y, out=out, **options)
    elif accumulate:
        torch.baddbmm(out, x, y, out=out, **options)
    else:
        torch.bmm(x, y, out=out, **options)
