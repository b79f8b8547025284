"""Matrix products and transposition of what lies packed in scratch memory: functions that kernels of a module share.

Sizes are given when they are called, in multiples of tiles: whoever packs the matrices fills them up with zeros.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..code import I64, ITEMSIZE, STORED, VOID, Code, constant, intrinsic, load, splat, store
from ..registers import REGISTER_BYTES
from ..strided import lanes, transposed

#: Rows are counted in multiples of this.
ROWS = 8
#: Rows and vectors across a tile: its sums are to stay in registers, of which there are 32 with the widest, else 16.
_TALL = 8 if REGISTER_BYTES == 64 else 4
_VECTORS = 2


class Routine(Code):
    """A function with arguments of its own, for other functions of its module to call."""

    def __init__(self, module: ir.Module, name: str, arguments: list[Any]) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(VOID, arguments), name)
        self.function.linkage = "internal"
        self.function.attributes.add("nounwind")
        self.function.attributes.add("noinline")
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))


def padded(size: int, dtype: str) -> int:
    """A size as a multiple of the rows of a tile and of the lanes of a vector."""
    unit = max(ROWS, lanes(ITEMSIZE[dtype]))
    return -(-size // unit) * unit


def product(module: ir.Module, dtype: str, transposed: bool) -> ir.Function:
    """out = a x, or out += a^T x if `transposed`.

    Called with (a, step of a, x, step of x, out, step of out, rows, columns, depth), where a step is from one row of
    what lies in memory to the next, `rows` of out are a multiple of `ROWS` and `columns` of the lanes of a vector.
    """
    name = f"tile_product_{'transposed_' if transposed else ''}{dtype}"
    if name in module.globals:
        return module.globals[name]
    pointer = STORED[dtype].as_pointer()
    routine = Routine(module, name, [pointer, I64, pointer, I64, pointer, I64, I64, I64, I64])
    b = routine.b
    a, a_step, x, x_step, out, out_step, rows, columns, depth = routine.function.args
    width = lanes(ITEMSIZE[dtype])
    size = ITEMSIZE[dtype]
    zero = constant(ir.VectorType(STORED[dtype], width), 0.0)

    def tiles(column: Any, vectors: int) -> None:
        x_column = b.gep(x, [column])
        with routine.loop(I64(0), rows, _TALL) as (row,):
            if transposed:
                starts = [b.gep(a, [b.add(row, I64(i))]) for i in range(_TALL)]
            else:
                starts = [b.gep(a, [b.mul(b.add(row, I64(i)), a_step)]) for i in range(_TALL)]
            with routine.loop(I64(0), depth, 1, *[zero] * (_TALL * vectors)) as (k, *sums):
                x_row = b.mul(k, x_step)
                right = [load(b, x_column, b.add(x_row, I64(v * width)), width, size) for v in range(vectors)]
                at = b.mul(k, a_step) if transposed else k
                after = []
                for i in range(_TALL):
                    left = splat(b, load(b, starts[i], at, 1, size), width)
                    after += [intrinsic(b, "fma", left, right[v], sums[i * vectors + v]) for v in range(vectors)]
                routine.again(*after)
            results = routine.results
            for i in range(_TALL):
                place = b.add(b.mul(b.add(row, I64(i)), out_step), column)
                for v in range(vectors):
                    there = b.add(place, I64(v * width))
                    value = results[i * vectors + v]
                    if transposed:
                        value = b.fadd(load(b, out, there, width, size), value)
                    store(b, value, out, there, size)

    tile = _VECTORS * width
    whole = b.mul(b.udiv(columns, I64(tile)), I64(tile))
    with routine.loop(I64(0), whole, tile) as (column,):
        tiles(column, _VECTORS)
    with routine.loop(whole, columns, width) as (column,):
        tiles(column, 1)
    routine.end_function()
    return routine.function


def transposition(module: ir.Module, dtype: str) -> ir.Function:
    """Called with (x, step of x, out, step of out, rows of x, columns of x): multiples of a vector's lanes."""
    name = f"tile_transposition_{dtype}"
    if name in module.globals:
        return module.globals[name]
    pointer = STORED[dtype].as_pointer()
    routine = Routine(module, name, [pointer, I64, pointer, I64, I64, I64])
    b = routine.b
    x, x_step, out, out_step, rows, columns = routine.function.args
    width, size = lanes(ITEMSIZE[dtype]), ITEMSIZE[dtype]
    with routine.loop(I64(0), rows, width) as (row,), routine.loop(I64(0), columns, width) as (column,):
        tile = [load(b, x, b.add(b.mul(b.add(row, I64(i)), x_step), column), width, size) for i in range(width)]
        for i, vector in enumerate(transposed(b, tile)):
            store(b, vector, out, b.add(b.mul(b.add(column, I64(i)), out_step), row), size)
    routine.end_function()
    return routine.function
