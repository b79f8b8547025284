"""New values of inputs: made in the inputs' own memory where nobody needs the old ones any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from .building import Building
from .checking import checked, kinds

RNG = np.random.default_rng(5)


def _normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype("float32")


def test_two_inputs_are_swapped() -> None:
    b = Building()
    x, y = b.input(_normal(4)), b.input(_normal(4))
    checked(b.program([], [(x, y), (y, x)]), b.given(), exact=True)


def test_inputs_are_rotated_and_changed() -> None:
    b = Building()
    x, y, z = (b.input(_normal(4, 3)) for _ in range(3))
    updates = [(x, b.add(y, 1.0)), (y, b.add(z, 1.0)), (z, b.add(x, 1.0))]
    checked(b.program([x, b.multiply(x, y)], updates), b.given(), exact=True)


def test_an_old_value_that_is_needed_later_is_seen_as_it_was() -> None:
    b = Building()
    w, x = b.input(_normal(4, 4)), b.input(_normal(4, 4))
    new = b.subtract(w, 1.0)
    late = b.matmul(b.matmul(x, new), w)  # reads the old value after the new one was made
    schedule = checked(b.program([late], [(w, new)]), b.given())
    assert kinds(schedule).endswith("L")


def test_an_input_that_is_read_elsewhere_in_the_same_loop_is_not_written_there() -> None:
    b = Building()
    x = b.input(_normal(5, 5))
    checked(b.program([], [(x, b.add(x, b.matrix_transpose(x)))]), b.given(), exact=True)
    b = Building()
    x = b.input(_normal(6))
    checked(b.program([], [(x, b.add(x, b.flip(x, (-1,))))]), b.given(), exact=True)
    b = Building()
    x = b.input(_normal(6, 6))
    checked(b.program([], [(x, b.add(x, b.getitem(x, (slice(0, 1),))))]), b.given(), exact=True)


def test_rows_that_are_normalised_in_place() -> None:
    b = Building()
    x = b.input(_normal(5, 7))
    schedule = checked(b.program([], [(x, b.divide(x, b.sum(b.square(x), (-1,), True)))]), b.given())
    assert kinds(schedule) == "L" and schedule.arena_bytes == 0


def test_a_product_does_not_write_over_its_operand() -> None:
    b = Building()
    w, x = b.input(_normal(4, 4)), b.input(_normal(4, 4))
    checked(b.program([], [(w, b.matmul(w, x))]), b.given())
    b = Building()
    w, x = b.input(_normal(4, 4)), b.input(_normal(4, 4))
    schedule = checked(b.program([], [(w, b.matmul(x, x))]), b.given())
    assert kinds(schedule) == "P" and schedule.arena_bytes == 0


def test_one_value_for_several_inputs_and_outputs() -> None:
    b = Building()
    x, y = b.input(_normal(4)), b.input(_normal(4))
    new = b.exp(x)
    checked(b.program([new, new, x, x], [(x, new), (y, new)]), b.given(), exact=True)


def test_updates_with_views_and_numbers() -> None:
    b = Building()
    x, y, z = b.input(_normal(3, 3)), b.input(_normal(3, 3)), b.input(_normal(3, 3))
    updates = [(x, b.matrix_transpose(x)), (y, b.zeros_like(y)), (z, z)]
    checked(b.program([b.matrix_transpose(y)], updates), b.given(), exact=True)


def test_updates_made_of_parts() -> None:
    b = Building()
    x, y = b.input(_normal(4, 3)), b.input(_normal(4, 3))
    top, bottom = b.getitem(x, (slice(0, 2),)), b.getitem(x, (slice(2, 4),))
    updates = [(x, b.concat((bottom, top), 0)), (y, b.setitem(y, 0.0, (1,)))]
    checked(b.program([], updates), b.given(), exact=True)


def test_outputs_that_are_inputs_or_views_of_them_are_copies() -> None:
    b = Building()
    x = b.input(_normal(4, 3))
    constant = b.input(_normal(3))
    outputs = [x, b.reshape(x, (12,)), b.getitem(x, (1,)), b.broadcast_to(constant, (2, 3)), constant]
    program = b.program(outputs, [(x, b.negative(x))], {constant: b.arrays[constant]})
    checked(program, b.given(), exact=True)


def test_constants() -> None:
    b = Building()
    x, table, one = b.input(_normal(4, 3)), b.input(_normal(3)), b.input(np.asarray(2.0, "float32"))
    constants = {table: b.arrays[table], one: b.arrays[one]}
    program = b.program([b.add(b.multiply(x, one), table), b.matmul(x, table)], [], constants)
    schedule = checked(program, b.given())
    assert len(schedule.constants) == 1 and len(schedule.inputs) == 3
    assert any(step.op == "number" and step.number == 2.0 for step in schedule.calls[0].kernel.steps)


def test_a_host_call_is_not_given_memory_that_it_reads() -> None:
    b = Building()
    x = b.input(_normal(4, 4))
    checked(b.program([], [(x, b.inv(x))]), b.given())


def test_rows_are_written_where_they_belong_and_taken_back() -> None:
    b = Building()
    x, rows, at = b.input(_normal(50, 4)), b.input(_normal(2, 4)), b.input(np.array([3, -1]))
    before = b.getitem(x, at)
    new = b.setitem(x, rows, at)
    chosen = b.where(b.greater(b.sum(new, None, False), 0.0), rows, before)
    schedule = checked(b.program([], [(x, b.setitem(new, chosen, at))]), b.given())
    assert schedule.arena_bytes < 50 * 4 * 4


def test_rows_that_are_wanted_as_they_were_in_between_are_not_written_over() -> None:
    b = Building()
    x, y, at = b.input(_normal(50, 4)), b.input(_normal(50, 4)), b.input(np.array([3, -1]))
    new = b.setitem(x, b.getitem(y, at), at)
    checked(b.program([], [(x, b.setitem(new, b.getitem(x, 0), at)), (y, new)]), b.given(), exact=True)
    b = Building()
    x, at = b.input(_normal(50, 4)), b.input(np.array([3, -1]))
    new = b.setitem(x, b.getitem(x, 0), at)
    checked(b.program([new, x], [(x, b.setitem(new, b.getitem(x, 7), at))]), b.given(), exact=True)
