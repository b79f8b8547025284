"""Programs with a loop, each from a seed: the body is a random program, and so is what carries on from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.iteration import Iteration
from pullback.compiler.program import Program, Value

from .building import Builder
from .random_instructions import RandomProgram

#: What a body consists of: no large numbers come of these.
_KINDS = ("elementwise", "choice", "cast", "reduction", "matmul", "movement", "indexing", "creation")


def random_loop(seed: int, dtypes: tuple[str, ...] = ("float64", "int32", "bool")) -> tuple[Program, list[Any]]:
    """A program with a loop of a few steps, and arrays to run it with."""
    body = RandomProgram(seed, 8, dtypes, _KINDS, False)
    rng = np.random.default_rng(seed)
    made = [value for one in body.instructions for value in one.results]
    carry: dict[Value, Value] = {}
    constants, slices = [], []
    for value in body.inputs:
        fitting = [v for v in (*made, *body.inputs) if (v.shape, v.dtype) == (value.shape, value.dtype)]
        kind = int(rng.integers(3))
        if value in body.constants:
            continue
        if kind == 0:
            carry[value] = fitting[int(rng.integers(len(fitting)))]
        else:
            (constants if kind == 1 else slices).append(value)
    outputs = [value for value in (*made, *body.inputs) if rng.integers(3) == 0]
    steps, reverse = int(rng.integers(1, 5)), bool(rng.integers(2))
    folded = [value for value in body.inputs if value in body.constants]
    inside = Program(
        [*constants, *carry, *slices, *folded], body.instructions, [*carry.values(), *outputs], [], body.constants
    )
    b = Builder(seed)
    given = [b.input(body.arrays[value]) for value in constants]
    initial = [b.input(body.arrays[value]) for value in carry]
    stacks = [b.input(np.stack([body.arrays[value] for _ in range(steps)])) for value in slices]
    for stack, value in zip(stacks, slices):
        if value.dtype.kind == "f":
            b.arrays[stack] = b.arrays[stack] * rng.uniform(0.5, 1.0, (steps, *[1] * value.ndim))
    iteration = Iteration(inside, len(constants), len(carry), steps, reverse)
    results = b.make_all("iterate", iteration, tuple(given), tuple(initial), tuple(stacks)) if inside.outputs else ()
    wanted = [value for value in results if rng.integers(4)]
    return b.program([*wanted, *[b.make("negative", v) for v in wanted[:1] if v.dtype.kind != "b"]]), b.given()
