"""Sums over the steps of an unrolled loop are made from what is stacked, wherever that is there in time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.passes.dead_code import without_dead_code
from pullback.compiler.passes.sums_of_steps import with_joined_steps
from pullback.compiler.program import Program

from ..programs import Builder, assert_same_meaning


def recurrent(
    steps: int, first: int = 0, order: int = 1, dtype: str = "float64", extra: bool = False
) -> tuple[Program, list[Any]]:
    """x[t]^T g[t + first] and the sums of g, added up; what is stacked is also an output."""
    rng = np.random.default_rng(0)
    b = Builder()
    count = steps + first
    x, g = ([b.input(rng.standard_normal((5, n)).astype(dtype)) for _ in range(count)] for n in (3, 4))
    pairs = [(x[t], g[t + first]) for t in range(steps)][::order]
    stacks = b.make("stack", tuple(x), -3), b.make("stack", tuple(g), -3)
    weight: Any = b.make("negative", b.input(np.ones((3, 4), dtype))) if extra else None
    bias: Any = None
    for one, other in pairs:
        product = b.make("matmul", b.make("permute_dims", one, (1, 0)), other)
        total = b.make("sum", other, (-2,), False)
        weight = product if weight is None else b.make("add", weight, product)
        bias = total if bias is None else b.make("add", bias, total)
    return b.program([b.make("square", weight), bias, weight, *stacks]), b.given()


def counts(program: Program) -> Counter[str]:
    return Counter(instruction.op for instruction in program.instructions)


def joined_steps(program: Program) -> Program:
    return without_dead_code(with_joined_steps(program))


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("extra", [False, True])
def test_one_product_and_one_sum_are_left(first: int, order: int, extra: bool) -> None:
    program, inputs = recurrent(6, first, order=order, extra=extra)
    joined = joined_steps(program)
    assert_same_meaning(program, joined, inputs)
    before, after = counts(program), counts(joined)
    assert before["add"] == 10 + extra
    assert after["add"] == int(extra)
    assert with_joined_steps(joined) is joined


def test_few_steps_stay_as_they_are() -> None:
    program, _ = recurrent(3)
    assert with_joined_steps(program) is program


def test_half_precision_stays_as_it_is() -> None:
    program, _ = recurrent(6, dtype="float16")
    assert with_joined_steps(program) is program


def test_stacks_that_need_the_sum_are_not_used_for_it() -> None:
    rng = np.random.default_rng(1)
    b = Builder()
    x, g = ([b.input(rng.standard_normal((5, n))) for _ in range(5)] for n in (3, 4))
    total = b.make("matmul", b.make("permute_dims", x[0], (1, 0)), g[0])
    for one, other in zip(x[1:], g[1:]):
        total = b.make("add", total, b.make("matmul", b.make("permute_dims", one, (1, 0)), other))
    scale = b.make("sum", total, None, False)
    scaled = [b.make("multiply", value, scale) for value in g]
    program = b.program([b.make("stack", tuple(x), -3), b.make("stack", tuple(g), -3), *scaled])
    assert with_joined_steps(program) is program


def test_a_term_that_is_used_elsewhere_stays() -> None:
    rng = np.random.default_rng(1)
    b = Builder()
    x, g = ([b.input(rng.standard_normal((5, n))) for _ in range(6)] for n in (3, 4))
    stacks = [b.make("stack", tuple(x), -3), b.make("stack", tuple(g), -3)]
    products = [b.make("matmul", b.make("permute_dims", one, (1, 0)), other) for one, other in zip(x, g)]
    total = products[0]
    for product in products[1:]:
        total = b.make("add", total, product)
    program = b.program([total, products[5], *stacks])
    joined = joined_steps(program)
    assert_same_meaning(program, joined, b.given())
    assert counts(joined)["add"] == 1


def test_gradients_of_recurrent_layers_are_those_of_eager_code() -> None:
    x = pb.asarray(np.random.default_rng(2).standard_normal((7, 3, 4)))
    for kind in (pb.nn.RNN, pb.nn.GRU, pb.nn.LSTM):
        pb.random.seed(0)
        layer = kind(4, 5, dtype="float64")

        def gradients(x: Any, layer: Any = layer) -> Any:
            found = pb.backward(pb.square(layer(x)[0]).sum())
            return [found[parameter] for parameter in layer.parameters()]

        for got, expected in zip(pb.compile(gradients)(x), gradients(x)):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)
