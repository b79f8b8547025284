"""Matrix products by the compiler's own kernels: tiles of the result in registers, cut as suits each product.

They have little to decide when they run and nothing to copy when the operands lie well, which is most of the time of
a small product in BLAS; and they take any strides, which BLAS does not.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cache

from llvmlite import ir

from ..code import I1, I64, ITEMSIZE, Code
from .panels import DEPTH, KEPT, Cut, panels
from .product_form import Form, Units, entries, units_of
from .product_library import call
from .product_tiles import tile


@dataclass(frozen=True)
class Machine:
    """What tiles depend on: bytes of a vector register, and how many vectors wide a tile of four rows may be."""

    vector: int
    wide: int

    def lanes(self, dtype: str) -> int:
        return self.vector // ITEMSIZE[dtype]


@cache
def host() -> Machine:
    """This machine."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return Machine(64, 4)
    if features.get("avx"):
        return Machine(32, 3)
    return Machine(16, 4 if features.get("neon") else 2)


def cut_of(form: Form, machine: Machine) -> Cut:
    """A good way to cut a product."""
    lanes = machine.lanes(form.dtype)
    y_step, y_column = form.y[-2:]
    dotted = form.x[-1] == 1 and y_step == 1 and form.m <= max(2, min(form.k // lanes, 16))
    # The same numbers written twice are harmless, added twice they are not.
    twice = not form.accumulate and (dotted or form.k <= DEPTH)
    if dotted:
        rows, columns, within = min(form.m, 2), min(8, lanes) if form.n > 2 else 1, 1
        copied, direct = "no", True
    else:
        # Up to eight rows in one tile, unless y comes from memory: then the wider tile reads longer pieces of its rows.
        near = form.k * form.n * ITEMSIZE[form.dtype] <= KEPT
        rows, within = form.m if form.m <= (8 if near else 4) else 4, lanes
        columns = lanes * min(max(1, 4 * machine.wide // rows), -(-form.n // lanes))
        copied, direct = "no", form.out[-1] == 1
        if y_column != 1:
            copied = "columns" if y_step == 1 else "any"
        elif form.m >= 32 and form.n * form.k * ITEMSIZE[form.dtype] > 1 << 16:
            copied = "rows"
    rows_edge = _edge(form.m, rows, 1, twice)
    columns_edge = _edge(form.n, columns, within, twice and not dotted)
    masked = columns_edge[1] > 0 and form.n % within != 0
    x_copied = "no" if dotted or rows != 4 else _x_copied(form, columns)
    return Cut(form.dtype, lanes, rows, *rows_edge, columns, *columns_edge, masked, copied, direct, dotted, x_copied)


def _x_copied(form: Form, columns: int) -> str:
    """How x is copied, if enough panels of y share the copy: see `Cut`.

    Where x is stored transposed, every step along k is in another line of cache, and often in the same set.
    """
    x_row, x_step = form.x[-2:]
    if x_row == 1:
        return "rows" if form.n >= 4 * columns else "no"
    if form.n < 32 * columns:
        return "no"
    return "columns" if x_step == 1 else "any"


def _edge(extent: int, block: int, lanes: int, twice: bool) -> tuple[bool, int]:
    """(back, rest) of an axis: see `Cut`."""
    whole, rest = divmod(extent, block)
    left = -(-rest // lanes) * lanes  # what a smaller tile would compute
    if rest and whole and twice and (left == block or (block - left) * 32 <= extent):
        return True, 0
    return False, left


def emit_own(module: ir.Module, name: str, form: Form, machine: Machine) -> tuple[Units, int]:
    """Write a product's function: returns how its work is cut, and the bytes of scratch memory it needs."""
    cut = cut_of(form, machine)
    rows, columns = units_of(form, "rows", cut.rows), units_of(form, "columns", cut.columns)
    # What is copied, each thread copies for itself: few rows share the columns of a large y.
    is_wide = cut.copied != "no" and form.n >= max(2 * form.m, 32 * cut.columns)
    units = rows if form.m >= min(form.n, 64) and not is_wide else columns
    code = Code(module, name)
    b = code.b
    (x_row, x_step), (y_step, y_column), (out_row, out_column) = form.x[-2:], form.y[-2:], form.out[-2:]
    add = I1(int(form.accumulate))
    with entries(code, form, units) as ((x, y, out), first, last):
        if rows.each == columns.each == 1 and cut.direct and cut.copied == "no" and not cut.dotted:
            numbers = map(I64, (form.k, x_row, x_step, y_step, out_row, form.n))
            wide, masked = -(-form.n // cut.lanes), form.n % cut.lanes != 0
            call(b, (x, y, out, *numbers, add), tile, form.dtype, cut.lanes, form.m, wide, masked)
        else:
            along = (first, last, I64(0), I64(columns.each)) if units is rows else (I64(0), I64(rows.each), first, last)
            sizes = map(I64, (cut.tall(form.k), form.m, form.n, form.k))
            strides = map(I64, (x_row, x_step, y_step, y_column, out_row, out_column))
            arrays = (x, y, out, b.bitcast(code.scratch, x.type))
            call(b, (*arrays, *along, *sizes, *strides, add), panels, *astuple(cut))
    code.end_function()
    return units, cut.scratch(form.m, form.k)
