"""What attention and its gradient share: packing heads into scratch memory, and the scores of a block of queries.

Each matrix lies in scratch memory with room for whole tiles, so that products need not look at sizes or strides: what
lies in the room that is left is never used. Rows of scores are as long as there are keys, and as many as fit a cache.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from ...axes import Shape
from ...custom_kernels import Attention
from ..code import I64, ITEMSIZE, STORED, Code, constant
from ..positions import offsets
from ..strided import below, lanes, load_lanes, pieces, store_lanes
from .tile_routines import ROWS, padded, product, transposition

_SCORES = 1 << 17  # bytes of the scores that are in scratch memory at a time
_MOST_ROWS = 32
_MOST_CAUSAL_ROWS = 16  # fewer leave more of the hidden half of the scores out


class Blocks:
    """The code of a kernel of attention, in terms of matrices in scratch memory and blocks of rows."""

    def __init__(self, module: ir.Module, name: str, kernel: Attention) -> None:
        self.kernel = kernel
        self.dtype = kernel.dtype
        self.code = Code(module, name)
        self.b = self.code.b
        self.size = ITEMSIZE[self.dtype]
        self.width = lanes(self.size)
        self.kind = STORED[self.dtype]
        self.vector = ir.VectorType(self.kind, self.width)
        self.keys = padded(kernel.keys, self.dtype)
        self.columns = padded(kernel.width, self.dtype)
        self.value_columns = padded(kernel.value_width, self.dtype)
        self.step = self.keys + self.width  # from row to row of scores: not a power of two, for the cache's sake
        fitting = _SCORES // (self.step * self.size) // ROWS * ROWS
        most = _MOST_CAUSAL_ROWS if kernel.is_causal and kernel.keys <= 512 else _MOST_ROWS
        self.rows = max(ROWS, min(most, fitting, padded(kernel.length, self.dtype)))
        self.scratch = 0
        self._product = {transposed: product(module, self.dtype, transposed) for transposed in (False, True)}
        self._transposition = transposition(module, self.dtype)

    def matrix(self, rows: int, columns: int) -> Any:
        """Scratch memory for a matrix."""
        at = self.scratch
        self.scratch += -(-rows * columns * self.size // 64) * 64
        return self.b.bitcast(self.b.gep(self.code.scratch, [I64(at)]), self.kind.as_pointer())

    def head(self, number: Any, strides: list[Shape]) -> list[Any]:
        """Where head `number` of batch x heads of k begins in arrays with strides (*batch, heads, ...)."""
        shape = (*self.kernel.batch, self.kernel.heads)
        return offsets(self.b, number, shape, [steps[: len(shape)] for steps in strides])

    def of_queries(self, strides: Shape) -> Shape:
        """Strides of an array with a head for each of q's, for the heads of k that they share."""
        at = len(self.kernel.batch)
        return (*strides[:at], strides[at] * self.kernel.group, *strides[at + 1 :])

    # -- moving matrices -----------------------------------------------------------------------------

    def pack(
        self, source: Any, strides: Shape, rows: Any, columns: int, target: Any, step: int, scale: float = 1.0
    ) -> None:
        """Copy rows to scratch memory, times `scale`."""
        b = self.b
        factor = constant(self.vector, scale)
        with self.code.loop(I64(0), rows) as (row,):
            start = b.mul(row, I64(strides[-2]))
            for at, mask in pieces(columns, self.width):
                place = b.add(start, I64(at * strides[-1]))
                value = load_lanes(b, source, place, strides[-1], self.width, mask)
                value = value if scale == 1.0 else b.fmul(value, factor)
                store_lanes(b, value, target, b.add(b.mul(row, I64(step)), I64(at)), 1)

    def clear(self, target: Any, step: int, rows: int) -> None:
        """Set rows in scratch memory to zero."""
        with self.code.loop(I64(0), I64(rows)) as (row,):
            for at in range(0, step, self.width):
                place = self.b.add(self.b.mul(row, I64(step)), I64(at))
                store_lanes(self.b, constant(self.vector, 0.0), target, place, 1)

    def unpack(self, source: Any, step: int, target: Any, strides: Shape, rows: Any, columns: int, change: Any) -> None:
        """Copy rows from scratch memory, each vector as `change(vector, row)`."""
        b = self.b
        with self.code.loop(I64(0), rows) as (row,):
            for at, mask in pieces(columns, self.width):
                value = load_lanes(b, source, b.add(b.mul(row, I64(step)), I64(at)), 1, self.width)
                place = b.add(b.mul(row, I64(strides[-2])), I64(at * strides[-1]))
                store_lanes(b, change(value, row), target, place, strides[-1], mask)

    def transpose(self, source: Any, step: int, target: Any, target_step: int, rows: int, columns: int) -> None:
        sizes = [I64(target_step), I64(rows), I64(columns)]
        self.b.call(self._transposition, [source, I64(step), target, *sizes])

    def multiply(
        self, x: Any, x_step: int, y: Any, y_step: int, out: Any, out_step: int, rows: Any, columns: Any, depth: Any,
        transposed: bool = False,
    ) -> None:  # fmt: skip
        """out = x y, or out += x^T y: rows are counted in out."""
        steps = [x, I64(x_step), y, I64(y_step), out, I64(out_step)]
        self.b.call(self._product[transposed], [*steps, rows, columns, depth])

    # -- blocks of queries ------------------------------------------------------------------------------

    def rounded(self, size: Any, unit: int) -> Any:
        """The next multiple of a power of two."""
        return self.b.and_(self.b.add(size, I64(unit - 1)), I64(-unit))

    def visible(self, stop: Any) -> tuple[Any, Any]:
        """How many keys the rows before `stop` see, and that number filled up to whole tiles."""
        b, keys = self.b, I64(self.kernel.keys)
        seen = b.select(b.icmp_signed("<", stop, keys), stop, keys) if self.kernel.is_causal else keys
        return seen, self.rounded(seen, max(ROWS, self.width))

    def shown(self, row: Any, column: Any) -> Any:
        """A mask of the columns from `column` on that exist and that `row` may see; None if that is all of them."""
        b, kernel = self.b, self.kernel
        limit: Any = I64(kernel.keys)
        if kernel.is_causal:
            after = b.add(row, I64(1))
            limit = b.select(b.icmp_signed("<", after, limit), after, limit)
        elif kernel.keys == self.keys:
            return None
        return below(b, column, limit, self.width)

    def biased(self, score: Any, bias: Any, row: Any, column: Any, shown: Any) -> Any:
        """Scores with the mask's part added, and minus infinity for what is hidden."""
        b, kernel = self.b, self.kernel
        lowest = constant(self.vector, -math.inf)
        if kernel.mask is not None:
            dtype, strides = kernel.mask
            place = b.add(b.mul(row, I64(strides[-2])), b.mul(column, I64(strides[-1])))
            exists = below(b, column, I64(kernel.keys), self.width) if kernel.keys != self.keys else None
            part = load_lanes(b, bias, place, strides[-1], self.width, exists)
            if dtype == "bool":
                seen = b.icmp_unsigned("!=", part, constant(part.type, 0))
                part = b.select(seen, constant(self.vector, 0.0), lowest)
            score = b.fadd(score, part)
        return score if shown is None else b.select(shown, score, lowest)
