"""How many calls programs become: what belongs together is one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.targets.kernels import Loop

from .building import Building
from .checking import FAST, checked, kinds

RNG = np.random.default_rng(3)


def _normal(*shape: int, dtype: str = "float32") -> Any:
    return RNG.normal(size=shape).astype(dtype)


def _softmax(b: Building, x: Any, axis: int = -1) -> Any:
    terms = b.exp(b.subtract(x, b.max(x, (axis,), True)))
    return b.divide(terms, b.sum(terms, (axis,), True))


def _layer_norm(b: Building, x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    n = x.shape[-1]
    mean = b.divide(b.sum(x, (-1,), True), n)
    centred = b.subtract(x, mean)
    rstd = b.divide(1, b.sqrt(b.add(b.divide(b.sum(b.square(centred), (-1,), True), n), 1e-5)))
    normal = b.multiply(centred, rstd)
    return b.add(b.multiply(normal, weight), bias), normal, rstd


def test_elementwise_chains_are_one_loop() -> None:
    b = Building()
    x, y = b.input(_normal(6, 5)), b.input(_normal(5))
    out = b.where(b.greater(x, 0.0), b.tanh(b.add(b.multiply(x, y), 1.0)), b.astype(b.less(y, x), np.dtype("float32")))
    schedule = checked(b.program([out]), b.given())
    assert kinds(schedule) == "L" and schedule.arena_bytes == 0
    assert len(schedule.calls[0].kernel.writes) == 1


def test_softmax_is_one_loop_and_so_is_its_gradient() -> None:
    for shape, axis in (((6, 5), -1), ((2, 3, 4), -1), ((2, 3, 4), -2), ((2, 6, 5), -2)):
        b = Building()
        x, w = b.input(_normal(*shape)), b.input(_normal(shape[-1], 7))
        share = _softmax(b, x, axis)
        out = b.matmul(share, w)
        dshare = b.matmul(out, b.matrix_transpose(w))
        dx = b.multiply(share, b.subtract(dshare, b.sum(b.multiply(dshare, share), (axis,), True)))
        schedule = checked(b.program([out, dx]), b.given())
        assert kinds(schedule) == "LPPL"


def test_row_values_without_kept_axes_are_still_of_rows() -> None:
    b = Building()
    x = b.input(_normal(4, 3, 5))
    total = b.sum(b.exp(x), (-1,), False)
    log = b.log(b.add(total, 1.0))
    out = b.subtract(x, b.broadcast_to(b.reshape(log, (4, 3, 1)), (4, 3, 5)))
    schedule = checked(b.program([out, log]), b.given())
    assert kinds(schedule) == "L" and schedule.arena_bytes == 0


def test_layer_norm_is_one_loop_and_its_gradient_another() -> None:
    b = Building()
    x, weight, bias = b.input(_normal(4, 6, 8)), b.input(_normal(8)), b.input(_normal(8))
    out, normal, rstd = _layer_norm(b, x, weight, bias)
    g = b.matmul(out, b.input(_normal(8, 8)))
    scaled = b.multiply(g, weight)
    share = b.divide(b.sum(scaled, (-1,), True), 8)
    along = b.multiply(normal, b.divide(b.sum(b.multiply(scaled, normal), (-1,), True), 8))
    dx = b.multiply(b.subtract(b.subtract(scaled, share), along), rstd)
    dweight, dbias = b.sum(b.multiply(g, normal), (-3, -2), False), b.sum(g, (-3, -2), False)
    schedule = checked(b.program([dx, dweight, dbias]), b.given())
    assert kinds(schedule) == "LPL"
    backward = schedule.calls[-1].kernel
    assert sum(step.op == "column_sum" for step in backward.steps) == 2
    assert sum(step.op == "row_sum" for step in backward.steps) == 2


def test_a_loss_and_its_gradient_share_a_loop() -> None:
    b = Building()
    x, y = b.input(_normal(6, 5)), b.input(_normal(6, 5))
    difference = b.subtract(x, y)
    loss = b.divide(b.sum(b.square(difference), None, False), 30)
    gradient = b.multiply(difference, 2 / 30)
    schedule = checked(b.program([loss, gradient]), b.given())
    assert kinds(schedule) == "LL"
    assert len(schedule.calls[0].kernel.writes) == 2


def test_an_optimizers_step_is_one_loop_for_each_parameter_and_in_place() -> None:
    b = Building()
    rate = b.input(np.asarray(1e-3, "float32"))
    updates = []
    for shape in ((4, 5), (5,)):
        p, m, v, g = (b.input(np.abs(_normal(*shape))) for _ in range(4))
        new_m = b.add(b.multiply(m, 0.9), b.multiply(g, 0.1))
        new_v = b.add(b.multiply(v, 0.999), b.multiply(b.square(g), 0.001))
        step = b.divide(new_m, b.add(b.sqrt(new_v), 1e-8))
        updates += [(p, b.subtract(p, b.multiply(step, rate))), (m, new_m), (v, new_v)]
    schedule = checked(b.program([], updates), b.given())
    assert kinds(schedule) == "LL" and schedule.arena_bytes == 0


def test_an_update_that_waits_for_a_sum_of_what_it_uses_is_one_loop_in_place() -> None:
    # Adam, only if the gradient is finite: its square is used by the update and by the sum that decides.
    b = Building()
    p, m, v, x = (b.input(abs(_normal(8, 8))) for _ in range(4))
    g = b.matmul(x, p)
    squared = b.square(g)
    fine = b.isfinite(b.sum(squared, None, False))
    new_m, new_v = b.add(b.multiply(m, 0.9), b.multiply(g, 0.1)), b.add(b.multiply(v, 0.9), b.multiply(squared, 0.1))
    new_p = b.subtract(p, b.divide(b.multiply(new_m, 0.1), b.sqrt(new_v)))
    updates = [(old, b.where(fine, new, old)) for old, new in ((p, new_p), (m, new_m), (v, new_v))]
    schedule = checked(b.program([], updates), b.given())
    assert kinds(schedule) == "PLL"  # the product, the sum, the update
    assert len(schedule.calls[-1].kernel.writes) == 3
    assert {location.buffer.kind for location in schedule.calls[-1].writes} == {"input"}


def test_a_sum_and_other_users_of_what_it_adds_up_share_a_loop() -> None:
    b = Building()
    x = b.input(_normal(8, 8))
    squared = b.square(x)
    schedule = checked(b.program([b.sum(squared, None, False), b.exp(squared)]), b.given())
    assert kinds(schedule) == "L"
    assert sum(step.op == "square" for step in schedule.calls[0].kernel.steps) == 1


def test_an_mlp_step() -> None:
    b = Building()
    x, y = b.input(_normal(8, 3)), b.input(_normal(8, 2))
    w1, b1, w2, b2 = b.input(_normal(3, 16)), b.input(_normal(16)), b.input(_normal(16, 2)), b.input(_normal(2))
    hidden = b.tanh(b.add(b.matmul(x, w1), b1))
    out = b.add(b.matmul(hidden, w2), b2)
    difference = b.subtract(out, y)
    loss = b.divide(b.sum(b.multiply(difference, difference), None, False), 16)
    dout = b.multiply(difference, 2 / 16)
    dw2, db2 = b.matmul(b.matrix_transpose(hidden), dout), b.sum(dout, (-2,), False)
    dhidden = b.multiply(b.matmul(dout, b.matrix_transpose(w2)), b.subtract(1, b.square(hidden)))
    dw1, db1 = b.matmul(b.matrix_transpose(x), dhidden), b.sum(dhidden, (-2,), False)
    pairs = ((w1, dw1), (b1, db1), (w2, dw2), (b2, db2))
    updates = [(p, b.subtract(p, b.multiply(g, 0.1))) for p, g in pairs]
    schedule = checked(b.program([loss], updates), b.given())
    # five products; hidden; out, loss, its gradient; the loss's scale; hidden's gradient; four updates
    assert kinds(schedule).count("P") == 5 and kinds(schedule).count("L") <= 8


def test_domains_that_are_divided_differently_are_joined() -> None:
    b = Building()
    x, bias = b.input(_normal(4, 6, 8)), b.input(_normal(6, 8))
    flat = b.reshape(b.exp(b.add(x, bias)), (24, 8))
    schedule = checked(
        b.program([b.multiply(flat, 2.0), b.sum(flat, (-2,), False), b.sum(flat, (-1,), True)]), b.given()
    )
    assert kinds(schedule) == "L"
    b = Building()
    x = b.input(_normal(6, 4))
    other = b.reshape(b.exp(x), (4, 6))
    schedule = checked(b.program([b.sum(other, (-1,), False), b.sum(b.exp(x), (-1,), False)]), b.given())
    assert "L" in kinds(schedule)


def test_transposed_readers_are_joined() -> None:
    b = Building()
    x, y = b.input(_normal(6, 4)), b.input(_normal(4, 6))
    out = b.add(b.matrix_transpose(b.exp(x)), y)
    schedule = checked(b.program([out]), b.given())
    assert kinds(schedule) == "L" and schedule.arena_bytes == 0


def test_readers_of_one_array_are_joined() -> None:
    b = Building()
    x, w = b.input(_normal(30, 20)), b.input(_normal(20, 20))
    g = b.matmul(x, w)
    outputs = [b.sum(g, (-2,), False), b.tanh(g), b.sum(b.square(g), None, False), b.max(g, (-1,), False)]
    assert kinds(checked(b.program(outputs), b.given())) == "PL"


def test_what_needs_a_finished_reduction_waits() -> None:
    b = Building()
    x = b.input(_normal(6, 5))
    norm = b.sqrt(b.sum(b.square(x), None, False))
    column = b.sum(x, (-2,), True)
    out = b.add(b.divide(x, norm), column)
    schedule = checked(b.program([out]), b.given())
    assert kinds(schedule) == "LLL"


def test_groups_stay_free_of_cycles() -> None:
    b = Building()
    x, w = b.input(_normal(5, 5)), b.input(_normal(5, 5))
    y = b.exp(x)
    z = b.matmul(y, w)  # between y and the sum below
    schedule = checked(b.program([b.add(b.add(y, z), b.sum(z, None, False))]), b.given())
    assert kinds(schedule) == "LPLL"


def test_masks_are_not_written() -> None:
    b = Building()
    x, y = b.input(_normal(50, 8)), b.input(_normal(50, 8))
    keep = b.logical_and(b.greater(x, 0.0), b.isfinite(y))
    schedule = checked(b.program([b.where(keep, y, 0.0), b.sum(b.where(keep, x, 0.0), (-1,), False)]), b.given())
    assert kinds(schedule) == "L"
    assert all(write.access.dtype != "bool" for write in schedule.calls[0].kernel.writes)


def test_large_groups_are_cut() -> None:
    b = Building()
    x = b.input(_normal(7))
    inputs = [b.input(_normal(7)) for _ in range(40)]
    total = x
    for _ in range(4):
        for y in inputs:
            total = b.multiply(b.add(total, y), 0.5)
    schedule = checked(b.program([total]), b.given())
    for call in schedule.calls:
        assert isinstance(call.kernel, Loop) and len(call.kernel.reads) <= 24 and len(call.kernel.steps) <= 130


def test_the_same_elements_are_copied_once() -> None:
    b = Building()
    x, w = b.input(_normal(2, 3, 4, 5)), b.input(_normal(15, 15))
    moved = b.permute_dims(x, (0, 2, 1, 3))
    outputs = [
        b.matmul(b.reshape(moved, (8, 15)), w),
        b.matmul(b.matrix_transpose(b.reshape(moved, (8, 15))), b.reshape(moved, (8, 15))),
    ]
    schedule = checked(b.program(outputs), b.given())
    assert kinds(schedule) == "LPP"


def test_a_single_number_is_not_a_row_of_all_elements() -> None:
    b = Building()
    x, rate = b.input(_normal(6, 5)), b.input(np.asarray(0.5, "float32"))
    assert kinds(checked(b.program([b.multiply(x, b.exp(rate))]), b.given())) == "LL"


def test_what_belongs_to_rows_is_written_once() -> None:
    b = Building()
    u, x, y = b.input(_normal(4, 1)), b.input(_normal(4, 3)), b.input(_normal(4, 3, 5))
    row = b.exp(u)
    element = b.add(row, x)
    checked(b.program([row, element, b.multiply(b.reshape(element, (4, 3, 1)), y)]), b.given())
    b = Building()
    x, u = b.input(_normal(4, 3, 5)), b.input(_normal(4, 1))
    total, row = b.sum(x, (-1,), False), b.exp(u)
    checked(b.program([row, b.add(total, row)]), b.given())


def test_what_follows_from_a_kept_array_is_computed_again() -> None:
    b = Building()
    x, w = b.input(_normal(8, 8)), b.input(_normal(8, 8))
    hidden = b.tanh(b.matmul(x, w))
    slope = b.subtract(1.0, b.square(hidden))
    g = b.matmul(hidden, w)
    schedule = checked(b.program([b.multiply(g, slope)]), b.given())
    assert kinds(schedule) == "PLPL"
    assert [len(call.kernel.writes) for call in schedule.calls[1::2]] == [1, 1]
    assert [step.op for step in schedule.calls[1].kernel.steps] == ["read", "tanh"]


def test_what_follows_from_a_kept_array_in_another_order_is_kept_too() -> None:
    b = Building()
    x, w = b.input(_normal(8, 8)), b.input(_normal(8, 8))
    hidden = b.tanh(b.matmul(x, w))
    turned = b.multiply(b.matrix_transpose(hidden), 2.0)
    checked(b.program([b.add(b.matmul(hidden, w), turned)]), b.given())


def test_what_all_readers_compute_themselves_has_no_loop() -> None:
    b = Building()
    x = b.input(_normal(6, 6))
    doubled = b.multiply(b.matmul(x, x), 2.0)
    parts = [b.getitem(doubled, (slice(1, None),)), b.getitem(doubled, (slice(None, -1),))]
    schedule = checked(b.program([b.exp(parts[0]), b.sin(parts[1])]), b.given())
    assert kinds(schedule) == "PLL"


def test_what_follows_from_an_array_and_a_few_numbers_is_computed_again_where_arithmetic_costs_nothing() -> None:
    b = Building()
    x, w, u = b.input(_normal(40, 4)), b.input(_normal(4, 4)), b.input(_normal(4))
    images = b.matmul(x, w)
    centred = b.subtract(images, b.getitem(images, (slice(20, 21),)))
    mean = b.multiply(b.sum(centred, (-2,), True), 1 / 40)
    normalized = b.subtract(centred, mean)
    late = b.matmul(b.exp(normalized), w)
    program = b.program([b.multiply(b.multiply(late, normalized), u)])
    kept, again = checked(program, b.given()), checked(program, b.given(), abilities=FAST)
    sizes = [
        [location.buffer.nbytes for call in schedule.calls if type(call.kernel) is Loop for location in call.writes]
        for schedule in (kept, again)
    ]
    image = images.nbytes
    assert sizes[0].count(image) > sizes[1].count(image) == 2  # what is multiplied, and the result
    last = again.calls[-1]
    assert {location.buffer.nbytes for location in last.reads} == {image, mean.nbytes}


@pytest.mark.parametrize("numbers", [(4,), (40, 1)])
@pytest.mark.parametrize("part", [
    (...,), (slice(None, None, 2),), (..., slice(None, None, 3)), (slice(1, None), slice(None, None, 3)),
])  # fmt: skip
def test_what_is_computed_again_is_that_of_its_reader(numbers: tuple[int, ...], part: Any) -> None:
    b = Building()
    x, w, u = b.input(_normal(40, 4)), b.input(_normal(4, 4)), b.input(_normal(*numbers))
    product = b.matmul(x, w)
    moved = b.subtract(product, b.matmul(u, b.input(_normal(4, 4)))) if len(numbers) == 1 else b.subtract(product, u)
    late = b.getitem(b.matmul(b.exp(moved), w), part)
    checked(b.program([b.multiply(late, b.getitem(moved, part))]), b.given(), abilities=FAST)


def test_what_is_narrower_is_kept_where_arithmetic_costs_nothing() -> None:
    b = Building()
    x, w = b.input(_normal(64, 64).astype(np.float16)), b.input(_normal(64, 64).astype(np.float16))
    y, z = (b.matmul(b.tanh(x), w), b.matmul(w, b.tanh(x)))
    product = b.multiply(b.multiply(y, z), b.exp(y))
    wide = b.astype(product, np.dtype(np.float32))
    total = b.sum(wide, (-2,), True)
    program = b.program([b.subtract(wide, total)])
    schedule = checked(program, b.given(), abilities=FAST)
    writes = [write.access.dtype for write in schedule.calls[-2].kernel.writes]
    assert sorted(writes) == ["float16", "float32"] and schedule.calls[-2].kernel.outer == (64,)


def test_small_updates_of_one_size_are_one_loop_where_launches_cost_more() -> None:
    b = Building()
    parameters = [b.input(_normal(6)) for _ in range(5)] + [b.input(_normal(9))]
    gradients = [b.input(_normal(*p.shape)) for p in parameters]
    rate = b.input(_normal())
    updates = [(p, b.subtract(p, b.multiply(g, rate))) for p, g in zip(parameters, gradients)]
    program = b.program([], updates)
    assert len(checked(program, b.given()).calls) == 6
    assert len(checked(program, b.given(), abilities=FAST).calls) == 2


def test_small_loops_between_which_something_happens_stay_apart() -> None:
    b = Building()
    x, w = b.input(_normal(6, 6)), b.input(_normal(6, 6))
    first = b.multiply(x, 2.0)
    last = b.add(b.matmul(first, w), 1.0)
    schedule = checked(b.program([last, b.sin(w)], [(x, last)]), b.given(), abilities=FAST)
    assert kinds(schedule).count("P") == 1 and kinds(schedule).index("P") > 0


def test_what_follows_from_two_arrays_is_kept() -> None:
    b = Building()
    x, w = b.input(_normal(8, 8)), b.input(_normal(8, 8))
    first, second = b.matmul(x, w), b.matmul(w, x)
    product = b.multiply(first, second)
    late = b.matmul(b.matmul(b.tanh(product), first), second)
    schedule = checked(b.program([b.add(late, product)]), b.given())
    assert len(schedule.calls[-1].kernel.reads) == 2


def test_arrays_are_added_up_while_they_are_in_the_cache() -> None:
    b = Building()
    x = b.input(_normal(8, 8))
    first = b.matmul(x, x)
    second = b.matmul(first, x)
    totals = [b.sum(b.square(first), None, False), b.sum(b.square(second), None, False)]
    assert kinds(checked(b.program([*totals, second]), b.given())) == "PLPL"
