"""Programs for tests, chosen at random, and whether two programs mean the same.

program, inputs = random_program(seed)
assert_same_meaning(program, optimize(program), inputs)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.program import Program
from tests.compiler.meaning import run

from .building import Builder
from .random_instructions import KINDS, RandomProgram

__all__ = ["Builder", "assert_close", "assert_same_meaning", "random_program", "tolerance_of"]


def random_program(
    seed: int,
    depth: int = 30,
    dtypes: tuple[str, ...] = ("float32", "float64", "int32", "bool"),
    kinds: tuple[str, ...] = tuple(KINDS),
    special: bool = False,
) -> tuple[Program, list[Any]]:
    """A program of about `depth` instructions, and arrays to run it with; with `special` there are NaN, inf and -0.0.

    What nothing uses and some other values are outputs, and some are the new values of inputs. `kinds` are names in
    `random_instructions.KINDS`.
    """
    b = RandomProgram(seed, depth, dtypes, kinds, special)
    used = {value for instruction in b.instructions for value in instruction.values()}
    made = [value for instruction in b.instructions for value in instruction.results]
    outputs = [value for value in made if value not in used or b.one_in(10)]
    updates = []
    for target in b.inputs:
        new = [v for v in b.pool if (v.shape, v.dtype) == (target.shape, target.dtype) and v is not target]
        if new and target not in b.constants and b.one_in(2):
            updates.append((target, b.any_of(new)))
    return b.program(outputs, updates), b.given()


_TOLERANCES = {"float64": 1e-9, "float32": 2e-3, "float16": 5e-2, "bfloat16": 2e-1}


def tolerance_of(program: Program) -> float:
    """How far apart two ways to run a program may be: as its coarsest floating-point dtype wants."""
    dtypes = {value.dtype.name for value in program.inputs}
    dtypes |= {value.dtype.name for instruction in program.instructions for value in instruction.results}
    return max([_TOLERANCES.get(dtype, 0.0) for dtype in dtypes], default=0.0)


def assert_close(got: list[Any], expected: list[Any], tolerance: float) -> None:
    """Arrays are equal up to rounding, and the same shapes and dtypes; NaN and infinities are where they should be."""
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            a, b = a.astype(np.float64), b.astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def assert_same_meaning(program: Program, other: Program, inputs: list[Any]) -> None:
    """Both programs give the same outputs and updates for `inputs`, up to rounding."""
    tolerance = tolerance_of(program)
    for got, expected in zip(run(other, inputs), run(program, inputs)):
        assert_close(got, expected, tolerance)
