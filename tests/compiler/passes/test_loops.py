"""Loops of programs: what passes take out of them, and that they mean what they meant, also lowered and run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pullback.compiler.calling.building import runner
from pullback.compiler.iteration import Iteration, iterations
from pullback.compiler.lowering.lower import lower
from pullback.compiler.passes import optimize
from pullback.compiler.program import Program, Value

from ...backends.installed import needs_llvmlite
from ..lowering import reference
from ..meaning import run
from ..programs import Builder, assert_close, assert_same_meaning
from ..random_loops import random_loop

STEPS = 6


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_loops_mean_the_same_optimised_and_lowered(first: int) -> None:
    for seed in range(first, first + 50):
        program, inputs = random_loop(seed)
        better = optimize(program)
        assert_same_meaning(program, better, inputs)
        given = [*inputs, *[better.constants[value] for value in better.inputs[len(inputs) :]]]
        outputs, _ = reference.run(better, lower(better), given)
        assert_close(outputs, run(program, inputs)[0], 1e-9)


@needs_llvmlite
def test_random_loops_run() -> None:
    for seed in range(40):
        program, inputs = random_loop(seed)
        if program.outputs:
            built = runner(program)
            for _ in range(2):
                assert_close(built(list(inputs)), run(program, inputs)[0], 1e-9)


class Loop:
    """A program with one loop, whose body is written with `body`."""

    def __init__(self) -> None:
        self.body, self.outside = Builder(1), Builder(1)
        self.rng = np.random.default_rng(0)
        self.constants: dict[Value, Value] = {}
        self.carry: dict[Value, Value] = {}
        self.slices: dict[Value, Value] = {}

    def constant(self, *shape: int) -> Value:
        return self._given(self.constants, shape, shape)

    def carried(self, *shape: int) -> Value:
        return self._given(self.carry, shape, shape)

    def slice(self, *shape: int) -> Value:
        return self._given(self.slices, shape, (STEPS, *shape))

    def _given(self, place: dict[Value, Value], shape: Any, whole: Any) -> Value:
        array = self.rng.normal(size=whole)
        value = self.body.input(array if shape == whole else array[0])
        place[value] = self.outside.input(array)
        return value

    def program(self, after: list[Value], outputs: list[Value], used: int | None = None) -> Program:
        inside = Program(
            [*self.constants, *self.carry, *self.slices], self.body.instructions, [*after, *outputs], [],
            self.body.constants,
        )  # fmt: skip
        iteration = Iteration(inside, len(self.constants), len(self.carry), STEPS, True)
        given = [tuple(part.values()) for part in (self.constants, self.carry, self.slices)]
        return self.outside.program(list(self.outside.make_all("iterate", iteration, *given))[:used])

    def optimised(self, *args: Any) -> tuple[Counter[str], Counter[str], list[Iteration]]:
        """Names of the instructions in the loop and outside of it, and the loops, once it is optimised."""
        program = self.program(*args)
        better = optimize(program)
        assert_same_meaning(program, better, self.outside.given())
        loops = [one.args[0] for one in iterations(better)]
        inside = Counter(one.op for loop in loops for one in loop.body.instructions)
        return inside, Counter(one.op for one in better.instructions), loops


def test_what_nobody_uses_is_left_out() -> None:
    loop = Loop()
    a, b, x = loop.carried(3), loop.carried(3), loop.slice(3)
    used, unused = loop.body.make("sin", a), loop.body.make("cos", b)
    output = loop.body.make("exp", loop.body.make("add", unused, x))
    inside, _, (iteration,) = loop.optimised([used, unused], [output], 1)
    assert inside == {"sin": 1} and (iteration.carry, len(iteration.body.inputs)) == (1, 1)


def test_what_another_part_of_the_carry_needs_is_kept() -> None:
    loop = Loop()
    a, b = loop.carried(3), loop.carried(3)
    after = [loop.body.make("add", a, b), loop.body.make("cos", b)]
    inside, _, (iteration,) = loop.optimised(after, [], 1)
    assert inside == {"add": 1, "cos": 1} and iteration.carry == 2


def test_what_stays_is_computed_before() -> None:
    loop = Loop()
    c, same, a = loop.constant(3, 3), loop.carried(3, 3), loop.carried(2, 3)
    kept = loop.body.make("permute_dims", loop.body.make("exp", loop.body.make("add", c, same)), (1, 0))
    inside, outside, (iteration,) = loop.optimised([same, loop.body.make("matmul", a, kept)], [])
    assert inside == {"permute_dims": 1, "matmul": 1} and outside["exp"] == 1 and iteration.carry == 1


def test_products_of_slices_come_before_and_sums_of_products_after() -> None:
    loop = Loop()
    w, u, h = loop.constant(4, 3), loop.constant(3, 3), loop.carried(2, 3)
    weights, bias, other = loop.carried(4, 3), loop.carried(3), loop.carried(4, 3)
    x = loop.slice(2, 4)
    make = loop.body.make
    after = make("tanh", make("add", make("matmul", x, w), make("matmul", h, u)))
    product = make("matmul", make("permute_dims", x, (1, 0)), after)
    total = make("add", weights, product)
    sums = make("add", make("sum", after, (-2,), False), bias)
    twice = make("add", make("multiply", other, 0.5), make("square", product))  # which is needed at every step
    back = make("matmul", after, make("permute_dims", w, (1, 0)))
    inside, outside, _ = loop.optimised([after, total, sums, twice], [back])
    assert inside["matmul"] == 2 and inside["sum"] == 0
    assert outside["matmul"] == 2 and outside["sum"] == 1


def test_sums_that_are_looked_at_stay() -> None:
    loop = Loop()
    x, total = loop.slice(2, 3), loop.carried(3, 3)
    product = loop.body.make("matmul", loop.body.make("permute_dims", x, (1, 0)), x)
    after = loop.body.make("add", total, product)
    inside, _, _ = loop.optimised([after], [loop.body.make("sum", after, None, False)])
    assert inside["matmul"] == inside["add"] == 1


def test_all_sums_leave_no_loop() -> None:
    loop = Loop()
    x, y, total = loop.slice(2, 3), loop.slice(2, 4), loop.carried(3, 4)
    product = loop.body.make("matmul", loop.body.make("permute_dims", x, (1, 0)), y)
    _, outside, loops = loop.optimised([loop.body.make("add", total, product)], [])
    assert not loops and outside["matmul"] == 1
