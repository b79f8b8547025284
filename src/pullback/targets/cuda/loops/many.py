"""Loops that differ in their arrays alone, and in how many elements these have, in one launch.

An optimizer updates hundreds of parameters, most of them small: a launch for each takes longer than the update. Where
the arrays are is in a table on the GPU, which may be filled after the launch has been captured.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Hashable, Sequence

import torch

from ...kernels import Loop
from ..launch import Launch
from ..memory import torch_dtype
from .blocks import Blocks, blocks_of
from .kernel import HEAD, compiled
from .reductions import accumulated_in, along, combined, neutral, told
from .scalar_code import stored, type_name
from .source import Writer

_AT_ONCE = 1024  # parts that are put together at a time
_ALIGNMENT = 16  # in bytes of addresses, and in elements of sizes: what lets a thread read several elements at once


@lru_cache(maxsize=4096)
def family(loop: Loop) -> Hashable:
    """What loops that can be launched together have in common; None for those that cannot be."""
    blocks = blocks_of(loop)
    if blocks.kind != "flat" or not blocks.columns or (blocks.accumulated and not is_of_totals(loop)):
        return None
    return _of_any_size(blocks.loop), blocks.columns % _ALIGNMENT == 0 if _is_dense(blocks.loop) else None


@lru_cache(maxsize=4096)
def is_of_totals(loop: Loop) -> bool:
    """Whether a loop makes numbers alone, of all its elements."""
    blocks = blocks_of(loop)
    return blocks.kind == "flat" and len(blocks.accumulated) == len(loop.writes) > 0 and _is_dense(blocks.loop)


def _is_dense(loop: Loop) -> bool:
    """Whether arrays have all their elements in a row, or one for all."""
    accesses = [*loop.reads, *(write.access for write in loop.writes)]
    return not loop.outer and len(loop.inner) == 1 and all([access.strides[0] in (0, 1) for access in accesses])


def _of_any_size(loop: Loop) -> Loop:
    return replace(loop, inner=(0,)) if _is_dense(loop) else loop


class Together:
    """A launch of several loops of a family."""

    def __init__(self, loops: Sequence[Loop], device: Any) -> None:
        blocks = [blocks_of(loop) for loop in loops]
        largest = max(blocks, key=lambda one: one.columns)
        largest = replace(largest, column_programs=largest.column_blocks)
        self._sizes = [one.columns for one in blocks]
        texts = [_Writer(largest).text()]
        if largest.accumulated:
            texts.append(_finish_text(largest))
        made = compiled(HEAD + "\n\n".join(texts))
        self._loop, self._finish = made["loop"], made.get("finish")
        self._warps = largest.warps
        counts = [-(-n // largest.column_block) for n in self._sizes]
        places = [(i, part) for i, count in enumerate(counts) for part in range(count)]
        self._programs = len(places)
        self._places = torch.tensor(places, dtype=torch.int32).to(device)
        self._firsts = torch.tensor([0, *accumulate(counts)], dtype=torch.int32).to(device)
        self._arrays = len(largest.loop.reads) + len(largest.loop.writes)
        self._table = torch.zeros((len(blocks), self._arrays + 1), dtype=torch.int64, device=device)
        steps = [largest.loop.steps[largest.loop.writes[n].step] for n in largest.accumulated]
        dtypes = [torch_dtype(accumulated_in(step)) for step in steps]
        self._parts = [torch.empty(self._programs, dtype=dtype, device=device) for dtype in dtypes]

    def launch(self, arrays: Sequence[Sequence[Any]], captures: bool) -> Any:
        """Run on the arrays of each loop; if it is captured, a function is given that must be called before a run."""
        rows = self._rows(arrays)
        if not captures:
            self._fill(rows)
        for launch in self._launches(rows):
            launch.run()
        return lambda: self._fill(rows)

    def launches(self, arrays: Sequence[Sequence[Any]]) -> list[Launch]:
        """What has to be launched."""
        return self._launches(self._rows(arrays))

    def _rows(self, arrays: Sequence[Sequence[Any]]) -> list[list[int]]:
        return [[*[array.data_ptr() for array in one], size] for one, size in zip(arrays, self._sizes)]

    def _launches(self, rows: list[list[int]]) -> list[Launch]:
        aligned = all([number % _ALIGNMENT == 0 for row in rows for number in row])
        options = {"IS_ALIGNED": aligned, "num_warps": self._warps}
        found = [Launch(self._loop, self._programs, (self._table, self._places, *self._parts), options)]
        if self._finish is not None:
            arguments = (self._table, self._firsts, *self._parts)
            found.append(Launch(self._finish, len(self._sizes), arguments, {"num_warps": 4}))
        return found

    def _fill(self, rows: list[list[int]]) -> None:
        self._table.copy_(torch.tensor(rows, dtype=torch.int64))


def _finish_text(blocks: Blocks) -> str:
    """A kernel that puts the parts of each loop's totals together, in their order."""
    loop = blocks.loop
    arrays = len(loop.reads) + len(loop.writes)
    parts = ", ".join([f"p{n}" for n in blocks.accumulated])
    lines = ["@triton.jit", f"def finish(table, firsts, {parts}):", "    program = tl.program_id(0)"]
    lines.append(f"    mine = table + program.to(tl.int64) * {arrays + 1}")
    lines += ["    first = tl.load(firsts + program)", "    last = tl.load(firsts + program + 1)"]
    for n in blocks.accumulated:
        write = loop.writes[n]
        step = loop.steps[write.step]
        kind = type_name(accumulated_in(step))
        lines += [
            f"    all{n} = tl.full(({_AT_ONCE}, 1), {neutral(step)}, {kind})",
            f"    for start{n} in range(first, last, {_AT_ONCE}):",
            f"        at{n} = start{n} + tl.arange(0, {_AT_ONCE})[:, None]",
            f"        one{n} = tl.load(p{n} + at{n}, mask=at{n} < last, other=0)",
            f"        one{n} = tl.where(at{n} < last, one{n}, {neutral(step)})",
            f"        all{n} = {combined(step, f'all{n}', f'one{n}')}.to({kind})",
            f"    w{n} = {_pointer(len(loop.reads) + n, write.access.dtype)}",
            f"    result{n} = {stored(told(step, along(step, f'all{n}', 0)), '', write.access.dtype)}",
            f"    tl.store(w{n} + tl.zeros((1, 1), tl.int32), result{n})",
        ]
    return "\n".join(lines) + "\n"


def _pointer(number: int, dtype: str) -> str:
    """What is at a place of the table, as an address of such elements."""
    return f"tl.load(mine + {number}).to(tl.pointer_type({'tl.int8' if dtype == 'bool' else type_name(dtype)}))"


class _Writer(Writer):
    """Writes a loop whose arrays and size are found in a table: a program looks up which ones are its own."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks)
        self.column_mask = self.is_apart = True
        if _is_dense(blocks.loop):
            self.columns = "size"

    def text(self) -> str:
        loop = self.blocks.loop
        dtypes = [access.dtype for access in (*loop.reads, *(write.access for write in loop.writes))]
        names = [f"r{i}" for i in range(len(loop.reads))] + [f"w{i}" for i in range(len(loop.writes))]
        parts = [f"p{n}" for n in self.blocks.accumulated]
        arguments = ["table", "places", *parts, "IS_ALIGNED: tl.constexpr"]
        self.lines += ["@triton.jit", f"def loop({', '.join(arguments)}):"]
        self.line("program = tl.program_id(0)")
        self.line(f"mine = table + tl.load(places + 2 * program).to(tl.int64) * {len(names) + 1}")
        self.line("part = tl.load(places + 2 * program + 1)")
        for i, (name, dtype) in enumerate(zip(names, dtypes)):
            self.line(f"{name} = {_pointer(i, dtype)}")
        self.line(f"size = tl.load(mine + {len(names)}).to({self.index})")
        self.line("if IS_ALIGNED:")
        for name in (*names, "size"):
            self.line(f"    {name} = tl.multiple_of({name}, {_ALIGNMENT})")
        self._flat()
        return "\n".join(self.lines) + "\n"
