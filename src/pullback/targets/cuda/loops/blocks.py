"""How the index space of a loop is cut into blocks, one for a program of the GPU at a time.

A block is some rows by some columns. Kinds of loops:

`flat`      all elements are alike: one row of them, cut into blocks
`tiles`     the same where arrays have their neighbours along different axes: blocks are square
`columns`   sums of columns, or several numbers that each column has: a program has some columns, and goes down a stripe
            of the rows
`rows`      something belongs to rows: a program has whole rows, a block of them at a time
`long`      rows that are too long for that are gone over in pieces, once for every reduction that waits for another

Sums of columns and of everything are gathered over the blocks of a program. Where several programs have parts of one,
they write them side by side, and a second kernel adds those up in their order: the bits do not depend on who is first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...kernels import Loop
from ...llvm.loops.loop_form import ROW, TOTAL, simplest

_LONGEST_ROW = 16384  # elements of a row that a program has at once
_MOST_STRIPES = 264  # two programs for each multiprocessor of the largest GPUs
_FLAT_BLOCK = 2048
_FEW_ARRAYS = 5  # with more of them a program has fewer elements of each at once
_SMALL = 1 << 18  # elements that are summed up in one go
_VERY_MANY_COLUMNS = 1 << 17  # so that each program has some and goes down all the rows
_MOST_IN_TURN = 4  # blocks for which a program reads what belongs to its columns
_MOST_COLUMNS = 2048  # of rows that are short enough for several of them to be in a block
_LONG_BLOCK = 4096  # elements of a long row that a program has at once


@dataclass(frozen=True)
class Blocks:
    """A loop in its simplest form, and how it is cut.

    Programs are numbered by stripe of rows, then by block of columns. `level` says of each step whether it has one
    value ("number"), one for each row ("row"), each column ("column") or each element.
    """

    loop: Loop
    kind: str
    rows: int
    columns: int
    row_block: int
    column_block: int
    stripes: int
    column_programs: int
    warps: int
    levels: tuple[str, ...]
    accumulated: tuple[int, ...]  # numbers of writes that are gathered over blocks

    @property
    def programs(self) -> int:
        return self.stripes * self.column_programs

    @property
    def outer(self) -> tuple[int, ...]:
        return () if self.kind == "flat" else self.loop.outer

    @property
    def inner(self) -> tuple[int, ...]:
        return (*self.loop.outer, *self.loop.inner) if self.kind == "flat" else self.loop.inner

    @property
    def row_blocks(self) -> int:
        return -(-self.rows // self.row_block)

    @property
    def column_blocks(self) -> int:
        return -(-self.columns // self.column_block)


def blocks_of(loop: Loop) -> Blocks:
    """The simplest form of a loop, cut into blocks."""
    loop = simplest(loop)
    levels = _levels(loop)
    ops = [step.op for step in loop.steps]
    accumulated = tuple(
        [n for n, write in enumerate(loop.writes) if ops[write.step] in TOTAL or ops[write.step] == "column_sum"]
    )
    rows, columns = prod(loop.outer), prod(loop.inner)
    kind = _kind(loop, levels, columns)
    if kind == "flat":
        rows, columns = 1, rows * columns
        levels = tuple(["number" if level == "number" else "element" for level in levels])
        most = _FLAT_BLOCK if len(loop.reads) + len(loop.writes) <= _FEW_ARRAYS else _FLAT_BLOCK // 4
        column_block = min(most, _power(columns))
        programs = -(-columns // column_block)
        stripes, row_block = 1, 1
        if accumulated:
            column_block = min(2 * most, _power(columns))
            programs = min(-(-columns // column_block), 4 * _MOST_STRIPES)
    elif kind == "tiles":
        row_block, column_block = min(32, _power(rows)), min(32, _power(columns))
        stripes, programs = -(-rows // row_block), -(-columns // column_block)
    elif kind == "columns" and not accumulated:
        column_block = min(128, _power(columns))
        row_block = min(_FLAT_BLOCK // column_block, _power(rows))
        programs, row_blocks = -(-columns // column_block), -(-rows // row_block)
        stripes = -(-row_blocks // max(1, min(_MOST_IN_TURN, row_blocks * programs // (4 * _MOST_STRIPES))))
    elif kind == "columns":
        is_small = rows * columns <= _SMALL
        row_block, column_block = _block_of_sums(rows, columns, len(accumulated) == len(loop.writes))
        if len(accumulated) > 2:  # whole blocks of each sum are in registers
            row_block = max(1, min(row_block, _FLAT_BLOCK // (column_block * (1 if len(accumulated) <= 4 else 2))))
        programs = -(-columns // column_block)
        stripes = 1 if is_small else max(1, min(-(-rows // row_block), 4 * _MOST_STRIPES // programs))
    else:
        programs = 1
        if kind == "rows":
            column_block = _power(columns)
            row_block = max(1, min((2048 if accumulated else 1024) // column_block, _power(rows)))
        else:
            column_block, row_block = _LONG_BLOCK, 1
        stripes = -(-rows // row_block)
        if accumulated:
            stripes = min(stripes, 2 * _MOST_STRIPES)
    stripes, programs = max(stripes, 1), max(programs, 1)
    warps = 4 if kind == "columns" or (kind == "flat" and column_block > 256) else _warps(row_block * column_block)
    if kind == "rows" and accumulated:  # what is gathered takes registers: fewer threads, and more of them each
        warps = max(row_block * column_block // 1024, 1)
    return Blocks(loop, kind, rows, columns, row_block, column_block, stripes, programs, warps, levels, accumulated)


def _block_of_sums(rows: int, columns: int, is_nothing_else: bool) -> tuple[int, int]:
    """How many rows and columns are in a block of a loop with sums of columns, which writes elements or nothing else.

    Measured on an H200. Where elements are written too, wide blocks keep more of them on their way.
    """
    if rows * columns <= _SMALL:
        high, wide = 32, 32
    elif columns >= _VERY_MANY_COLUMNS:
        high, wide = 2, 1024
    elif is_nothing_else:
        high, wide = 4, 64
    else:
        high, wide = (2, 1024) if columns % 1024 == 0 else (4, 512)
    return min(high, _power(rows)), min(wide, _power(columns))


def _kind(loop: Loop, levels: tuple[str, ...], columns: int) -> str:
    inner = len(loop.outer)
    ops = {step.op for step in loop.steps}
    of_rows = any(
        loop.steps[write.step].op not in TOTAL
        and loop.steps[write.step].op != "column_sum"
        and loop.outer
        and columns > 1
        and not any(write.access.strides[inner:])
        for write in loop.writes
    )
    if of_rows or not ops.isdisjoint(ROW):
        return "rows" if columns <= _LONGEST_ROW else "long"
    if "column_sum" in ops:
        return "columns"
    if _has_numbers_of_columns(loop, levels, columns) and not ops & set(TOTAL):
        return "columns"
    if loop.outer and len(loop.inner) == 1 and not ops & set(TOTAL):
        accesses = [*loop.reads, *(write.access for write in loop.writes)]
        if loop.outer[-1] >= 16 and columns >= 16:
            if any(abs(access.strides[-2]) == 1 and abs(access.strides[-1]) > 1 for access in accesses):
                return "tiles"
    return "flat"


def _has_numbers_of_columns(loop: Loop, levels: tuple[str, ...], columns: int) -> bool:
    """Whether each column has several numbers of its own, and arrays are gone through along rows."""
    if not loop.outer or not 16 <= columns <= _MOST_COLUMNS:
        return False
    of_columns = [n for n, step in enumerate(loop.steps) if step.op == "read" and levels[n] == "column"]
    accesses = [*loop.reads, *(write.access for write in loop.writes)]
    return len(of_columns) > 1 and all(access.strides[-1] in (0, 1) for access in accesses)


def _levels(loop: Loop) -> tuple[str, ...]:
    """Which values each step has."""
    first = len(loop.outer)
    seen: list[tuple[bool, bool]] = []  # whether it changes from row to row, and from column to column
    for step in loop.steps:
        if step.op == "read":
            strides = loop.reads[step.index].strides
            seen.append((any(strides[:first]), any(strides[first:])))
        elif step.op == "position":
            seen.append((step.index < first, step.index >= first))
        elif step.op in ROW:
            seen.append((True, False))
        else:
            of = [seen[operand] for operand in step.operands]
            seen.append((any(row for row, _ in of), any(column for _, column in of)))
    names = {(False, False): "number", (True, False): "row", (False, True): "column", (True, True): "element"}
    return tuple([names[one] for one in seen])


def _power(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def _warps(elements: int) -> int:
    return 1 if elements <= 128 else 2 if elements <= 1024 else 4 if elements <= 4096 else 8 if elements <= 8192 else 16
