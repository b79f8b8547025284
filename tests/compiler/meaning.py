"""What programs mean: the interpreter with the host's kernels."""

from __future__ import annotations

from typing import Any, Sequence

from pullback.compiler import interpreter
from pullback.compiler.host import HOST
from pullback.compiler.program import Program


def run(program: Program, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return interpreter.run(program, inputs, HOST)


def kernel(op: str) -> Any:
    return getattr(HOST, op)
