"""The innermost parts of matrix products: small functions that compute a tile of the result in registers.

`tile` keeps a few rows of vectors of sums in registers and walks along k: a vector of y's row times one number of x.
It takes x with any strides, but y's rows must be contiguous. `dots` takes rows of x and columns of y that are
contiguous along k, and sums lane by lane. `pack` copies a panel of y for `tile` where its rows are not contiguous,
`spread` copies a tile of the result to where it belongs if its rows are not.

Strides and sizes are arguments, so that all products share these few functions (see `product_library.py`): compiling
one takes longer than running it ten thousand times.
"""

from __future__ import annotations

from typing import Any, Callable

from llvmlite import ir

from ..code import I1, I32, I64, ITEMSIZE, POINTER, STORED, VOID, constant, intrinsic, load, splat, store, vector
from ..strided import declared, load_lanes, store_lanes, summed, transposed
from .product_library import begin


def tile(module: ir.Module, dtype: str, lanes: int, rows: int, wide: int, masked: bool) -> None:
    """A function (x, y, out, k, x_row, x_step, y_step, out_row, columns, accumulate): out = x @ y (+ out).

    `out` has `rows` rows of `wide` vectors; if `masked`, only `columns` of its columns exist (and of y's), which end
    in the last vector. `x_row` and `x_step` are the strides of x, `y_step` and `out_row` those from row to row.
    """
    kind = STORED[dtype]
    align = ITEMSIZE[dtype]
    pointer = kind.as_pointer()
    function, b = begin(module, *[pointer] * 3, *[I64] * 6, I1)
    x, y, out, k, x_row, x_step, y_step, out_row, columns, accumulate = function.args
    zero = constant(vector(kind, lanes), 0.0)
    mask = first_lanes(b, b.sub(columns, I64((wide - 1) * lanes)), lanes) if masked else None
    parts = [(part * lanes, mask if part == wide - 1 else None) for part in range(wide)]
    places = [(row, *part) for row in range(rows) for part in parts]
    row_of_x = [b.mul(x_row, I64(row)) for row in range(rows)]
    row_of_out = [b.gep(out, [b.mul(out_row, I64(row))], inbounds=True) for row in range(rows)]

    def step(sums: list[Any], of_x: Any, of_y: Any) -> list[Any]:
        vectors = [load_lanes(b, of_y, I64(first), 1, lanes, used) for first, used in parts]
        after = []
        for row in range(rows):
            number = splat(b, load(b, of_x, row_of_x[row], 1, align), lanes)
            after += [intrinsic(b, "fma", number, part, sums[row * wide + at]) for at, part in enumerate(vectors)]
        return after

    # A multiply-add takes about four cycles and up to two can begin in each: with few sums in the tile, several steps
    # along k are summed apart.
    apart = 1
    while apart * rows * wide < 8 and apart < 4:
        apart *= 2

    # What is in `out` is brought near while the sums grow, and added to them at the end: it may come from far. So do
    # the lines of a result with long rows, which is large.
    with b.if_then(b.or_(accumulate, b.icmp_signed(">=", out_row, I64(1024)))):
        for place in row_of_out:
            for at in (*range(0, wide * lanes * align, 64), wide * lanes * align - 1):
                prefetch(b, b.bitcast(place, POINTER), at, is_written=True)
    size = len(places)
    whole = b.and_(k, I64(-apart))
    values = [x, y, *[zero] * (size * apart)]

    def steps(count: int) -> Callable[[list[Any], Any], list[Any]]:
        def body(values: list[Any], _: Any) -> list[Any]:
            of_x, of_y, *flat = values
            after = []
            for group in range(count):
                after += step(flat[group * size : (group + 1) * size], of_x, of_y)
                of_x, of_y = b.gep(of_x, [x_step], inbounds=True), b.gep(of_y, [y_step], inbounds=True)
            return [of_x, of_y, *after]

        return body

    of_x, of_y, *flat = counted(b, I64(0), whole, apart, values, steps(apart))
    while len(flat) > size:
        half = len(flat) // 2
        flat = [b.fadd(one, other) for one, other in zip(flat[:half], flat[half:])]
    if apart > 1:
        of_x, of_y, *flat = counted(b, whole, k, 1, [of_x, of_y, *flat], steps(1))
    with b.if_else(accumulate) as (added, plain):
        with added:
            before = [load_lanes(b, row_of_out[row], I64(first), 1, lanes, used) for row, first, used in places]
            for (row, first, used), present, value in zip(places, before, flat):
                store_lanes(b, b.fadd(present, value), row_of_out[row], I64(first), 1, used)
        with plain:
            for (row, first, used), value in zip(places, flat):
                store_lanes(b, value, row_of_out[row], I64(first), 1, used)
    b.ret_void()


def dots(module: ir.Module, dtype: str, lanes: int, rows: int, wide: int) -> None:
    """A function (x, y, out, k, x_row, y_column, out_row, out_column, columns, accumulate): out = x @ y (+ out).

    `out` has `rows` rows and as many columns as `columns` says, 1 to `wide`, which is a power of two. Rows of x and
    columns of y are contiguous; `x_row` and `y_column` are the strides from one to the next.
    """
    kind = STORED[dtype]
    align = ITEMSIZE[dtype]
    pointer = kind.as_pointer()
    function, b = begin(module, *[pointer] * 3, *[I64] * 6, I1)
    x, y, out, k, x_row, y_column, out_row, out_column, columns, accumulate = function.args
    last = b.sub(columns, I64(1))
    offsets = [I64(0)]
    for column in range(1, wide):  # columns that do not exist read the last one again, and are not written
        at = b.select(b.icmp_signed("<", last, I64(column)), last, I64(column))
        offsets.append(b.mul(at, y_column))
    row_of_x = [b.mul(x_row, I64(row)) for row in range(rows)]
    size = rows * wide
    apart = max(1, 8 // size)

    def step(sums: list[Any], p: Any, mask: Any = None) -> list[Any]:
        of_y = [load_lanes(b, y, b.add(p, offset), 1, lanes, mask) for offset in offsets]
        after = []
        for row in range(rows):
            of_x = load_lanes(b, x, b.add(p, row_of_x[row]), 1, lanes, mask)
            after += [intrinsic(b, "fma", of_x, part, sums[row * wide + at]) for at, part in enumerate(of_y)]
        return after

    def steps(flat: list[Any], p: Any) -> list[Any]:
        after = []
        for group in range(apart):
            after += step(flat[group * size : (group + 1) * size], b.add(p, I64(group * lanes)))
        return after

    whole = b.and_(k, I64(-lanes * apart))
    flat = counted(b, I64(0), whole, lanes * apart, [constant(vector(kind, lanes), 0.0)] * (size * apart), steps)
    while len(flat) > size:
        half = len(flat) // 2
        flat = [b.fadd(one, other) for one, other in zip(flat[:half], flat[half:])]
    flat = counted(b, whole, k, lanes, flat, lambda sums, p: step(sums, p, first_lanes(b, b.sub(k, p), lanes)))
    exist = None if wide == 1 else first_lanes(b, columns, wide)
    with b.goto_entry_block():
        room = b.bitcast(b.alloca(kind, wide), pointer)
    for row in range(rows):
        value = summed(b, flat[row * wide : (row + 1) * wide])
        to = b.gep(out, [b.mul(out_row, I64(row))], inbounds=True)

        def one_by_one(_: list[Any], j: Any, to: Any = to) -> list[Any]:
            return _put(b, room, j, to, b.mul(j, out_column), align, accumulate)

        with b.if_else(b.icmp_signed("==", out_column, I64(1))) as (contiguous, spaced):
            with contiguous, b.if_else(accumulate) as (added, plain):
                with added:
                    store_lanes(b, b.fadd(value, load_lanes(b, to, I64(0), 1, wide, exist)), to, I64(0), 1, exist)
                with plain:
                    store_lanes(b, value, to, I64(0), 1, exist)
            with spaced:
                store(b, value, room, I64(0), align)
                counted(b, I64(0), columns, 1, [], one_by_one)
    b.ret_void()


def pack(module: ir.Module, dtype: str, lanes: int, width: int, layout: str) -> None:
    """A function (y, panel, k, columns, y_step, y_column): copy y[:k, :columns] into rows of `width` elements.

    `layout` is "rows" if y's rows are contiguous, "columns" if its columns are (they are read by vectors of neighbours
    along k, a square of them at a time turned in registers), or "any".
    """
    kind = STORED[dtype]
    align = ITEMSIZE[dtype]
    pointer = kind.as_pointer()
    function, b = begin(module, pointer, pointer, I64, I64, I64, I64)
    y, panel, k, columns, y_step, y_column = function.args

    def copy(first_row: Any, first_column: Any) -> None:
        """What is left, one by one."""

        def along(_: list[Any], p: Any) -> list[Any]:
            def across(_: list[Any], j: Any) -> list[Any]:
                value = load(b, y, b.add(b.mul(p, y_step), b.mul(j, y_column)), 1, align)
                store(b, value, panel, b.add(b.mul(p, I64(width)), j), align)
                return []

            return counted(b, first_column, columns, 1, [], across)

        counted(b, first_row, k, 1, [], along)

    def row(_: list[Any], p: Any) -> list[Any]:
        # the same row of the panel that comes next: rows lie too far from each other for the processor to guess it
        following = b.gep(y, [b.add(b.mul(p, y_step), I64(width))])
        for at in range(0, width * align, 64):
            prefetch(b, b.bitcast(following, POINTER), at)

        def across(_: list[Any], j: Any) -> list[Any]:
            value = load(b, y, b.add(b.mul(p, y_step), j), lanes, align)
            store(b, value, panel, b.add(b.mul(p, I64(width)), j), align)
            return []

        return counted(b, I64(0), whole_columns, lanes, [], across)

    def group(_: list[Any], j: Any) -> list[Any]:
        def square(_: list[Any], p: Any) -> list[Any]:
            at = b.add(p, b.mul(j, y_column))
            values = []
            for _lane in range(lanes):
                values.append(load(b, y, at, lanes, align))
                at = b.add(at, y_column)
            to = b.gep(panel, [b.add(b.mul(p, I64(width)), j)], inbounds=True)
            for lane, value in enumerate(transposed(b, values)):
                store(b, value, to, I64(lane * width), align)
            return []

        return counted(b, I64(0), whole_rows, lanes, [], square)

    whole_rows, whole_columns = b.and_(k, I64(-lanes)), b.and_(columns, I64(-lanes))
    if layout == "rows":
        counted(b, I64(0), k, 1, [], row)
        copy(I64(0), whole_columns)
    elif layout == "columns":
        counted(b, I64(0), whole_columns, lanes, [], group)
        copy(I64(0), whole_columns)
        copy(whole_rows, I64(0))
    else:
        copy(I64(0), I64(0))
    b.ret_void()


def pack_lines(module: ir.Module, dtype: str, width: int, group: int) -> None:
    """A function (y, panels, k, groups, y_step): copy y[:k] into panels of `width` columns, `group` of them at a time.

    y has `groups` * `group` * `width` contiguous columns; each panel is k rows of `width` elements.
    """
    align = ITEMSIZE[dtype]
    pointer = STORED[dtype].as_pointer()
    function, b = begin(module, pointer, pointer, I64, I64, I64)
    y, panels, k, groups, y_step = function.args
    size = b.mul(k, I64(width))

    def some(_: list[Any], number: Any) -> list[Any]:
        of_y = b.gep(y, [b.mul(number, I64(group * width))], inbounds=True)
        first = b.gep(panels, [b.mul(b.mul(number, I64(group)), size)], inbounds=True)
        places = [b.gep(first, [b.mul(size, I64(at))], inbounds=True) for at in range(group)]

        def row(_: list[Any], p: Any) -> list[Any]:
            source, to = b.mul(p, y_step), b.mul(p, I64(width))
            prefetch(b, b.bitcast(b.gep(of_y, [source]), POINTER), group * width * align)  # what comes after all of k
            values = [load(b, of_y, b.add(source, I64(at * width)), width, align) for at in range(group)]
            for value, place in zip(values, places):
                store(b, value, place, to, align)
            return []

        return counted(b, I64(0), k, 1, [], row)

    counted(b, I64(0), groups, 1, [], some)
    b.ret_void()


def spread(module: ir.Module, dtype: str, width: int) -> None:
    """A function (tile, out, rows, columns, out_row, out_column, accumulate): copy rows of `width` elements (+ out)."""
    kind = STORED[dtype]
    align = ITEMSIZE[dtype]
    pointer = kind.as_pointer()
    function, b = begin(module, pointer, pointer, I64, I64, I64, I64, I1)
    source, out, rows, columns, out_row, out_column, accumulate = function.args

    def along(_: list[Any], i: Any) -> list[Any]:
        def across(_: list[Any], j: Any) -> list[Any]:
            at = b.add(b.mul(i, out_row), b.mul(j, out_column))
            return _put(b, source, b.add(b.mul(i, I64(width)), j), out, at, align, accumulate)

        return counted(b, I64(0), columns, 1, [], across)

    counted(b, I64(0), rows, 1, [], along)
    b.ret_void()


def prefetch(b: Any, pointer: Any, offset: int, is_written: bool = False) -> None:
    """Have what lies so many bytes behind a pointer brought to the second level of cache; it need not exist.

    What is to be written soon is brought to the first level.
    """
    function = declared(b, "llvm.prefetch.p0", VOID, [pointer.type, I32, I32, I32])
    b.call(function, [b.gep(pointer, [I64(offset)]), I32(int(is_written)), I32(3 if is_written else 2), I32(1)])


def counted(
    b: Any, start: Any, stop: Any, step: Any, values: list[Any], body: Callable[[list[Any], Any], list[Any]]
) -> list[Any]:
    """A loop over start, start + step, ... below stop; `body(values, index)` returns the values of the next round."""
    before = b.block
    head, inside, done = (b.append_basic_block(name) for name in ("loop", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    index.add_incoming(start, before)
    phis = []
    for value in values:
        phi = b.phi(value.type)
        phi.add_incoming(value, before)
        phis.append(phi)
    b.cbranch(b.icmp_signed("<", index, stop), inside, done)
    b.position_at_end(inside)
    after = body(phis, index)
    step = I64(step) if isinstance(step, int) else step
    index.add_incoming(b.add(index, step, flags=["nsw"]), b.block)
    for phi, value in zip(phis, after):
        phi.add_incoming(value, b.block)
    b.branch(head)
    b.position_at_end(done)
    return phis


def first_lanes(b: Any, count: Any, lanes: int) -> Any:
    """A mask of the first `count` lanes (an i64; all of them if it is more)."""
    numbers = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    return b.icmp_signed("<", numbers, splat(b, count, lanes))


def _put(b: Any, source: Any, place: Any, out: Any, at: Any, align: int, accumulate: Any) -> list[Any]:
    """One number to out, added to what is there if `accumulate`."""
    value = load(b, source, place, 1, align)
    with b.if_else(accumulate) as (added, plain):
        with added:
            store(b, b.fadd(load(b, out, at, 1, align), value), out, at, align)
        with plain:
            store(b, value, out, at, align)
    return []
