"""The loops around the tiles of a matrix product: along k and the rows in blocks, along the columns in panels.

One such function serves all products that are cut alike, whatever their sizes and strides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from llvmlite import ir

from ..code import I1, I64, ITEMSIZE, STORED
from .product_library import begin, call
from .product_tiles import counted, dots, pack, pack_lines, spread, tile

#: Steps along k after which sums go to memory, so that a panel of y stays in the second level of cache.
DEPTH = 256
#: Bytes of x that are used with one panel of y after another before the next rows are: they are to stay there too.
KEPT = 1 << 18

#: Tiles whose rows of x are copied together where x is stored transposed: they share lines of cache.
GROUP = 4


@dataclass(frozen=True)
class Cut:
    """How a product is cut: all that its loops depend on beside sizes and strides.

    A tile has `rows` and `columns`. Where an axis is not a multiple of that, either the last tile begins earlier and
    does some work twice (`back`), or it is smaller, and has `rest` rows or columns: those are counted up to whole
    vectors, and if `masked`, the last vector is not full.

    `copied` says how y lies that is copied panel by panel (see `pack`), or is "no". `direct`: out's rows are
    contiguous. `dotted`: by `dots`, which copies nothing and takes any out. `x_copied` is how x's transpose lies of
    which the rows that are kept in cache are copied, tile by tile, or "no".
    """

    dtype: str
    lanes: int
    rows: int
    rows_back: bool
    rows_rest: int
    columns: int
    columns_back: bool
    columns_rest: int
    masked: bool
    copied: str
    direct: bool
    dotted: bool
    x_copied: str

    def scratch(self, m: int, k: int) -> int:
        """Bytes of scratch memory: for a panel of y, rows of x and a tile of out, and to begin at a line of cache."""
        size = self.columns * min(k, DEPTH) if self.copied != "no" else 0
        size += 0 if self.direct else self.rows * self.columns
        if self.x_copied != "no":
            size += min(self.tall(k), -(-m // self.rows)) * self.rows * min(k, DEPTH)
        return size and 64 + size * ITEMSIZE[self.dtype]

    def tall(self, k: int) -> int:
        """How many tiles' rows of x are kept in cache."""
        return max(1, KEPT // (ITEMSIZE[self.dtype] * self.rows * max(1, min(k, DEPTH))))


def panels(module: ir.Module, *cut: Any) -> None:
    """A function (x, y, out, scratch, rows, columns, tall, m, n, k, strides, accumulate): out = x @ y (+ out).

    `rows` and `columns` are two numbers each: the tiles to do along that axis are those from the first one on, before
    the second one. `tall` is how many along the rows are done together: see `Cut.tall`. Strides are two each of x, y
    and out.
    """
    how = Cut(*cut)
    pointer = STORED[how.dtype].as_pointer()
    function, b = begin(module, *[pointer] * 4, *[I64] * 14, I1)
    _Panels(b, how, function.args).along_k()
    b.ret_void()


class _Panels:
    def __init__(self, b: Any, cut: Cut, arguments: Any) -> None:
        self.b, self.cut = b, cut
        self.x, self.y, self.out, scratch, *numbers, self.add = arguments
        self.rows, self.columns = numbers[:2], numbers[2:4]
        self.tall, self.m, self.n, self.k = numbers[4:8]
        self.x_row, self.x_step, self.y_step, self.y_column, self.out_row, self.out_column = numbers[8:]
        address = b.and_(b.add(b.ptrtoint(scratch, I64), I64(63)), I64(-64))
        self.tile = b.inttoptr(address, scratch.type)
        self.panel = self.tile if cut.direct else b.gep(self.tile, [I64(cut.rows * cut.columns)], inbounds=True)
        depth = self.smaller(self.k, I64(DEPTH)) if cut.copied != "no" else I64(0)
        self.packed = self.at(self.panel, depth, I64(cut.columns))

    def at(self, pointer: Any, index: Any, stride: Any) -> Any:
        return self.b.gep(pointer, [self.b.mul(index, stride)], inbounds=True)

    def smaller(self, one: Any, other: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", one, other), one, other)

    def along_k(self) -> None:
        b = self.b
        if self.cut.dotted:
            self.along_columns(self.rows, self.x, self.y, self.k, self.add)
            return
        first, last = self.rows

        def block(_: list[Any], p: Any) -> list[Any]:
            depth = self.smaller(b.sub(self.k, p), I64(DEPTH))
            add = b.or_(self.add, b.icmp_signed(">", p, I64(0)))
            x, y = self.at(self.x, p, self.x_step), self.at(self.y, p, self.y_step)

            def some_rows(_: list[Any], start: Any) -> list[Any]:
                rows = [start, self.smaller(b.add(start, self.tall), last)]
                if self.cut.x_copied != "no":
                    self.copy_rows(rows, x, depth)
                self.along_columns(rows, x, y, depth, add)
                return []

            counted(b, first, last, self.tall, [], some_rows)
            return []

        once = b.select(b.icmp_signed(">", self.k, I64(0)), self.k, I64(1))  # sums of nothing are to be written too
        counted(b, I64(0), once, DEPTH, [], block)

    def blocks(
        self,
        share: list[Any],
        extent: Any,
        block: int,
        back: bool,
        rest: int,
        body: Callable[[Any, Any, int, Any], None],
    ) -> None:
        """`body(number, start, size, left)` for each tile along an axis that is this call's to do: `left` is None, or,
        for what is left at the end, how much of the tile's size there is.
        """
        b = self.b
        whole = b.sdiv(extent, I64(block))
        first, last = share

        def full(_: list[Any], index: Any) -> list[Any]:
            start = b.mul(index, I64(block))
            body(index, self.smaller(start, b.sub(extent, I64(block))) if back else start, block, None)
            return []

        counted(b, first, self.smaller(last, whole) if rest else last, 1, [], full)
        if rest:
            with b.if_then(b.icmp_signed(">", last, whole)):
                start = b.mul(whole, I64(block))
                body(whole, start, rest, b.sub(extent, start))

    def rows_at(self, rows: list[Any], number: Any, depth: Any) -> Any:
        """Where the copy of a tile's rows of x is, of those that are in `rows`."""
        place = self.b.mul(self.b.sub(number, rows[0]), I64(self.cut.rows))
        return self.at(self.packed, place, depth)

    def copy_rows(self, rows: list[Any], x: Any, depth: Any) -> None:
        """Copy the rows of each tile, so that what is multiplied with a row of y lies together."""
        b, cut = self.b, self.cut
        first, last = rows
        if cut.x_copied == "rows":  # whole lines of cache at a time, as long as tiles are whole
            whole = self.smaller(last, b.sdiv(self.m, I64(cut.rows)))
            groups = b.sdiv(b.sub(whole, first), I64(GROUP))
            groups = b.select(b.icmp_signed(">", groups, I64(0)), groups, I64(0))
            source = self.at(x, first, I64(cut.rows))
            call(b, (source, self.packed, depth, groups, self.x_step), pack_lines, cut.dtype, cut.rows, GROUP)
            first = b.add(first, b.mul(groups, I64(GROUP)))

        def one(number: Any, i: Any, count: int, _: Any) -> None:
            source, to = self.at(x, i, self.x_row), self.rows_at(rows, number, depth)
            arguments = (source, to, depth, I64(count), self.x_step, self.x_row)
            call(b, arguments, pack, cut.dtype, cut.rows, cut.rows, cut.x_copied)

        self.blocks([first, last], self.m, cut.rows, cut.rows_back, cut.rows_rest, one)

    def along_columns(self, rows: list[Any], x: Any, y: Any, depth: Any, add: Any) -> None:
        cut, b = self.cut, self.b

        def panel(_: Any, j: Any, size: int, left: Any) -> None:
            columns = I64(size) if left is None else left
            of_y, y_step = self.at(y, j, self.y_column), self.y_step
            if cut.copied != "no":
                arguments = (of_y, self.panel, depth, columns, self.y_step, self.y_column)
                call(b, arguments, pack, cut.dtype, cut.lanes, cut.columns, cut.copied)
                of_y, y_step = self.panel, I64(cut.columns)
            to = self.at(self.out, j, self.out_column)

            def one(number: Any, i: Any, count: int, _: Any) -> None:
                of_x, target = self.at(x, i, self.x_row), self.at(to, i, self.out_row)
                x_strides = (self.x_row, self.x_step)
                if cut.x_copied != "no":
                    of_x, x_strides = self.rows_at(rows, number, depth), (I64(1), I64(cut.rows))
                if cut.dotted:
                    strides = (self.x_row, self.y_column, self.out_row, self.out_column)
                    arguments = (of_x, of_y, target, depth, *strides, columns, add)
                    call(b, arguments, dots, cut.dtype, cut.lanes, count, cut.columns)
                    return
                result, row, added = (target, self.out_row, add) if cut.direct else (self.tile, I64(cut.columns), I1(0))
                arguments = (of_x, of_y, result, depth, *x_strides, y_step, row, columns, added)
                masked = cut.masked and left is not None
                call(b, arguments, tile, cut.dtype, cut.lanes, count, size // cut.lanes, masked)
                if not cut.direct:
                    places = (result, target, I64(count), columns, self.out_row, self.out_column, add)
                    call(b, places, spread, cut.dtype, cut.columns)

            self.blocks(rows, self.m, cut.rows, cut.rows_back, cut.rows_rest, one)

        self.blocks(self.columns, self.n, cut.columns, cut.columns_back, cut.columns_rest, panel)
