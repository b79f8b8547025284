"""A loop made ready to be launched: its text, compiled once for all loops that are alike."""

from __future__ import annotations

import hashlib
import linecache
from dataclasses import replace
from functools import lru_cache
from typing import Any, Sequence

from ...kernels import Loop
from ..launch import Launch
from .blocks import Blocks, blocks_of
from .reductions import finishing_programs, is_in_parts, parts_of
from .source import written

HEAD = """import triton
import triton.language as tl
from triton.language.extra import libdevice

from pullback.targets.cuda.loops import functions as f


"""


class LoopKernel:
    """The kernels of a loop. `scratch` is the memory (dtype, elements) that a launch needs for itself."""

    def __init__(self, blocks: Blocks) -> None:
        self.scratch: list[tuple[str, int]] = parts_of(blocks) if is_in_parts(blocks) else []
        self._take(blocks)

    def _take(self, blocks: Blocks) -> None:
        main, finish = written(blocks)
        self.blocks = blocks
        self.source = HEAD + main + ("\n\n" + finish if finish else "")
        made = compiled(self.source)
        self._main, self._finish = made["loop"], made.get("finish")

    def launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        """Run on arrays that begin where the loop's do, in its order, and on memory for its parts."""
        try:
            self._launch(arrays, scratch)
        except RuntimeError as error:
            # Triton 3.6 cannot compile some loops with several rows in a block ("does not dominate this use").
            if "PassManager" not in str(error) or self.blocks.row_block == 1:
                raise
            stripes = self.blocks.rows if self.blocks.kind == "tiles" else self.blocks.stripes  # which others go down
            self._take(replace(self.blocks, row_block=1, stripes=stripes))
            self._launch(arrays, scratch)

    def _launch(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> None:
        for launch in self.launches(arrays, scratch):
            launch.run()

    def launches(self, arrays: Sequence[Any], scratch: Sequence[Any]) -> list[Launch]:
        """What has to be launched, one after the other."""
        blocks = self.blocks
        gathered = scratch if self.scratch else [arrays[-1]] * len(blocks.accumulated)  # which nobody touches
        arguments = (*arrays, *gathered)
        found = [Launch(self._main, blocks.programs, arguments, {"num_warps": blocks.warps})]
        if self._finish is not None:
            found.append(Launch(self._finish, finishing_programs(blocks), arguments, {"num_warps": 4}))
        return found


@lru_cache(maxsize=4096)
def kernel_for(loop: Loop) -> LoopKernel:
    """The kernels of a loop."""
    return LoopKernel(blocks_of(loop))


@lru_cache(maxsize=4096)
def compiled(source: str) -> dict[str, Any]:
    """What a text defines. Triton reads the text of functions again, and finds it under their file's name."""
    name = f"<pullback loop {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), namespace)
    return namespace
