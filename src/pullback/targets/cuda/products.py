"""Matrix products by cuBLAS, on strided matrices, into memory that is there."""

from __future__ import annotations

from itertools import product as indices
from typing import Any

import torch

from ..kernels import Call, Location, Product
from .memory import Memory, torch_dtype


def run(call: Call, memory: Memory) -> None:
    """Multiply once."""
    kernel: Product = call.kernel
    *outer, inner = kernel.batch or (1,)
    size = torch_dtype(kernel.dtype).itemsize
    locations = (*call.reads, *call.writes)
    forms = ((kernel.m, kernel.k), (kernel.k, kernel.n), (kernel.m, kernel.n))
    strides = [one if kernel.batch else (0, *one) for one in (kernel.x, kernel.y, kernel.out)]
    # Axes of the batch but the last are gone over one by one: a tensor of three axes has only one.
    for index in indices(*[range(n) for n in outer]):
        x, y, out = (
            memory.view(
                Location(place.buffer, place.offset + size * sum(i * step for i, step in zip(index, steps))),
                kernel.dtype,
                (inner, *form),
                steps[len(outer) :],
            )
            for place, form, steps in zip(locations, forms, strides)
        )
        _multiply(x, y, out, kernel.accumulate)


def _multiply(x: Any, y: Any, out: Any, accumulate: bool) -> None:
    if len(out) == 1:
        x, y, out = x[0], y[0], out[0]
        if accumulate:
            torch.addmm(out, x, y, out=out)
        else:
            torch.mm(x, y, out=out)
    elif accumulate:
        torch.baddbmm(out, x, y, out=out)
    else:
        torch.bmm(x, y, out=out)
