"""Reading rows or elements named by integers, adding to them, and writing over them.

Indices are only known when the code runs. One that is out of bounds is replaced by 0, so that nothing outside an array
is touched; that there is none is for the program to check. Where there is adding, no two units of work write to the
same element, and each adds in the order of the indices: results do not depend on the number of parts.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import Any

from llvmlite import ir

from ...axes import Shape, contiguous, merged, ordered
from ...custom_kernels import Gather, GatherAlong, Overwrite, Scatter, ScatterAlong
from ..code import I64, ITEMSIZE, STORED, Code, Emitted, constant, load
from ..positions import offsets
from ..strided import lanes, load_lanes, pieces, store_lanes

Kernel = Gather | Scatter | Overwrite | GatherAlong | ScatterAlong

_ADDED = ("float32", "float64", "int32", "int64")
_INDICES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_BLOCK = 4  # vectors of a row to which a unit adds
_WIDE_BLOCK = 16  # the same where a unit has a chunk of the rows
_LARGE = 1 << 20  # bytes from which on what is added to is cut into chunks of rows, as far as it has few places
_STRETCHES = 16
_NANOSECONDS = 0.03  # for each byte that is moved


def supports(kernel: Kernel) -> bool:
    if isinstance(kernel, (Gather, Scatter, Overwrite)):
        indices = [dtype for dtype, _ in kernel.indices]
    else:
        indices = [kernel.index_dtype]
    known = _ADDED if isinstance(kernel, (Scatter, ScatterAlong)) else tuple(STORED)
    return kernel.dtype in known and all(dtype in _INDICES for dtype in indices)


def emit(module: ir.Module, name: str, kernel: Kernel) -> Emitted:
    emitters: dict[type, Any] = {
        Gather: _gather, Scatter: _scatter, Overwrite: _overwrite, GatherAlong: _along, ScatterAlong: _along_back
    }  # fmt: skip
    return emitters[type(kernel)](module, name, kernel)


def _index(code: Code, pointer: Any, place: Any, dtype: str, size: int) -> Any:
    """An index, counted from the start and brought into bounds."""
    b = code.b
    raw = load(b, pointer, place, 1, ITEMSIZE[dtype])
    if dtype != "int64":
        raw = b.zext(raw, I64) if dtype.startswith("u") else b.sext(raw, I64)
    index = b.select(b.icmp_signed("<", raw, I64(0)), b.add(raw, I64(size)), raw)
    return b.select(b.icmp_unsigned("<", index, I64(size)), index, I64(0))


def _copy(code: Code, count: int, source: Any, step: int, target: Any, target_step: int, width: int) -> None:
    """Copy `count` elements."""
    b = code.b
    whole = count // width * width if step == target_step == 1 else 0
    if whole:
        with code.loop(I64(0), I64(whole), width) as (i,):
            store_lanes(b, load_lanes(b, source, i, 1, width), target, i, 1)
    if count > whole:
        with code.loop(I64(whole), I64(count)) as (i,):
            value = load_lanes(b, source, b.mul(i, I64(step)), step, 1)
            store_lanes(b, value, target, b.mul(i, I64(target_step)), target_step)


def _clear(code: Code, count: int, target: Any, step: int, width: int) -> None:
    """Set `count` elements to zero."""
    kind = target.type.pointee
    whole = count // width * width if step == 1 else 0
    if whole:
        with code.loop(I64(0), I64(whole), width) as (i,):
            store_lanes(code.b, constant(ir.VectorType(kind, width), 0), target, i, 1)
    if count > whole:
        with code.loop(I64(whole), I64(count)) as (i,):
            store_lanes(code.b, constant(kind, 0), target, code.b.mul(i, I64(step)), step)


# -- rows ----------------------------------------------------------------------------------------


class _Rows:
    """What these kernels share: the arrays from number `first` on, and where the row lies that indices name."""

    def __init__(self, module: ir.Module, name: str, kernel: Gather | Scatter | Overwrite, first: int = 0) -> None:
        self.kernel = kernel
        self.code = Code(module, name)
        count = len(kernel.indices)
        self.source = self.code.pointer(first, kernel.dtype)
        self.indices = [self.code.pointer(first + 1 + i, dtype) for i, (dtype, _) in enumerate(kernel.indices)]
        self.target = self.code.pointer(first + 1 + count, kernel.dtype)
        self.places = prod(kernel.places)

    def named(self, place: Any, steps: Shape) -> tuple[Any, Any]:
        """The row named at a place: its last index, and its offset in an array with these strides for those axes."""
        b, kernel = self.code.b, self.kernel
        where = offsets(b, place, kernel.places, [strides for _, strides in kernel.indices])
        offset: Any = I64(0)
        index: Any = I64(0)
        for (dtype, _), pointer, at, size, step in zip(kernel.indices, self.indices, where, kernel.sizes, steps):
            index = _index(self.code, pointer, at, dtype, size)
            offset = b.add(offset, b.mul(index, I64(step)))
        return index, offset


def _parts(strides: Shape, outer: int, middle: int) -> tuple[Shape, Shape, Shape]:
    """Strides of the outer axes, of those that are indexed or of the places, and of the inner axes."""
    return strides[:outer], strides[outer : outer + middle], strides[outer + middle :]


def _gather(module: ir.Module, name: str, kernel: Gather) -> Emitted:
    rows = _Rows(module, name, kernel)
    code, b = rows.code, rows.code.b
    x_outer, x_sizes, x_inner = _parts(kernel.x, len(kernel.outer), len(kernel.sizes))
    out_outer, out_places, out_inner = _parts(kernel.out, len(kernel.outer), len(kernel.places))
    inner, (x_inner, out_inner) = merged(kernel.inner, x_inner, out_inner)
    rest, count = inner[:-1], inner[-1] if inner else 1
    step, target_step = (x_inner[-1], out_inner[-1]) if inner else (1, 1)
    width = lanes(ITEMSIZE[kernel.dtype])
    with code.loop(code.begin, code.end) as (unit,):
        place = b.urem(unit, I64(max(1, rows.places)))
        x_at, out_at = offsets(b, b.udiv(unit, I64(max(1, rows.places))), kernel.outer, [x_outer, out_outer])
        x_at = b.add(x_at, rows.named(place, x_sizes)[1])
        out_at = b.add(out_at, offsets(b, place, kernel.places, [out_places])[0])
        if 0 not in kernel.sizes:  # else every index is out of bounds, and there is nothing to read
            with code.loop(I64(0), I64(prod(rest))) as (row,):
                x_row, out_row = offsets(b, row, rest, [x_inner[:-1], out_inner[:-1]])
                source = b.gep(rows.source, [b.add(x_at, x_row)])
                target = b.gep(rows.target, [b.add(out_at, out_row)])
                _copy(code, count, source, step, target, target_step, width)
    code.end_function()
    units = prod(kernel.outer) * rows.places
    return Emitted(name, units, units * (3.0 + prod(inner) * ITEMSIZE[kernel.dtype] * _NANOSECONDS))


def _scatter(module: ir.Module, name: str, kernel: Scatter) -> Emitted:
    rows = _Rows(module, name, kernel)
    code, b = rows.code, rows.code.b
    value_outer, value_places, value_inner = _parts(kernel.value, len(kernel.outer), len(kernel.places))
    out_outer, out_sizes, out_inner = _parts(kernel.out, len(kernel.outer), len(kernel.sizes))
    shape, (value_all, out_all) = ordered(
        (*kernel.outer, *kernel.inner), (*value_outer, *value_inner), (*out_outer, *out_inner)
    )  # axes that are not indexed: units of work, and lanes along the last of them
    batch, count = shape[:-1], shape[-1] if shape else 1
    step, target_step = (value_all[-1], out_all[-1]) if shape else (1, 1)
    width = min(lanes(ITEMSIZE[kernel.dtype]), 1 if count == 1 else 64)
    chunks = _chunks(kernel)
    most = (_WIDE_BLOCK if chunks > 1 else _BLOCK) * width
    blocks = -(-count // most)
    sizes, (out_rows,) = merged(kernel.sizes, out_sizes)
    add = b.fadd if kernel.dtype.startswith("float") else b.add
    zero = constant(STORED[kernel.dtype] if width == 1 else ir.VectorType(STORED[kernel.dtype], width), 0)
    length = -(-prod(sizes) // chunks)
    with code.loop(code.begin, code.end) as (number,):
        begin = b.mul(b.urem(number, I64(chunks)), I64(length))
        end = b.add(begin, I64(length))
        end = b.select(b.icmp_signed("<", end, I64(prod(sizes))), end, I64(prod(sizes)))
        unit = b.udiv(number, I64(chunks))
        part = b.urem(unit, I64(max(1, blocks)))
        value_at, out_at = offsets(b, b.udiv(unit, I64(max(1, blocks))), batch, [value_all[:-1], out_all[:-1]])
        source = b.gep(rows.source, [b.add(value_at, b.mul(part, I64(most * step)))])
        target = b.gep(rows.target, [b.add(out_at, b.mul(part, I64(most * target_step)))])

        def run(count: int) -> None:
            vectors = pieces(count, width)
            with code.loop(begin, end) as (row,):
                (row_at,) = offsets(b, row, sizes, [out_rows])
                for at, mask in vectors:
                    store_lanes(b, zero, target, b.add(row_at, I64(at * target_step)), target_step, mask)
            with code.loop(I64(0), I64(rows.places)) as (place,):
                (from_row,) = offsets(b, place, kernel.places, [value_places])
                index, to_row = rows.named(place, out_sizes)
                if 0 in kernel.sizes:
                    return
                mine = b.and_(b.icmp_signed("<=", begin, index), b.icmp_signed("<", index, end))
                with b.if_then(mine) if chunks > 1 else nullcontext():
                    accumulate(vectors, from_row, to_row)

        def accumulate(vectors: list[tuple[int, Any]], from_row: Any, to_row: Any) -> None:
            for at, mask in vectors:
                given = load_lanes(b, source, b.add(from_row, I64(at * step)), step, width, mask)
                to = b.add(to_row, I64(at * target_step))
                there = load_lanes(b, target, to, target_step, width, mask)
                store_lanes(b, add(there, given), target, to, target_step, mask)

        last = count - max(0, blocks - 1) * most
        if blocks <= 1 or last == most:
            run(min(count, most))
        else:
            with b.if_else(b.icmp_signed("==", part, I64(blocks - 1))) as (then, otherwise):
                with then:
                    run(last)
                with otherwise:
                    run(most)
    code.end_function()
    moved = prod(shape) * (2 * rows.places + prod(sizes)) * ITEMSIZE[kernel.dtype]
    units = prod(batch) * blocks * chunks
    return Emitted(name, units, rows.places * units * 2.0 + moved * _NANOSECONDS)


def _overwrite(module: ir.Module, name: str, kernel: Overwrite) -> Emitted:
    """One unit writes everything, in the order of the places: they are few, or it would be another operation."""
    rows = _Rows(module, name, kernel, first=1)
    code, b = rows.code, rows.code.b
    before = code.pointer(0, kernel.dtype)
    shape = (*kernel.outer, *kernel.sizes, *kernel.inner)
    out_outer, out_sizes, out_inner = _parts(contiguous(shape), len(kernel.outer), len(kernel.sizes))
    value_outer, value_places, value_inner = _parts(kernel.value, len(kernel.outer), len(kernel.places))
    inner, (value_inner, out_inner) = merged(kernel.inner, value_inner, out_inner)
    rest, count = inner[:-1], inner[-1] if inner else 1
    step, target_step = (value_inner[-1], out_inner[-1]) if inner else (1, 1)
    width = lanes(ITEMSIZE[kernel.dtype])
    with code.loop(code.begin, code.end):
        with b.if_then(b.icmp_unsigned("!=", before, rows.target)):
            _copy(code, prod(shape), before, 1, rows.target, 1, width)
        with code.loop(I64(0), I64(prod(kernel.outer))) as (outer,):
            value_at, out_at = offsets(b, outer, kernel.outer, [value_outer, out_outer])
            with code.loop(I64(0), I64(rows.places)) as (place,):
                (from_row,) = offsets(b, place, kernel.places, [value_places])
                from_row = b.add(value_at, from_row)
                to_row = b.add(out_at, rows.named(place, out_sizes)[1])
                with code.loop(I64(0), I64(prod(rest))) as (row,):
                    value_row, out_row = offsets(b, row, rest, [value_inner[:-1], out_inner[:-1]])
                    source = b.gep(rows.source, [b.add(from_row, value_row)])
                    target = b.gep(rows.target, [b.add(to_row, out_row)])
                    _copy(code, count, source, step, target, target_step, width)
    code.end_function()
    moved = prod(kernel.outer) * rows.places * (3.0 + prod(inner) * ITEMSIZE[kernel.dtype] * _NANOSECONDS)
    return Emitted(name, 1, moved)


def _chunks(kernel: Scatter) -> int:
    """Into how many chunks of rows the result is cut: each unit then clears memory that lies together."""
    size = prod(kernel.sizes)
    nbytes = size * prod(kernel.inner) * ITEMSIZE[kernel.dtype]
    is_large = len(kernel.sizes) == 1 and nbytes > _LARGE and size > 4 * prod(kernel.places)
    return _STRETCHES if is_large else 1


# -- elements along an axis ------------------------------------------------------------------------


def _along(module: ir.Module, name: str, kernel: GatherAlong) -> Emitted:
    code = Code(module, name)
    b = code.b
    x, index, out = _arrays(code, kernel)
    shape, (x_rows, index_rows, out_rows) = merged(kernel.rows, kernel.x[:-1], kernel.index[:-1], kernel.out[:-1])
    with code.loop(code.begin, code.end) as (unit,):
        x_at, index_at, out_at = offsets(b, unit, shape, [x_rows, index_rows, out_rows])
        with code.loop(I64(0), I64(kernel.count)) as (p,):
            place = b.add(index_at, b.mul(p, I64(kernel.index[-1])))
            at = _index(code, index, place, kernel.index_dtype, kernel.size)
            if kernel.size:
                element = load_lanes(b, x, b.add(x_at, b.mul(at, I64(kernel.x[-1]))), 1, 1)
                store_lanes(b, element, out, b.add(out_at, b.mul(p, I64(kernel.out[-1]))), 1)
    code.end_function()
    units = prod(kernel.rows)
    return Emitted(name, units, units * (4.0 + kernel.count * 1.5))


def _along_back(module: ir.Module, name: str, kernel: ScatterAlong) -> Emitted:
    code = Code(module, name)
    b = code.b
    value, index, out = _arrays(code, kernel)
    shape, steps = merged(kernel.rows, kernel.value[:-1], kernel.index[:-1], kernel.out[:-1])
    add = b.fadd if kernel.dtype.startswith("float") else b.add
    with code.loop(code.begin, code.end) as (unit,):
        value_at, index_at, out_at = offsets(b, unit, shape, steps)
        row = b.gep(out, [out_at])
        _clear(code, kernel.size, row, kernel.out[-1], lanes(ITEMSIZE[kernel.dtype]))
        with code.loop(I64(0), I64(kernel.count)) as (p,):
            place = b.add(index_at, b.mul(p, I64(kernel.index[-1])))
            at = _index(code, index, place, kernel.index_dtype, kernel.size)
            if kernel.size:
                to = b.mul(at, I64(kernel.out[-1]))
                given = load_lanes(b, value, b.add(value_at, b.mul(p, I64(kernel.value[-1]))), 1, 1)
                store_lanes(b, add(load_lanes(b, row, to, 1, 1), given), row, to, 1)
    code.end_function()
    units = prod(kernel.rows)
    moved = kernel.size * ITEMSIZE[kernel.dtype] * _NANOSECONDS
    return Emitted(name, units, units * (4.0 + kernel.count * 2.0 + moved))


def _arrays(code: Code, kernel: GatherAlong | ScatterAlong) -> tuple[Any, Any, Any]:
    """The arrays of a kernel along an axis."""
    return code.pointer(0, kernel.dtype), code.pointer(1, kernel.index_dtype), code.pointer(2, kernel.dtype)
