"""The interpreter runs programs by a namespace's kernels, and notices programs that are not sound."""

from __future__ import annotations

import numpy as np
import pytest

from pullback.compiler.interpreter import ProgramError
from pullback.compiler.program import Instruction, Program, Value
from tests.compiler.meaning import run

from .programs import Builder, random_program


def doubled() -> tuple[Value, Value, Instruction]:
    x, y = Value((3,), np.float32), Value((3,), np.float32)
    return x, y, Instruction("multiply", (x, 2.0), (y,), "model.py:7")


def test_outputs_and_updates_are_what_kernels_compute() -> None:
    x, y, double = doubled()
    total = Value((), np.float32)
    program = Program([x], [double, Instruction("sum", (y, None, False), (total,))], [total, x], [(x, y)])
    given = np.array([1, 2, 3], np.float32)
    outputs, updates = run(program, [given])
    assert outputs[0].item() == 12 and isinstance(outputs[0], np.ndarray)
    np.testing.assert_array_equal(updates[0], [2, 4, 6])
    np.testing.assert_array_equal(given, [1, 2, 3])
    assert not np.shares_memory(outputs[1], given)


def test_several_results_and_values_inside_tuples() -> None:
    b = Builder()
    x = b.input(np.arange(6.0).reshape(2, 3))
    rows = b.make_all("unstack", x, -2)
    joined = b.make("concat", (rows[1], rows[0]), -1)
    read = b.make("getitem", x, (slice(None), b.input(np.array([2, 0]))))
    outputs, _ = run(b.program([joined, read]), b.given())
    np.testing.assert_array_equal(outputs[0], [3, 4, 5, 0, 1, 2])
    np.testing.assert_array_equal(outputs[1], [[2, 0], [5, 3]])


def test_results_that_are_absent_are_no_results() -> None:
    b = Builder()
    g, a, h = (b.input(np.ones((4,))) for _ in range(3))
    grad = Value((4,), np.float64)
    args = (g, a, None, h, (4,), None, -1, False, (True, False, False))
    program = Program([g, a, h], [Instruction("ssm_scan_gradient", args, (grad,))], [grad])
    np.testing.assert_array_equal(run(program, b.given())[0][0], [4, 3, 2, 1])


def test_constants_need_not_be_given() -> None:
    x, y, double = doubled()
    program = Program([x], [double], [y], constants={x: np.ones(3, np.float32)})
    np.testing.assert_array_equal(run(program, [])[0][0], [2, 2, 2])


def test_numbers_that_are_out_of_range_warn_nobody() -> None:
    x, y, _ = doubled()
    program = Program([x], [Instruction("divide", (x, 0.0), (y,))], [y])
    np.testing.assert_array_equal(run(program, [np.array([-1, 0, 1], np.float32)])[0][0], [-np.inf, np.nan, np.inf])


def test_every_value_is_what_it_was_declared_to_be() -> None:
    x, y, double = doubled()
    given = np.ones(3, np.float32)
    for shape, dtype in (((3,), np.float64), ((1, 3), np.float32), ((), np.float32)):
        wrong = Instruction("multiply", (x, 2.0), (Value(shape, dtype),))
        with pytest.raises(ProgramError, match="was declared, and float32\\[3\\] was made by"):
            run(Program([x], [wrong], [wrong.result]), [given])
    with pytest.raises(ProgramError, match="float32\\[3\\] was declared, and float64\\[3\\] was made by 'input 0'"):
        run(Program([x], [double], [y]), [np.ones(3)])
    with pytest.raises(ProgramError, match="made 1 arrays, not 2"):
        run(Program([x], [Instruction("exp", (x,), (y, Value((3,), np.float32)))], [y]), [given])


def test_programs_that_are_not_sound() -> None:
    x, y, double = doubled()
    given = np.ones(3, np.float32)
    with pytest.raises(ProgramError, match=r"uses a value .* that is not made before it"):
        run(Program([], [double], [y]), [])
    with pytest.raises(ProgramError, match="that nothing makes"):
        run(Program([x], [], [y]), [given])
    with pytest.raises(ProgramError, match="was not given"):
        run(Program([x], [double], [y]), [])
    with pytest.raises(ProgramError, match="2 arrays were given to a program of 1 inputs"):
        run(Program([x], [double], [y]), [given, given])
    with pytest.raises(ProgramError, match="cannot be the new value"):
        run(Program([x], [double], [], [(y, y)]), [given])
    with pytest.raises(AttributeError, match="no_such_kernel"):
        run(Program([x], [Instruction("no_such_kernel", (x,), (y,))], [y]), [given])


def test_what_a_kernel_raises_says_where() -> None:
    x = Value((3,), np.float32)
    wrong = Instruction("reshape", (x, (2, 2)), (Value((2, 2), np.float32),), "model.py:7")
    with pytest.raises(ValueError, match="cannot reshape") as caught:
        run(Program([x], [wrong], [wrong.result]), [np.ones(3, np.float32)])
    assert "model.py:7" in caught.value.__notes__[0]


def test_random_programs_are_sound_and_the_same_for_the_same_seed() -> None:
    for seed in range(20):
        program, inputs = random_program(seed)
        again, _ = random_program(seed)
        assert str(program) == str(again)
        run(program, inputs)
