"""Every pass, and all together, keep the meaning of programs, and change nothing in the program they are given."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from pullback.compiler.passes import optimize
from pullback.compiler.passes.algebra import simplified
from pullback.compiler.passes.common_subexpressions import without_common_subexpressions
from pullback.compiler.passes.constants import LARGEST, with_folded_constants
from pullback.compiler.passes.dead_code import without_dead_code
from pullback.compiler.passes.layout import with_less_movement
from pullback.compiler.passes.parts import with_joined_parts
from pullback.compiler.passes.shrink_reductions import with_fewer_reductions
from pullback.compiler.passes.sums_of_steps import with_joined_steps
from pullback.compiler.program import Instruction, Program, Value
from tests.compiler.meaning import run

from ..programs import Builder, assert_same_meaning, random_program

PASSES: dict[str, Callable[[Program], Program]] = {
    function.__name__: function
    for function in (
        simplified,
        with_less_movement,
        with_fewer_reductions,
        with_joined_parts,
        with_joined_steps,
        with_folded_constants,
        without_common_subexpressions,
        without_dead_code,
        optimize,
    )
}
DTYPES = {
    "single": ("float32",),
    "mixed": ("float32", "float64", "int32", "uint8", "bool"),
    "half": ("float16", "bfloat16", "float32", "bool"),
}


@pytest.mark.parametrize("special", [False, True], ids=["plain", "special"])
@pytest.mark.parametrize("dtypes", DTYPES)
@pytest.mark.parametrize("name", PASSES)
def test_the_meaning_stays(name: str, dtypes: str, special: bool) -> None:
    if dtypes == "half":
        pytest.importorskip("ml_dtypes")
    for seed in range(25):
        program, inputs = random_program(seed, dtypes=DTYPES[dtypes], special=special)
        before = described(program)
        other = PASSES[name](program)
        assert described(program) == before
        assert other.inputs[: len(program.inputs)] == program.inputs
        assert [target for target, _ in other.updates] == [target for target, _ in program.updates]
        assert_same_meaning(program, other, inputs)


def described(program: Program) -> Any:
    """All that a program consists of, by identity."""
    return (
        [(i, i.op, i.args, i.results) for i in program.instructions],
        list(program.inputs),
        list(program.outputs),
        list(program.updates),
        {value: array.tobytes() for value, array in program.constants.items()},
    )


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_that_finds_nothing_returns_the_program_itself(name: str) -> None:
    for seed in range(30):
        program = optimize(random_program(seed)[0])
        assert PASSES[name](program) is program


def test_long_programs() -> None:
    for seed in range(3):
        program, inputs = random_program(seed, depth=400)
        assert_same_meaning(program, optimize(program), inputs)


@pytest.mark.parametrize("op", ["sin", "negative", "abs"])
def test_long_chains(op: str) -> None:
    b = Builder()
    x = b.input(np.random.default_rng(0).standard_normal((2, 9)))
    value = b.make("broadcast_to", x, (3, 2, 9))
    for _ in range(2000):
        value = b.make(op, value)
    chosen = b.make("take_along_axis", value, b.input(np.zeros((3, 2, 1), int)), -1)
    program = b.program([value, chosen])
    assert_same_meaning(program, optimize(program), b.given())


def test_sites_are_kept() -> None:
    program, _ = random_program(3, depth=60)
    assert all(instruction.site for instruction in optimize(program).instructions)


# -- dead code ---------------------------------------------------------------------------------------


def test_what_nothing_needs_is_left_out() -> None:
    b = Builder()
    x = b.input(np.arange(6.0).reshape(2, 3))
    b.make("sin", b.make("exp", x))
    rows = b.make_all("unstack", x, -2)
    new = b.make("cos", x)
    program = b.program([rows[1]], [(x, new)])
    assert [i.op for i in without_dead_code(program).instructions] == ["unstack", "cos"]


# -- common subexpressions ---------------------------------------------------------------------------


def test_the_same_is_computed_once() -> None:
    b = Builder()
    x, y = b.input(np.arange(3.0)), b.input(np.ones(3))
    first = b.make("exp", b.make("add", x, y))
    second = b.make("exp", b.make("add", y, x))
    read = [b.make("getitem", x, (slice(0, 2),)) for _ in range(2)]
    program = b.program([first, second, *read], [(x, second)])
    other = without_common_subexpressions(program)
    assert [i.op for i in other.instructions] == ["add", "exp", "getitem"]
    assert other.outputs == [first, first, read[0], read[0]] and other.updates == [(x, first)]


def test_all_results_of_the_same_are_the_same() -> None:
    b = Builder()
    x = b.input(np.arange(6.0).reshape(2, 3))
    first, second = b.make_all("unstack", x, -2), b.make_all("unstack", x, -2)
    other = without_common_subexpressions(b.program([*first, *second]))
    assert len(other.instructions) == 1 and other.outputs == [*first, *first]


def test_what_only_looks_the_same_is_computed_twice() -> None:
    b = Builder()
    x = b.input(np.arange(1, 4))
    pairs = [
        (b.make("multiply", x, 1), b.make("multiply", x, 1.0)),
        (b.make("copysign", x, 0.0), b.make("copysign", x, -0.0)),
        (b.make("subtract", x, 2), b.make("subtract", 2, x)),
        (b.make("add", x, 1), b.make("add", x, True)),
        (b.make("astype", x, np.dtype("int8")), b.make("astype", x, np.dtype("int16"))),
        (b.make("getitem", x, (slice(0, 2),)), b.make("getitem", x, (slice(0, 2, 2),))),
        (b.make("full", (2,), 0.0, np.dtype("float32"), None), b.make("full", (2,), -0.0, np.dtype("float32"), None)),
    ]
    program = b.program([value for pair in pairs for value in pair])
    assert without_common_subexpressions(program) is program


# -- constants ---------------------------------------------------------------------------------------


def test_what_depends_on_constants_alone_becomes_a_constant() -> None:
    b = Builder()
    x, table = b.input(np.ones(4)), b.input(np.arange(4.0), constant=True)
    angles = b.make("multiply", b.make("arange", 0, 4, 1, np.dtype("float64"), None), table)
    wave = b.make("cos", angles)
    program = b.program([b.make("add", x, wave)])
    folded = with_folded_constants(program)
    left = [i.op for i in without_dead_code(folded).instructions]
    assert left == ["add"] and folded.inputs == [x, table, wave]
    np.testing.assert_array_equal(folded.constants[wave], np.cos(np.arange(4.0) ** 2))
    assert program.constants.keys() == {table} and folded.constants.keys() == {table, wave}
    np.testing.assert_array_equal(run(folded, b.given())[0][0], 1 + np.cos(np.arange(4.0) ** 2))


def test_what_is_large_or_cheap_is_not_folded() -> None:
    b = Builder()
    seed = b.input(np.arange(1000.0), constant=True)
    column = b.make("reshape", b.input(np.arange(1000.0), constant=True), (1000, 1))
    large = b.make("add", seed, column)
    spread = b.make("broadcast_to", seed, (7, 1000))
    counted = b.make("arange", 0, 10, 1, np.dtype("int64"), None)
    assert large.nbytes > LARGEST
    folded = with_folded_constants(b.program([large, spread, counted]))
    assert [i.op for i in folded.instructions] == ["add", "broadcast_to", "arange"]


def test_inputs_that_change_are_not_folded() -> None:
    b = Builder()
    x = b.input(np.ones(4))
    program = b.program([b.make("exp", x)])
    assert with_folded_constants(program) is program


def test_what_fails_is_left_to_fail_when_it_is_run() -> None:
    x, indices, read = Value((3,), np.float64), Value((2,), np.int64), Value((2,), np.float64)
    program = Program(
        [x, indices], [Instruction("take", (x, indices, -1), (read,))], [read],
        constants={x: np.ones(3), indices: np.array([0, 7])},
    )  # fmt: skip
    assert with_folded_constants(program) is program
    with pytest.raises(IndexError):
        run(optimize(program), [])


def test_constants_of_one_number_become_numbers() -> None:
    b = Builder()
    x = b.input(np.arange(3, dtype=np.float32))
    half = b.input(np.asarray(0.5, np.float32), constant=True)
    zeros = b.input(np.array([0.0, -0.0, 0.0], np.float32), constant=True)
    program = optimize(b.program([b.make("multiply", x, half), b.make("copysign", x, zeros)]))
    assert [i.args for i in program.instructions] == [(x, 0.5), (x, zeros)]


# -- all together ------------------------------------------------------------------------------------


def test_a_training_step_is_left_with_what_it_needs() -> None:
    """A linear layer with a bias and a mean squared error, differentiated as an engine does it, and a step."""
    b = Builder()
    random = np.random.default_rng(0)
    x, y = (b.input(random.standard_normal((8, n)).astype(np.float32)) for n in (5, 3))
    w, bias = b.input(random.standard_normal((3, 5)).astype(np.float32)), b.input(np.zeros(3, np.float32))
    m = b.make
    out = m("add", m("matmul", x, m("matrix_transpose", w)), bias)
    error = m("subtract", out, y)
    loss = m("divide", m("sum", m("multiply", error, error), None, False), 24)
    g = m("divide", m("ones_like", loss), 24)
    g = m("broadcast_to", m("reshape", g, (1, 1)), (8, 3))
    g = m("add", m("multiply", g, error), m("multiply", g, error))
    grad_w = m("add", m("zeros_like", w), m("matrix_transpose", m("matmul", m("matrix_transpose", x), g)))
    grad_bias = m("add", m("zeros_like", bias), m("sum", g, (-2,), False))
    new = [m("subtract", p, m("multiply", 0.1, grad)) for p, grad in ((w, grad_w), (bias, grad_bias))]
    program = b.program([loss], [(w, new[0]), (bias, new[1])])
    other = optimize(program)
    assert [i.op for i in other.instructions] == [
        "permute_dims", "matmul", "add", "subtract", "square", "sum", "divide",  # the loss
        "multiply", "add", "permute_dims", "matmul", "sum",  # the gradients
        "multiply", "subtract", "multiply", "subtract",  # the step
    ]  # fmt: skip
    assert_same_meaning(program, other, b.given())


def test_time_grows_with_the_length_of_programs() -> None:
    """Counted, not timed: each pass looks at each instruction a bounded number of times."""
    counts = []
    for depth in (200, 800):
        program, _ = random_program(1, depth=depth)
        looks = 0

        class Counted(list):
            def __iter__(self) -> Any:
                nonlocal looks
                for part in super().__iter__():
                    looks += 1
                    yield part

        program.instructions = Counted(program.instructions)
        optimize(program)
        counts.append(looks / len(program.instructions))
    assert counts[1] <= counts[0] * 1.5
