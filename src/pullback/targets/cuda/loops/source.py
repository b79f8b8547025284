"""The text of a loop's kernels in Triton's language."""

from __future__ import annotations

from math import prod
from typing import Any

from ...kernels import Access, Step
from ...llvm.loops.loop_form import ROW
from .blocks import Blocks
from .reductions import (
    accumulated_in,
    along,
    combined,
    finish_text,
    is_gathered,
    is_in_parts,
    is_of_truths,
    neutral,
    told,
)
from .scalar_code import STEPS, computed_in, converted, expression, number, rounded, stored, type_name

_STAGES = 3  # blocks of rows that are on their way at once


def written(blocks: Blocks) -> tuple[str, str]:
    """The text of the kernel `loop`, and of `finish`, which puts the parts of several programs together ("" if none).

    Both take the arrays that are read, those that are written, then those of the parts, one for each that is gathered.
    """
    return Writer(blocks).text(), finish_text(blocks) if is_in_parts(blocks) else ""


class Writer:
    """Writes the lines of a kernel, those of a loop's body further in."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.loop = blocks.loop
        self.lines: list[str] = []
        self.indent = 1
        self.names: dict[int, str] = {}  # of steps whose values are known here
        self.index = "tl.int64" if self._is_wide() else "tl.int32"
        self.row_mask = blocks.rows % blocks.row_block != 0 or not blocks.rows
        self.column_mask = blocks.columns % blocks.column_block != 0 or not blocks.columns
        self.columns = str(blocks.columns)
        self.is_apart = is_in_parts(blocks)
        self._dense = _dense(blocks.inner)
        self.shape = f"({blocks.row_block}, {blocks.column_block})"

    # -- the whole ---------------------------------------------------------------------------------

    def text(self) -> str:
        blocks, loop = self.blocks, self.loop
        names = [f"r{i}" for i in range(len(loop.reads))] + [f"w{i}" for i in range(len(loop.writes))]
        names += [f"p{n}" for n in blocks.accumulated]
        self.lines.append("@triton.jit")
        self.lines.append(f"def loop({', '.join(names)}):")
        self.line("program = tl.program_id(0)")
        if blocks.column_programs > 1:
            self.line(f"stripe = program // {blocks.column_programs}")
            self.line(f"part = program % {blocks.column_programs}")
        else:
            self.line("stripe = program")
            self.line("part = 0")
        {"flat": self._flat, "tiles": self._tiles, "columns": self._stripes, "rows": self._stripes, "long": self._long}[
            blocks.kind
        ]()
        return "\n".join(self.lines) + "\n"

    def _flat(self) -> None:
        """Elements in a row; programs take block after block if something is gathered."""
        blocks = self.blocks
        self.line("row = tl.zeros((1, 1), tl.int32)")
        self._steps(lambda level: level == "number")
        self._accumulators()
        if blocks.column_programs < blocks.column_blocks:
            self.line(f"for block in range(part, {blocks.column_blocks}, {blocks.column_programs}):")
            self.indent += 1
            self._columns("block")
            self._body()
            self.indent -= 1
        else:
            self._columns("part")
            self._body()
        self._gathered()

    def _tiles(self) -> None:
        self._steps(lambda level: level == "number")
        self._rows("stripe")
        self._columns("part")
        self._body()

    def _stripes(self) -> None:
        """A program has some columns, and goes down every so many blocks of rows."""
        blocks = self.blocks
        self._columns("part")
        self._steps(lambda level: level in ("number", "column"))
        self._accumulators()
        if blocks.stripes < blocks.row_blocks:
            # Whole rows are much at once: the next ones are read while these are computed with.
            over, ahead = ("tl.range", f", num_stages={_STAGES}") if blocks.kind == "rows" else ("range", "")
            self.line(f"for block in {over}(stripe, {blocks.row_blocks}, {blocks.stripes}{ahead}):")
            self.indent += 1
            self._rows("block")
            self._body()
            self.indent -= 1
        else:
            self._rows("stripe")
            self._body()
        self._gathered()

    def _long(self) -> None:
        """Rows that are gone over piece by piece, once for each stage."""
        blocks = self.blocks
        self._steps(lambda level: level == "number")
        self._accumulators()
        outside = dict(self.names)
        if blocks.stripes < blocks.row_blocks:
            self.line(f"for block in range(stripe, {blocks.row_blocks}, {blocks.stripes}):")
            self.indent += 1
            self._rows("block")
        else:
            self._rows("stripe")
        stages = self._stages()
        last = max(stages, default=0)
        for stage in range(last + 1):
            self._row_steps(stages, stage)
            reductions = [n for n, step in enumerate(self.loop.steps) if step.op in ROW and stages[n] == stage + 1]
            if reductions:
                self._reducing_pass(reductions, stage)
        self._writing_pass(last)
        self.names = outside
        if blocks.stripes < blocks.row_blocks:
            self.indent -= 1
        self._gathered()

    # -- parts of it -------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def _rows(self, block: str) -> None:
        blocks = self.blocks
        self.line(f"row = {self._numbers(block, blocks.row_block)}[:, None])")
        if self.row_mask:
            self.line(f"is_row = row < {blocks.rows}")
        self._coordinates("row", blocks.outer, 0)

    def _columns(self, block: str) -> None:
        blocks = self.blocks
        block = block if blocks.column_block < blocks.columns else "0"
        self.line(f"column = {self._numbers(block, blocks.column_block)}[None, :])")
        if self.column_mask:
            self.line(f"is_column = column < {self.columns}")
        self._coordinates("column", blocks.inner, len(blocks.outer))

    def _numbers(self, block: str, size: int) -> str:
        """The numbers that a block has of rows or columns, up to where their axis is named."""
        if block == "0":
            return f"(tl.arange(0, {size}).to({self.index})"
        start = f"{block} * {size}" if self.index == "tl.int32" else f"{block} * tl.full((1, 1), {size}, tl.int64)"
        return f"({start} + tl.arange(0, {size})"

    def _stripe_start(self) -> str:
        """Where the parts of a stripe begin."""
        columns = self.blocks.columns
        if self.blocks.stripes * columns < 2**31:
            return f"stripe * {columns}"
        return f"stripe * tl.full((1, 1), {columns}, tl.int64)"

    def _coordinates(self, whole: str, sizes: tuple[int, ...], first: int) -> None:
        """The index along each axis, from the number of a row or column."""
        rest = whole
        for axis in range(len(sizes) - 1, -1, -1):
            name = f"x{first + axis}"
            if axis == 0:
                self.line(f"{name} = {rest}")
            else:
                size = max(sizes[axis], 1)
                self.line(f"{name} = {rest} % {size}")
                self.line(f"rest{first + axis} = {rest} // {size}")
                rest = f"rest{first + axis}"

    def _mask(self, by_row: bool, by_column: bool) -> str:
        parts = ["is_row"] * (by_row and self.row_mask) + ["is_column"] * (by_column and self.column_mask)
        return " & ".join(parts)

    def _offset(self, access: Access) -> str:
        if self.blocks.kind == "flat" and any(access.strides) and access.strides == self._dense:
            return "column"  # which the compiler sees to be neighbours
        terms = [
            f"x{axis}" if stride == 1 else f"x{axis} * {stride}" for axis, stride in enumerate(access.strides) if stride
        ]
        return " + ".join(terms) or "tl.zeros((1, 1), tl.int32)"

    def _reach(self, access: Access) -> tuple[bool, bool]:
        """Whether an array is gone through by rows, and by columns."""
        first = len(self.blocks.outer)
        return any(access.strides[:first]), any(access.strides[first:])

    def _is_wide(self) -> bool:
        sizes = (*self.loop.outer, *self.loop.inner)
        accesses = [*self.loop.reads, *(write.access for write in self.loop.writes)]
        reach = [sum((n - 1) * abs(s) for n, s in zip(sizes, access.strides)) for access in accesses]
        return max([prod(sizes) + self.blocks.row_block * self.blocks.column_block, *reach]) >= 2**31

    # -- steps -------------------------------------------------------------------------------------

    def _steps(self, chosen: Any) -> None:
        """Compute the steps whose levels are chosen, as far as they wait for no reduction."""
        for n in range(len(self.loop.steps)):
            if n not in self.names and chosen(self.blocks.levels[n]):
                step = self.loop.steps[n]
                if step.op not in ROW and not is_gathered(step) and all(o in self.names for o in step.operands):
                    self._step(n)

    def _step(self, n: int, prefix: str = "v") -> str:
        """Write down one step whose operands are known."""
        step = self.loop.steps[n]
        name = f"{prefix}{n}"
        self.line(f"{name} = {self._value(n, step)}")
        self.names[n] = name
        return name

    def _value(self, n: int, step: Step) -> str:
        steps = self.loop.steps
        if step.op == "read":
            access = self.loop.reads[step.index]
            mask = self._mask(*self._reach(access))
            options = f", mask={mask}, other=0" if mask else ""
            loaded = f"tl.load(r{step.index} + {self._parenthesised(access)}{options})"
            if access.dtype == "bool":
                return f"({loaded} != 0)"
            return f"{loaded}.to(tl.float32)" if computed_in(access.dtype) != access.dtype else loaded
        if step.op == "number":
            return number(step.number, step.dtype)
        if step.op == "position":
            return f"x{step.index}.to(tl.int64)"
        operands = [self.names[o] for o in step.operands]
        kinds = [steps[o].dtype for o in step.operands]
        if (step.op == "convert" and step.dtype != kinds[0]) or step.op in STEPS:
            operands = [
                name if steps[o].op == "read" else rounded(name, kind)
                for o, name, kind in zip(step.operands, operands, kinds)
            ]
        if step.op == "convert":
            return converted(operands[0], kinds[0], step.dtype)
        if step.op in ROW:
            return self._reduced(step, self._masked(step, operands[0]), 1)
        exponent = steps[step.operands[1]].number if step.op == "pow" else None
        made = expression(step.op, operands, kinds[-1], exponent)
        compared = step.dtype == "bool" or computed_in(kinds[-1]) == computed_in(step.dtype)
        return made if compared else f"{made}.to({type_name(computed_in(step.dtype))})"

    def _parenthesised(self, access: Access) -> str:
        return f"({self._offset(access)})"

    def _body(self) -> None:
        """All steps, in their order, and what is written and gathered of this block."""
        outside = dict(self.names)
        for n, step in enumerate(self.loop.steps):
            if n not in self.names and not is_gathered(step):
                self._step(n)
        self._writes()
        self._gather()
        self.names = outside

    def _writes(self, chosen: Any = None) -> None:
        for n, write in enumerate(self.loop.writes):
            if n in self.blocks.accumulated or (chosen is not None and not chosen(write.access)):
                continue
            access = write.access
            mask = self._mask(*self._reach(access))
            options = f", mask={mask}" if mask else ""
            step = self.loop.steps[write.step]
            value = stored(self.names[write.step], computed_in(step.dtype), access.dtype)
            self.line(f"tl.store(w{n} + {self._parenthesised(access)}, {value}{options})")

    # -- reductions --------------------------------------------------------------------------------

    def _masked(self, step: Step, value: str) -> str:
        """What a reduction goes over, with its neutral element where the block is beyond the end."""
        if is_of_truths(step):
            value = f"({value} != 0).to(tl.int32)"
        elif computed_in(self.loop.steps[step.operands[0]].dtype) != accumulated_in(step):
            value = f"{value}.to({type_name(accumulated_in(step))})"
        whole = f"tl.broadcast_to({value}, {self.shape})"
        mask = self._mask(True, True)
        return f"tl.where({mask}, {whole}, {neutral(step)})" if mask else whole

    def _reduced(self, step: Step, value: str, axis: int) -> str:
        """A reduction of a block along an axis, which stays with the length 1."""
        made = f"{along(step, value, axis)}"
        if is_of_truths(step):
            return f"({made} != 0)"
        return f"{made}.to({type_name(computed_in(step.dtype))})"

    def _accumulators(self) -> None:
        for n in self.blocks.accumulated:
            step = self.loop.steps[self.loop.writes[n].step]
            if self.blocks.kind == "long" and step.op == "column_sum":
                continue  # these are gathered in memory
            shape = self.shape if self._keeps_blocks(step) else "(1, 1)"
            self.line(f"a{n} = tl.full({shape}, {neutral(step)}, {type_name(accumulated_in(step))})")

    def _keeps_blocks(self, step: Step) -> bool:
        """Whether whole blocks are gathered: where rows are whole, a total needs no more than a number."""
        return step.op == "column_sum" or self.blocks.kind == "flat"

    def _gather(self) -> None:
        for n in self.blocks.accumulated:
            step = self.loop.steps[self.loop.writes[n].step]
            value = self._masked(step, self.names[step.operands[0]])
            if not self._keeps_blocks(step):
                value = along(step, along(step, value, 1), 0)
            self.line(f"a{n} = {combined(step, f'a{n}', value)}.to({type_name(accumulated_in(step))})")

    def _gathered(self) -> None:
        """What a program has gathered goes to its parts, or to the result if nobody else has any."""
        blocks, apart = self.blocks, self.is_apart
        for n in blocks.accumulated:
            write = self.loop.writes[n]
            step = self.loop.steps[write.step]
            if step.op == "column_sum":
                if blocks.kind == "long":
                    continue
                value = along(step, f"a{n}", 0)
                target = (
                    f"p{n} + {self._stripe_start()} + column" if apart else f"w{n} + ({self._offset(write.access)})"
                )
                mask = self._mask(False, True)
            else:
                value = f"a{n}" if not self._keeps_blocks(step) else along(step, along(step, f"a{n}", 1), 0)
                target = f"{f'p{n} + program' if apart else f'w{n}'} + tl.zeros((1, 1), tl.int32)"
                mask = ""
            if not apart:
                value = stored(told(step, value), "", write.access.dtype)
            options = f", mask={mask}" if mask else ""
            self.line(f"tl.store({target}, {value}{options})")

    # -- long rows ---------------------------------------------------------------------------------

    def _stages(self) -> list[int]:
        """In which pass over the row each step can be computed."""
        stages: list[int] = []
        for step in self.loop.steps:
            stage = max([stages[operand] for operand in step.operands], default=0)
            stages.append(stage + 1 if step.op in ROW else stage)
        return stages

    def _row_steps(self, stages: list[int], stage: int) -> None:
        for n, step in enumerate(self.loop.steps):
            if n not in self.names and stages[n] == stage and self.blocks.levels[n] in ("number", "row"):
                if step.op not in ROW and not is_gathered(step):
                    self._step(n)

    def _over_pieces(self, prefix: str) -> dict[int, str]:
        outside = dict(self.names)
        self.line(f"for {prefix}piece in range({self.blocks.column_blocks}):")
        self.indent += 1
        self._columns(f"{prefix}piece")
        return outside

    def _need(self, n: int, prefix: str) -> str:
        """The name of a step's value inside of a pass, computed there if it is not known."""
        if n not in self.names:
            waiting = [n]
            while waiting:
                at = waiting[-1]
                missing = [o for o in self.loop.steps[at].operands if o not in self.names]
                if missing:
                    waiting += missing
                    continue
                waiting.pop()
                if at not in self.names:
                    self._step(at, prefix)
        return self.names[n]

    def _reducing_pass(self, reductions: list[int], stage: int) -> None:
        prefix = f"s{stage}_"
        for n in reductions:
            step = self.loop.steps[n]
            self.line(f"b{n} = tl.full({self.shape}, {neutral(step)}, {type_name(accumulated_in(step))})")
        outside = self._over_pieces(prefix)
        for n in reductions:
            step = self.loop.steps[n]
            value = self._masked(step, self._need(step.operands[0], prefix))
            self.line(f"b{n} = {combined(step, f'b{n}', value)}.to({type_name(accumulated_in(step))})")
        self.indent -= 1
        self.names = outside
        for n in reductions:
            self.line(f"v{n} = {self._reduced(self.loop.steps[n], f'b{n}', 1)}")
            self.names[n] = f"v{n}"

    def _writing_pass(self, last: int) -> None:
        blocks, prefix = self.blocks, f"s{last + 1}_"
        self._writes(lambda access: not self._reach(access)[1])
        by_element = [
            write.step
            for n, write in enumerate(self.loop.writes)
            if n not in blocks.accumulated and self._reach(write.access)[1]
        ]
        if not by_element and not blocks.accumulated:
            return
        outside = self._over_pieces(prefix)
        for n in by_element:
            self._need(n, prefix)
        for n in blocks.accumulated:
            self._need(self.loop.steps[self.loop.writes[n].step].operands[0], prefix)
        self._writes(lambda access: self._reach(access)[1])
        for n in blocks.accumulated:
            step = self.loop.steps[self.loop.writes[n].step]
            value = self._masked(step, self.names[step.operands[0]])
            if step.op == "column_sum":
                self._add_in_memory(n, value)
            else:
                value = along(step, along(step, value, 1), 0)
                self.line(f"a{n} = {combined(step, f'a{n}', value)}.to({type_name(accumulated_in(step))})")
        self.indent -= 1
        self.names = outside

    def _add_in_memory(self, n: int, value: str) -> None:
        """Sums of columns of long rows are gathered where the program's own parts of them are."""
        mask = self._mask(False, True)
        guard = f"({mask})" if mask else "(column >= 0)"
        self.line(f"at{n} = p{n} + {self._stripe_start()} + column")
        self.line(f"before{n} = tl.load(at{n}, mask={guard} & (row != stripe), other=0)")  # the first row has none
        self.line(f"tl.store(at{n}, before{n} + {value}, mask={guard})")
        self.line("tl.debug_barrier()")  # another thread may have to read it for the next row


def _dense(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps, in C's order."""
    return tuple([prod(sizes[axis + 1 :]) for axis in range(len(sizes))])
