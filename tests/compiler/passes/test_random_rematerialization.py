"""Random programs, cut into walks and recorded under random strategies, compute the same after what is made again."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff.checkpointing.strategies import Region
from pullback.compiler.passes.rematerialization import rematerialized, saved_bytes, walk_apart
from pullback.compiler.program import Instruction, Mark, Program

from ..lowering.checking import checked
from ..lowering.random_programs import random_program
from ..meaning import run


def recorded(program: Program, generator: np.random.Generator) -> Program:
    """The program as if stretches of it had been recorded by walks, and others in blocks under strategies."""
    count = len(program.instructions)
    first, second = sorted(generator.integers(count // 3, count + 1, 2))
    outer = Region(None)
    strategies = [
        None,
        pb.BalancedCheckpointing(),
        pb.BudgetCheckpointing(int(generator.integers(0, 600))),
        Region(None),
        outer,
        Region(outer),
        Region(pb.BalancedCheckpointing()),
        Region(pb.BudgetCheckpointing(int(generator.integers(0, 600)))),
    ]
    instructions = []
    strategy = None
    for position, one in enumerate(program.instructions):
        if generator.random() < 0.2:
            strategy = strategies[generator.integers(len(strategies))]
        walk = 0 if position < first else 1 if position < second else 2
        instructions.append(Instruction(one.op, one.args, one.results, one.site, Mark(walk, strategy)))
    return Program(program.inputs, instructions, program.outputs, program.updates, program.constants)


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_random_programs_compute_the_same(first: int) -> None:
    changed = 0
    for seed in range(first, first + 40):
        generator = np.random.default_rng(seed)
        plain, inputs = random_program(seed, 8 + seed % 27)
        program = recorded(plain, generator)
        again = rematerialized(program)
        for mine, other in zip(run(again, inputs), run(plain, inputs)):
            for x, y in zip(mine, other):
                np.testing.assert_array_equal(x, y)
        if again is not program:
            changed += 1
            checked(again, inputs)
        assert rematerialized(again) is again or any(one.mark.strategy for one in again.instructions)
        assert saved_bytes(again, program) >= 0
    assert changed > 10


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_walk_of_its_own_computes_the_same_from_what_is_kept(first: int) -> None:
    for seed in range(first, first + 20):
        generator = np.random.default_rng(seed)
        program, inputs = random_program(seed, 8 + seed % 27)
        program = recorded(program, generator)
        walk = max(one.mark.walk for one in program.instructions)
        apart = walk_apart(program, walk) if walk else None
        if apart is None:
            continue
        results = {value for one in program.instructions if one.mark.walk == walk for value in one.results}
        wanted = [value for value in program.outputs if value in results]
        made = {value for one in apart for value in one.results}
        needed = list(dict.fromkeys(v for one in apart for v in one.values() if v not in made))
        before = Program(program.inputs, program.instructions, needed, [], program.constants)
        kept, _ = run(before, inputs)
        found, _ = run(Program(needed, apart, wanted), kept)
        expected, _ = run(Program(program.inputs, program.instructions, wanted, [], program.constants), inputs)
        for x, y in zip(found, expected):
            np.testing.assert_array_equal(x, y)
