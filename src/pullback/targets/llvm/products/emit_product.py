"""Matrix products: which way each is computed, and the function that does it.

Measured on one core of a Zen 4 (118 GFLOP/s at most in float32), the compiler's own kernels against OpenBLAS: several
times as fast for a few rows of a large y, 10 to 80 % faster when y is stored transposed, 10 % at 128 x 512 x 784 (108
against 98), equal at 2048 x 2048 x 2048. They are slower where the last vector of a row is mostly unused, by 8 % at
100 x 100 x 100 and up to a third for ten columns, and by 3 to 5 % for large products in float64. Where x is stored
transposed and does not fit into cache, BLAS was 8 % faster in float64 (1024 x 1024 x 1024): it gets those. On a Zen 3
(98 GFLOP/s) in float32 they are within 5 % of BLAS, on two threads 20 % faster at 2048 x 2048 x 256.
"""

from __future__ import annotations

from llvmlite import ir

from ...kernels import Product
from ..code import I64, ITEMSIZE, Code, Emitted
from . import blas
from .product_form import Form, entries, form_of, units_of
from .small_products import emit_own, host

#: Multiplications from which on BLAS is taken in float64 for an x stored transposed.
MANY = 1 << 28
#: Rows or columns that a call of BLAS does at least.
BLOCK = 64


def supports(product: Product) -> bool:
    """Whether there is a native form: float32 and float64 have one."""
    return product.dtype in ("float32", "float64")


def cost(product: Product) -> float:
    """About how many nanoseconds a product takes on one thread."""
    return _cost(form_of(product))


def emit(module: ir.Module, name: str, product: Product) -> Emitted:
    """Write a product's function.

    Where it calls BLAS, it expects that to run on one thread: see `blas.Blas.set_threads`.
    """
    if not supports(product):
        raise ValueError(f"product: there is no native form for {product.dtype}, only for float32 and float64.")
    form = form_of(product)
    if not form.entries * form.m * form.n:
        Code(module, name).end_function()
        return Emitted(name, 0, 0.0)
    library = blas.find()
    if library is not None and suits_blas(form):
        return emit_blas(module, name, form, library)
    units, scratch = emit_own(module, name, form, host())
    return Emitted(name, units.each * form.entries, _cost(form), scratch=scratch)


def _cost(form: Form) -> float:
    lanes = host().lanes(form.dtype)
    columns = -(-form.n // lanes) * lanes
    computed = form.m * columns * form.k / (3.3 * lanes)  # a vector of multiply-adds a cycle
    moved = (form.m * form.k + form.k * form.n + form.m * form.n) * ITEMSIZE[form.dtype] / 30.0
    return form.entries * (10.0 + max(computed, moved))


def uses_blas(product: Product) -> bool:
    """Whether a product's function calls BLAS."""
    return supports(product) and suits_blas(form_of(product))


def suits_blas(form: Form) -> bool:
    """Whether BLAS is the better choice."""
    is_large = form.m * form.n * form.k >= MANY and form.n >= BLOCK
    return form.dtype == "float64" and is_large and form.x[-1] != 1 and takes_blas(form)


def takes_blas(form: Form) -> bool:
    """Whether BLAS can do it: one axis of each matrix contiguous, the other with enough room, no size 0."""
    out = _stored(form.m, form.n, form.out)
    operands = (_stored(form.m, form.k, form.x), _stored(form.k, form.n, form.y))
    return form.k > 0 and None not in operands and out is not None and not out[0]


def emit_blas(module: ir.Module, name: str, form: Form, library: blas.Blas) -> Emitted:
    """Write a function that calls BLAS for a form that `takes_blas`."""
    x, y, out = _stored(form.m, form.k, form.x), _stored(form.k, form.n, form.y), _stored(form.m, form.n, form.out)
    if x is None or y is None or out is None:
        raise ValueError(f"BLAS takes no matrices with strides {form.x}, {form.y} and {form.out}.")
    axis = "rows" if form.m >= form.n else "columns"
    block = _block_of(max(form.m, form.n))
    units = units_of(form, axis, block)
    code = Code(module, name)
    b = code.b
    # A call for each block, whoever computes how many: BLAS rounds differently at the edges of what it is given.
    with entries(code, form, units) as ((of_x, of_y, to), first, last), code.loop(first, last) as (number,):
        extent = I64(form.m if axis == "rows" else form.n)
        start, stop = b.mul(number, I64(block)), b.mul(b.add(number, I64(1)), I64(block))
        stop = b.select(b.icmp_signed("<", stop, extent), stop, extent)
        part = b.sub(stop, start)
        if axis == "rows":
            of_x, to = (b.gep(p, [b.mul(start, I64(s[-2]))]) for p, s in ((of_x, form.x), (to, form.out)))
            size = (part, I64(form.n), I64(form.k))
        else:
            of_y, to = (b.gep(p, [b.mul(start, I64(s[-1]))]) for p, s in ((of_y, form.y), (to, form.out)))
            size = (I64(form.m), part, I64(form.k))
        blas.emit_gemm(b, library, form.dtype, size, (of_x, *x), (of_y, *y), (to, out[1]), form.accumulate)
    code.end_function()
    return Emitted(name, units.each * form.entries, _cost(form))


def _block_of(extent: int) -> int:
    """Rows or columns of a call of BLAS, by which threads share a product: two or more blocks, large ones."""
    count = 2 if extent >= 2 * BLOCK else 1
    while count < 16 and extent >= 6 * BLOCK * count:
        count *= 2
    return -(-extent // (16 * count)) * 16


def _stored(rows: int, columns: int, strides: tuple[int, ...]) -> tuple[bool, int] | None:
    """(transposed, elements from one stored row to the next) of a matrix as BLAS takes it, or None if it cannot."""
    row, column = strides[-2:]
    if (column == 1 or columns == 1) and (rows == 1 or row >= columns):
        return False, row if rows > 1 else columns
    if (row == 1 or rows == 1) and (columns == 1 or column >= rows):
        return True, column if columns > 1 else rows
    return None
