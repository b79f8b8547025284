"""Running sums and products along an axis, and the positions of largest and smallest elements of rows."""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir

from ...axes import merged
from ...custom_kernels import Extreme, Running
from ..code import I64, ITEMSIZE, STORED, Code, Emitted, constant, splat, store, vector
from ..positions import offsets
from ..strided import first, folded, iota, lanes, load_lanes
from . import extreme_columns
from .across_time import Columns, across_time

_FLOATS = ("float32", "float64")


def supports(kernel: Running | Extreme) -> bool:
    if isinstance(kernel, Running):
        return kernel.dtype in (*_FLOATS, "int32", "int64") and kernel.op in ("sum", "prod")
    return kernel.dtype in (*_FLOATS, "int32", "int64") and kernel.op in ("argmax", "argmin") and kernel.length > 0


def emit(module: ir.Module, name: str, kernel: Running | Extreme) -> Emitted:
    if isinstance(kernel, Running):
        return across_time(module, name, kernel, (kernel.x, kernel.out), 1, _run)
    if extreme_columns.pays(kernel):
        return extreme_columns.emit(module, name, kernel)
    return _extreme(module, name, kernel)


def _run(block: Columns, kernel: Running, length: int) -> None:
    x, out = range(2)
    b, code = block.b, block.code
    operations = {"sum": b.fadd, "prod": b.fmul} if kernel.dtype in _FLOATS else {"sum": b.add, "prod": b.mul}
    combine = operations[kernel.op]
    if not length:
        return
    if kernel.exclusive:
        neutral = constant(vector(STORED[kernel.dtype], block.width), 0 if kernel.op == "sum" else 1)
        start = [neutral for _ in block.vectors]
    else:
        start = [block.read(x, I64(0), v) for v in block.vectors]
    for v in block.vectors:
        block.write(out, I64(0), v, start[v])
    with code.loop(I64(1), I64(length), 1, *start) as (t, *before):
        after = []
        at = b.sub(t, I64(1)) if kernel.exclusive else t
        for v in block.vectors:
            after.append(combine(before[v], block.read(x, at, v)))
            block.write(out, t, v, after[v])
        code.again(*after)


def _extreme(module: ir.Module, name: str, kernel: Extreme) -> Emitted:
    """Two passes over each row: what the extreme is and whether there is NaN, then where it is first."""
    code = Code(module, name)
    b = code.b
    x, out = code.pointer(0, kernel.dtype), code.pointer(1, "int64")
    shape, (x_rows, out_rows) = merged(kernel.shape, kernel.x[:-1], kernel.out)
    is_float, sign = kernel.dtype in _FLOATS, ">" if kernel.op == "argmax" else "<"
    width, step = lanes(ITEMSIZE[kernel.dtype]), kernel.x[-1]
    _vector, places = ir.VectorType(STORED[kernel.dtype], width), ir.VectorType(I64, width)

    def better(y: Any, z: Any) -> Any:
        compare = b.fcmp_ordered if is_float else b.icmp_signed
        return b.select(compare(sign, y, z), y, z)

    def over_row(row: Any, body: Any, *carry: Any) -> tuple[Any, ...]:
        """Call `body(vector, which lanes it has, its first position, *carry)` for all vectors of a row."""
        whole = kernel.length // width * width
        values = carry
        if whole:
            with code.loop(I64(0), I64(whole), width, *values) as (i, *values_here):
                code_values = body(load_lanes(b, row, b.mul(i, I64(step)), step, width), None, i, *values_here)
                code.again(*code_values)
            values = code.results
        if whole < kernel.length:
            mask = first(width, kernel.length - whole)
            part = load_lanes(b, row, I64(whole * step), step, width, mask)
            values = body(part, mask, I64(whole), *values)
        return values

    with code.loop(code.begin, code.end) as (unit,):
        x_at, out_at = offsets(b, unit, shape, [x_rows, out_rows])
        row = b.gep(x, [x_at])
        start = load_lanes(b, row, I64(0), 0, width)
        nothing = constant(ir.VectorType(ir.IntType(1), width), 0)

        def extreme(value: Any, mask: Any, _: Any, most: Any, is_nan: Any) -> tuple[Any, Any]:
            if is_float:  # lanes that are not there are zeros
                is_nan = b.or_(is_nan, b.fcmp_unordered("uno", value, value))
            following = better(value, most)
            return following if mask is None else b.select(mask, following, most), is_nan

        most, is_nan = over_row(row, extreme, start, nothing)
        peak = splat(b, folded(b, most, better), width)
        any_nan = folded(b, is_nan, b.or_) if is_float else None

        def position(value: Any, mask: Any, i: Any, least: Any) -> tuple[Any]:
            if is_float:
                hit = b.select(
                    splat(b, any_nan, width), b.fcmp_unordered("uno", value, value), b.fcmp_ordered("==", value, peak)
                )
            else:
                hit = b.icmp_signed("==", value, peak)
            hit = hit if mask is None else b.and_(hit, mask)
            here = b.select(hit, b.add(splat(b, i, width), iota(width)), least)
            return (b.select(b.icmp_signed("<", here, least), here, least),)

        (least,) = over_row(row, position, constant(places, kernel.length))
        least = folded(b, least, lambda y, z: b.select(b.icmp_signed("<", y, z), y, z))
        store(b, least, out, out_at, 8)
    code.end_function()
    return Emitted(name, prod(kernel.shape), prod(kernel.shape) * (10.0 + 0.3 * kernel.length), scratch=0)
