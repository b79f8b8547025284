"""The form in which products are emitted: few batch axes, out's rows contiguous where they can be, work in units.

A `Form` is a `Product` with axes of one element dropped, neighbouring batch axes merged, a batch that shares its `y`
made part of the rows, and transposed (out^T = y^T @ x^T) if that makes out's rows contiguous.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Iterator

from ...kernels import Product
from ..code import I64, Code


@dataclass(frozen=True)
class Form:
    """out[b, i, j] = sum over p of x[b, i, p] * y[b, p, j], with strides as (batch..., rows, columns) in elements.

    `swapped` says that `x` is the product's second array and `y` its first. The stride of an axis of one element is 0,
    unless the other stride of the matrix is not 1: then it is 1, as it may be anything.
    """

    dtype: str
    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    x: tuple[int, ...]
    y: tuple[int, ...]
    out: tuple[int, ...]
    accumulate: bool
    swapped: bool

    @property
    def entries(self) -> int:
        """How many products of two matrices there are."""
        return prod(self.batch)


def form_of(product: Product) -> Form:
    """The normal form of a product."""
    axes = [
        (size, product.x[i], product.y[i], product.out[i]) for i, size in enumerate(product.batch) if size != 1
    ]  # (elements, strides)
    merged: list[tuple[int, int, int, int]] = []
    for size, *strides in axes:
        if merged and list(merged[-1][1:]) == [stride * size for stride in strides]:
            merged[-1] = (merged[-1][0] * size, strides[0], strides[1], strides[2])
        else:
            merged.append((size, strides[0], strides[1], strides[2]))
    x, y, out = product.x[-2:], product.y[-2:], product.out[-2:]
    m, n = product.m, product.n
    while merged and merged[-1][2] == 0 and (m == 1 or merged[-1][1::2] == (m * x[0], m * out[0])):
        size, x_step, _, out_step = merged.pop()  # the same y for all: more rows
        if m == 1:
            x, out = (x_step, x[1]), (out_step, out[1])
        m *= size
    while merged and merged[-1][1] == 0 and (n == 1 or merged[-1][2:] == (n * y[1], n * out[1])):
        size, _, y_step, out_step = merged.pop()  # the same x for all: more columns
        if n == 1:
            y, out = (y[0], y_step), (out[0], out_step)
        n *= size
    k = product.k
    form = Form(
        product.dtype,
        tuple(axis[0] for axis in merged),
        m,
        n,
        k,
        (*(axis[1] for axis in merged), *_free(x, m, k)),
        (*(axis[2] for axis in merged), *_free(y, k, n)),
        (*(axis[3] for axis in merged), *_free(out, m, n)),
        product.accumulate,
        False,
    )
    rows, columns = form.out[-2:]
    if (columns != 1 and rows == 1) or (n == 1 and m > 1):
        form = _transposed(form)
    return form


def _free(strides: tuple[int, ...], rows: int, columns: int) -> tuple[int, int]:
    """Strides of a matrix in which those that do not matter are the ones that say the most."""
    row, column = strides
    if rows <= 1 and columns <= 1:
        return 0, 1
    if columns <= 1:
        return row, 1 if row != 1 else 0
    if rows <= 1:
        return 1 if column != 1 else 0, column
    return row, column


def _transposed(form: Form) -> Form:
    def turned(strides: tuple[int, ...]) -> tuple[int, ...]:
        return (*strides[:-2], strides[-1], strides[-2])

    return replace(
        form,
        m=form.n,
        n=form.m,
        x=turned(form.y),
        y=turned(form.x),
        out=turned(form.out),
        swapped=not form.swapped,
    )


@dataclass(frozen=True)
class Units:
    """How work is cut: each batch entry's rows or columns in blocks of `block`, of which an entry has `each`."""

    axis: str  # "rows" or "columns"
    block: int
    each: int


def units_of(form: Form, axis: str, block: int) -> Units:
    extent = form.m if axis == "rows" else form.n
    return Units(axis, block, -(-extent // block))


@contextmanager
def entries(code: Code, form: Form, units: Units) -> Iterator[tuple[tuple[Any, Any, Any], Any, Any]]:
    """A loop over the batch entries of this call's units: gives (x, y, out), the first block, and where to stop."""
    b = code.b
    pointers = [code.pointer(index, form.dtype) for index in ((1, 0, 2) if form.swapped else (0, 1, 2))]
    if form.entries == 1:
        yield (pointers[0], pointers[1], pointers[2]), code.begin, code.end
        return
    each = I64(units.each)
    first = b.udiv(code.begin, each)
    last = b.udiv(b.add(code.end, I64(units.each - 1)), each)
    with code.loop(first, last) as (entry,):
        passed = b.mul(entry, each)
        start = b.sub(code.begin, passed)
        start = b.select(b.icmp_signed(">", start, I64(0)), start, I64(0))
        stop = b.sub(code.end, passed)
        stop = b.select(b.icmp_signed("<", stop, each), stop, each)
        yield tuple(_moved(b, p, entry, form, s) for p, s in zip(pointers, (form.x, form.y, form.out))), start, stop


def _moved(b: Any, pointer: Any, entry: Any, form: Form, strides: tuple[int, ...]) -> Any:
    """The matrix of a batch entry."""
    offset: Any = I64(0)
    rest = entry
    for axis in reversed(range(len(form.batch))):
        index = rest
        if axis:
            size = I64(form.batch[axis])
            index, rest = b.urem(rest, size), b.udiv(rest, size)
        if strides[axis]:
            offset = b.add(offset, b.mul(index, I64(strides[axis])))
    return b.gep(pointer, [offset], inbounds=True)
