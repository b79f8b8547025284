"""The positions of largest and smallest elements of rows that lie side by side: each lane of a vector is a row.

One pass: the best so far and where it was stay in registers.
"""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from ...axes import merged
from ...custom_kernels import Extreme
from ..code import I64, ITEMSIZE, STORED, Code, Emitted, splat
from ..positions import offsets
from ..strided import lanes, load_lanes, pieces, store_lanes

#: Vectors that are walked together: neighbours in memory, and less waiting for one comparison after the other.
BLOCK = 4


def pays(kernel: Extreme) -> bool:
    """Whether neighbours in memory are elements of neighbouring rows, and there are enough for a vector."""
    shape, (x_rows, _) = merged(kernel.shape, kernel.x[:-1], kernel.out)
    return bool(shape) and x_rows[-1] == 1 and kernel.x[-1] != 1 and shape[-1] >= lanes(ITEMSIZE[kernel.dtype]) // 2


def emit(module: ir.Module, name: str, kernel: Extreme) -> Emitted:
    """Write the function `name` into `module`. A unit of work is a block of rows."""
    shape, (x_rows, out_rows) = merged(kernel.shape, kernel.x[:-1], kernel.out)
    batch, count = shape[:-1], shape[-1]
    width = lanes(ITEMSIZE[kernel.dtype])
    most = BLOCK * width
    blocks = -(-count // most)
    code = Code(module, name)
    b = code.b
    x, out = code.pointer(0, kernel.dtype), code.pointer(1, "int64")
    with code.loop(code.begin, code.end) as (unit,):
        number, part = b.udiv(unit, I64(blocks)), b.urem(unit, I64(blocks))
        x_at, out_at = offsets(b, number, batch, [x_rows[:-1], out_rows[:-1]])
        first = b.mul(part, I64(most))
        seen, found = b.gep(x, [b.add(x_at, first)]), b.gep(out, [b.add(out_at, b.mul(first, I64(out_rows[-1])))])
        rest = count % most
        if blocks == 1 or not rest:
            _block(code, kernel, seen, found, out_rows[-1], min(count, most), width)
        else:
            with b.if_else(b.icmp_signed("==", part, I64(blocks - 1))) as (last, others):
                with last:
                    _block(code, kernel, seen, found, out_rows[-1], rest, width)
                with others:
                    _block(code, kernel, seen, found, out_rows[-1], most, width)
    code.end_function()
    return Emitted(name, prod(batch) * blocks, prod(kernel.shape) * kernel.length * 0.15)


def _block(code: Code, kernel: Extreme, x: Any, out: Any, out_step: int, count: int, width: int) -> None:
    """The extremes of `count` rows: `x` is the first element of the first of them."""
    b = code.b
    is_float, sign = str(STORED[kernel.dtype]) in ("float", "double"), ">" if kernel.op == "argmax" else "<"
    parts = pieces(count, width)

    def read(index: Any, at: int, mask: Any) -> Any:
        return load_lanes(b, x, b.add(b.mul(index, I64(kernel.x[-1])), I64(at)), 1, width, mask)

    start = [read(I64(0), at, mask) for at, mask in parts]
    start += [splat(b, I64(0), width) for _ in parts]
    with code.loop(I64(1), I64(kernel.length), 1, *start) as (index, *carry):
        here = splat(b, index, width)
        values, places = [], []
        for (at, mask), best, place in zip(parts, carry, carry[len(parts) :]):
            value = read(index, at, mask)
            if is_float:  # NaN is better than any number, and nothing is better than NaN
                is_nan, was_nan = (b.fcmp_unordered("uno", y, y) for y in (value, best))
                better = b.or_(b.fcmp_ordered(sign, value, best), b.and_(is_nan, b.not_(was_nan)))
            else:
                better = b.icmp_signed(sign, value, best)
            values.append(b.select(better, value, best))
            places.append(b.select(better, here, place))
        code.again(*values, *places)
    for (at, mask), place in zip(parts, code.results[len(parts) :]):
        store_lanes(b, place, out, I64(at * out_step), out_step, mask)
