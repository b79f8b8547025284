"""Movements are merged, cancelled and canonical; reductions and parts of arrays cost what they must."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from pullback.compiler.passes.dead_code import without_dead_code
from pullback.compiler.passes.layout import with_less_movement
from pullback.compiler.passes.parts import slice_of, with_joined_parts
from pullback.compiler.passes.pipeline import optimize
from pullback.compiler.program import Program, Value
from tests.compiler.meaning import run

from ..programs import Builder

Body = Callable[..., Value]


def check(body: Body, left: str, optimized: Callable[[Program], Program], rtol: float = 0.0) -> Program:
    """`body(make, x)` for x of shape (2, 3, 4) is left as the instructions `left`, and means the same."""
    b = Builder()
    x = b.input(np.random.default_rng(0).standard_normal((2, 3, 4)))
    value = body(b.make, x)
    simpler = without_dead_code(optimized(b.program([value])))
    assert [f"{i.op}{i.args[1:] if i.op in SHOWN else ''}" for i in simpler.instructions] == left.split("; ")[
        : None if left else 0
    ]
    (got,), _ = run(simpler, b.given())
    np.testing.assert_allclose(got, b.arrays[value], rtol=rtol, strict=True)
    return simpler


SHOWN = ("reshape", "permute_dims", "broadcast_to")

MOVEMENTS: dict[str, tuple[Body, str]] = {
    "reshape to the same": (lambda m, x: m("reshape", x, (2, 3, 4)), ""),
    "reshape twice": (lambda m, x: m("reshape", m("reshape", x, (6, 4)), (-1,)), "reshape((24,),)"),
    "reshape and back": (lambda m, x: m("reshape", m("reshape", x, (-1,)), x.shape), ""),
    "expand and squeeze": (lambda m, x: m("squeeze", m("expand_dims", x, (1,)), (1,)), ""),
    "expand": (lambda m, x: m("expand_dims", x, (0, -1)), "reshape((1, 2, 3, 4, 1),)"),
    "transpose": (lambda m, x: m("matrix_transpose", x), "permute_dims((0, 2, 1),)"),
    "transpose twice": (lambda m, x: m("matrix_transpose", m("matrix_transpose", x)), ""),
    "permute twice": (
        lambda m, x: m("permute_dims", m("permute_dims", x, (-1, 0, 1)), (2, 0, 1)), "permute_dims((1, 2, 0),)",
    ),
    "permute, not commuting": (
        lambda m, x: m("permute_dims", m("permute_dims", x, (1, 0, 2)), (0, 2, 1)), "permute_dims((1, 2, 0),)",
    ),
    "permute and back": (lambda m, x: m("permute_dims", m("permute_dims", x, (2, 0, 1)), (1, 2, 0)), ""),
    "permute of axes of length 1": (
        lambda m, x: m("permute_dims", m("reshape", x, (2, 1, 3, 4)), (0, 2, 3, 1)), "reshape((2, 3, 4, 1),)",
    ),
    "broadcast twice": (
        lambda m, x: m("broadcast_to", m("broadcast_to", x, (5, 2, 3, 4)), (6, 5, 2, 3, 4)),
        "broadcast_to((6, 5, 2, 3, 4),)",
    ),
    "broadcast to the same size": (lambda m, x: m("broadcast_to", x, (1, 2, 3, 4)), "reshape((1, 2, 3, 4),)"),
    "leading ones, then broadcast": (
        lambda m, x: m("broadcast_to", m("reshape", x, (1, 2, 3, 4)), (7, 2, 3, 4)), "broadcast_to((7, 2, 3, 4),)",
    ),
    "permute of what is broadcast": (
        lambda m, x: m("permute_dims", m("broadcast_to", x, (5, 2, 3, 4)), (1, 0, 3, 2)),
        "reshape((1, 2, 3, 4),); permute_dims((1, 0, 3, 2),); broadcast_to((2, 5, 4, 3),)",
    ),
    "reshape of what is broadcast": (
        lambda m, x: m("reshape", m("broadcast_to", x, (5, 2, 3, 4)), (5, 1, 2, 3, 1, 4)),
        "reshape((1, 1, 2, 3, 1, 4),); broadcast_to((5, 1, 2, 3, 1, 4),)",
    ),
    "reshape of one number, broadcast": (
        lambda m, x: m("reshape", m("broadcast_to", m("sum", x, None, True), (2, 3, 4)), (4, 6)),
        "sum; reshape((),); broadcast_to((4, 6),)",
    ),
    "reading everything": (lambda m, x: m("getitem", x, (slice(None), ..., slice(0, 4))), ""),
    "writing over everything": (
        lambda m, x: m("setitem", x, m("reshape", m("getitem", x, (0, 0)), (1, 4)), (slice(None), ...)),
        "getitem; broadcast_to((2, 3, 4),)",
    ),
    "writing a number over everything": (lambda m, x: m("setitem", x, 3, ...), "full"),
    "writing over a part": (lambda m, x: m("setitem", x, 3.0, (slice(None), 0)), "setitem"),
    "reading with new axes": (lambda m, x: m("getitem", x, (None, ..., None)), "reshape((1, 2, 3, 4, 1),)"),
    "the only one": (lambda m, x: m("getitem", m("reshape", x, (6, 4, 1)), (..., 0)), "reshape((6, 4),)"),
    "flip twice": (lambda m, x: m("flip", m("flip", x, (-1,)), (-1,)), ""),
    "roll by nothing": (lambda m, x: m("roll", x, (0,), (-1,)), ""),
    "tile once": (lambda m, x: m("tile", x, (1, 1, 1, 1)), "reshape((1, 2, 3, 4),)"),
    "pad by nothing": (lambda m, x: m("pad", x, ((0, 0),) * 3, 0), ""),
    "concat of one": (lambda m, x: m("concat", (x,), 0), ""),
    "stack of one": (lambda m, x: m("stack", (x,), 0), "reshape((1, 2, 3, 4),)"),
    "product, transposed": (
        lambda m, x: m("matrix_transpose", m("matmul", x, m("matrix_transpose", x))),
        "permute_dims((0, 2, 1),); matmul",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movements(name: str) -> None:
    body, left = MOVEMENTS[name]
    check(body, left, with_less_movement, rtol=1e-14)


MOVEMENTS_KEPT: dict[str, tuple[Body, str]] = {
    "flip, then along another axis": (lambda m, x: m("flip", m("flip", x, (-1,)), (-2,)), "flip; flip"),
    "the first of several": (lambda m, x: m("getitem", x, (0,)), "getitem"),
    "backwards": (lambda m, x: m("getitem", x, (slice(None, None, -1),)), "getitem"),
    "a reshape that joins what was broadcast": (
        lambda m, x: m("reshape", m("broadcast_to", x, (5, 2, 3, 4)), (30, 4)),
        "broadcast_to((5, 2, 3, 4),); reshape((30, 4),)",
    ),
    "another permutation of a product": (
        lambda m, x: m("permute_dims", m("matmul", x, m("permute_dims", x, (0, 2, 1))), (1, 0, 2)),
        "permute_dims((0, 2, 1),); matmul; permute_dims((1, 0, 2),)",
    ),
    "a permutation between reshapes": (
        lambda m, x: m("reshape", m("permute_dims", m("reshape", x, (6, 4)), (1, 0)), (24,)),
        "reshape((6, 4),); permute_dims((1, 0),); reshape((24,),)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVEMENTS_KEPT)
def test_movements_that_move_stay(name: str) -> None:
    check(*MOVEMENTS_KEPT[name], with_less_movement)


def test_a_product_that_is_used_twice_is_not_computed_twice() -> None:
    b = Builder()
    x = b.input(np.random.default_rng(0).standard_normal((3, 4)))
    product = b.make("matmul", x, b.make("matrix_transpose", x))
    simpler = with_less_movement(b.program([product, b.make("matrix_transpose", product)]))
    assert [i.op for i in simpler.instructions] == ["permute_dims", "matmul", "permute_dims"]


def test_batched_products_are_transposed_by_their_operands() -> None:
    b = Builder()
    random = np.random.default_rng(0)
    x, y = b.input(random.standard_normal((5, 1, 3, 4))), b.input(random.standard_normal((2, 4, 6)))
    turned = b.make("matrix_transpose", b.make("matmul", x, y))
    simpler = without_dead_code(with_less_movement(b.program([turned])))
    assert [i.op for i in simpler.instructions] == ["permute_dims", "permute_dims", "matmul"]
    np.testing.assert_allclose(run(simpler, b.given())[0][0], b.arrays[turned], rtol=1e-13)


# -- reductions --------------------------------------------------------------------------------------

REDUCTIONS: dict[str, tuple[Body, str]] = {
    "over an axis of length 1": (lambda m, x: m("sum", m("reshape", x, (2, 1, 12)), (-2,), False), "reshape((2, 12),)"),
    "maximum of one": (lambda m, x: m("max", m("reshape", x, (24, 1)), (-1,), False), "reshape((24,),)"),
    "any of one": (
        lambda m, x: m("any", m("reshape", x, (24, 1)), (-1,), True), "reshape((24, 1),); astype",
    ),
    "count of one": (
        lambda m, x: m("count_nonzero", m("reshape", x, (24, 1)), (-1,), True), "reshape((24, 1),); astype; astype",
    ),
    "position of one": (lambda m, x: m("argmax", m("reshape", x, (24, 1)), (-1,), False), "full"),
    "sum of what is broadcast": (
        lambda m, x: m("sum", m("broadcast_to", x, (5, 2, 3, 4)), (-4,), False), "multiply",
    ),
    "sum of what is broadcast and of the rest": (
        lambda m, x: m("sum", m("broadcast_to", m("sum", x, (-2,), True), (7, 2, 3, 4)), (-4, -2, -1), False),
        "sum; sum; multiply; reshape((2,),)",
    ),
    "sum over some of what is broadcast": (
        lambda m, x: m("sum", m("broadcast_to", m("sum", x, (-2,), True), (7, 2, 3, 4)), (-4,), False),
        "sum; multiply; broadcast_to((2, 3, 4),)",
    ),
    "maximum of what is broadcast": (
        lambda m, x: m("max", m("broadcast_to", x, (5, 2, 3, 4)), None, False), "max; reshape((),)",
    ),
    "sum of a number": (lambda m, x: m("sum", m("ones_like", x), (0, 1), False), "full"),
    "product of a number": (lambda m, x: m("prod", m("ones_like", x), None, False), "full"),
    "maximum of a number": (lambda m, x: m("max", m("full", (3, 4), -1.5, x.dtype, x), (-1,), False), "full"),
    "count of a number": (lambda m, x: m("count_nonzero", m("full", (3, 4), 2.0, x.dtype, x), (-1,), False), "full"),
    "sum of nothing": (lambda m, x: m("sum", m("getitem", x, (slice(0, 0),)), (0,), False), "full"),
    "all of nothing": (lambda m, x: m("all", m("getitem", x, (slice(0, 0),)), (0,), False), "full"),
    "product of nothing": (lambda m, x: m("prod", m("getitem", x, (slice(0, 0),)), None, False), "full"),
    "exp of nothing": (lambda m, x: m("exp", m("getitem", x, (slice(0, 0),))), "full"),
    "a real sum": (lambda m, x: m("sum", x, (-1,), True), "sum"),
    "sum over what was not broadcast": (
        lambda m, x: m("sum", m("broadcast_to", x, (5, 2, 3, 4)), (-1,), False), "broadcast_to((5, 2, 3, 4),); sum",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    body, left = REDUCTIONS[name]
    check(body, left, optimize, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
def test_a_sum_of_equal_numbers_is_counted_in_its_dtype(dtype: str) -> None:
    for count in (3, 5000):
        b = Builder()
        x = b.input(np.array([0, 1, 2, 0.25]).astype(dtype))
        total = b.make("sum", b.make("broadcast_to", x, (count, 4)), (-2,), False)
        (got,), _ = run(optimize(b.program([total])), b.given())
        np.testing.assert_array_equal(got, b.arrays[total], strict=True)


def test_zeros_stay_zeros_where_the_count_is_no_number_of_the_dtype() -> None:
    b = Builder()
    total = b.make("sum", b.make("broadcast_to", b.input(np.zeros(1, np.float16)), (100_000, 1)), (-2,), False)
    assert run(optimize(b.program([total])), b.given())[0][0] == 0


def test_infinities_and_nan_survive_counting() -> None:
    b = Builder()
    x = b.input(np.array([np.inf, -np.inf, np.nan, -0.0]))
    total = b.make("sum", b.make("broadcast_to", x, (3, 4)), (-2,), False)
    (got,), _ = run(optimize(b.program([total])), b.given())
    np.testing.assert_array_equal(got, b.arrays[total])


# -- parts -------------------------------------------------------------------------------------------


def slices(*bounds: tuple[int, int], axis: int = -1) -> tuple[Builder, Value]:
    """The sum of arrays of shape (4, 6) that are zero but for slices of an axis."""
    b = Builder()
    total: Any = None
    for start, stop in bounds:
        shape = (4, stop - start) if axis == -1 else (stop - start, 6)
        value = b.input(np.random.default_rng(stop).standard_normal(shape))
        index = (..., slice(start, stop)) if axis == -1 else (slice(start, stop),)
        part = b.make("place", value, (4, 6), index)
        total = part if total is None else b.make("add", total, part)
    return b, total


def joined(b: Builder, total: Value) -> list[str]:
    simpler = without_dead_code(with_joined_parts(b.program([total])))
    np.testing.assert_array_equal(run(simpler, b.given())[0][0], b.arrays[total], strict=True)
    return [i.op for i in simpler.instructions]


def test_stretches_side_by_side_are_put_together() -> None:
    assert joined(*slices((4, 6), (2, 4), (0, 2))) == ["concat"]
    assert joined(*slices((0, 1), (1, 4), axis=0)) == ["concat"]
    assert joined(*slices((0, 2), (2, 5))) == ["concat", "place"]


def test_stretches_that_overlap_or_leave_gaps_are_added() -> None:
    assert joined(*slices((0, 3), (2, 6))) == ["place", "place", "add"]
    assert joined(*slices((0, 2), (3, 6))) == ["place", "place", "add"]
    assert joined(*slices((0, 2), (0, 2))) == ["place", "place", "add"]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_single_places_side_by_side_are_put_together(axis: int) -> None:
    shape = (3, 3, 3)
    whole = [slice(None)] * 3
    for order, left in (((2, 1, 0), ["concat"]), ((0, 1), ["concat", "place"]), ((0, 2), ["place", "place", "add"])):
        b = Builder()
        total: Any = None
        for number in order:
            value = b.input(np.random.default_rng(number).standard_normal((3, 3)))
            index = (*whole[:axis], number, *whole[axis + 1 :])
            part = b.make("place", value, shape, index if axis < 2 else (..., number))
            total = part if total is None else b.make("add", total, part)
        assert [op for op in joined(b, total) if op != "reshape"] == left


def test_single_places_beside_stretches_are_put_together() -> None:
    b = Builder()
    row, rows = b.input(np.ones(6)), b.input(np.full((3, 6), 2.0))
    parts = b.make("place", row, (4, 6), (0,)), b.make("place", rows, (4, 6), (slice(1, 4),))
    assert joined(b, b.make("add", *parts)) == ["reshape", "concat"]
    one = b.input(np.ones(()))
    corners = b.make("place", one, (4, 6), (0, 0)), b.make("place", one, (4, 6), (0, 1))
    assert joined(b, b.make("add", *corners)) == ["place", "place", "add"]


def test_stretches_of_different_axes_are_added() -> None:
    b = Builder()
    rows, columns = b.input(np.ones((2, 6))), b.input(np.ones((4, 4)))
    parts = b.make("place", rows, (4, 6), (slice(0, 2),)), b.make("place", columns, (4, 6), (..., slice(2, 6)))
    assert joined(b, b.make("add", *parts)) == ["place", "place", "add"]


def test_parts_are_put_together_at_once_along_one_axis() -> None:
    b = Builder()
    x, y = b.input(np.zeros((2, 2))), b.input(np.ones((2, 2)))
    rows = b.make("concat", (x, y), -2)
    assert joined(b, b.make("concat", (rows, rows), -2)) == ["concat"]
    assert joined(b, b.make("concat", (rows, rows), -1)) == ["concat", "concat"]


def test_which_indices_are_stretches() -> None:
    shape = (4, 6)
    assert slice_of((slice(None), slice(1, 3)), shape) == (1, 1, 3)
    assert slice_of((..., slice(-2, None)), shape) == (1, 4, 6)
    assert slice_of(slice(0, 9), shape) == (0, 0, 4)
    for index in (
        (0,),
        (slice(None, None, 2),),
        (slice(1, 2), slice(1, 2)),
        (None, slice(0, 1)),
        (slice(0, 1), Value((), int)),
    ):
        assert slice_of(index, shape) is None


def test_chosen_elements_alone_are_computed() -> None:
    b = Builder()
    random = np.random.default_rng(0)
    x, labels = b.input(random.standard_normal((8, 50))), b.input(random.integers(0, 50, (8, 1)))
    total = b.make("log", b.make("sum", b.make("exp", x), (-1,), True))
    chosen = b.make("take_along_axis", b.make("negative", b.make("subtract", x, total)), labels, -1)
    program = b.program([chosen])
    simpler = without_dead_code(with_joined_parts(program))
    assert [i.op for i in simpler.instructions] == ["exp", "sum", "log", "take_along_axis", "subtract", "negative"]
    np.testing.assert_array_equal(run(simpler, b.given())[0][0], b.arrays[chosen], strict=True)


def test_elements_that_depend_on_where_they_are_chosen_are_computed_first() -> None:
    b = Builder()
    random = np.random.default_rng(0)
    x, row = b.input(random.standard_normal((8, 50))), b.input(random.standard_normal(50))
    labels = b.input(random.integers(0, 50, (8, 1)))
    program = b.program([b.make("take_along_axis", b.make("subtract", x, row), labels, -1)])
    assert with_joined_parts(program) is program


def test_many_chosen_elements_are_chosen_afterwards() -> None:
    b = Builder()
    x, order = b.input(np.arange(6.0).reshape(2, 3)), b.input(np.array([[2, 1], [0, 0]]))
    program = b.program([b.make("take_along_axis", b.make("exp", x), order, -1)])
    assert with_joined_parts(program) is program


@pytest.mark.parametrize("bias", [(8,), (1, 8), (3, 1)])
def test_a_sum_that_is_read_in_slices_alone_is_added_in_slices(bias: tuple[int, ...]) -> None:
    b = Builder()
    random = np.random.default_rng(0)
    x, y, row = (b.input(random.standard_normal(shape)) for shape in ((3, 8), (3, 8), bias))
    total = b.make("add", x, b.make("add", b.make("exp", y), row))
    parts = [b.make("getitem", total, (..., slice(start, start + 4))) for start in (0, 4)]
    result = b.make("multiply", *parts)
    simpler = optimize(b.program([result]))
    sums = [i for i in simpler.instructions if i.op == "add"]
    assert [i.result.shape for i in sums] == [(3, 4)] * 4
    np.testing.assert_array_equal(run(simpler, b.given())[0][0], b.arrays[result], strict=True)


@pytest.mark.parametrize("case", ["needed whole", "broadcast", "an axis less"])
def test_other_sums_are_added_whole(case: str) -> None:
    b = Builder()
    random = np.random.default_rng(0)
    x, y = (b.input(random.standard_normal(shape)) for shape in ((3, 8), (8,) if case == "broadcast" else (3, 8)))
    total = b.make("add", x, y)
    index = (0,) if case == "an axis less" else (..., slice(0, 4))
    results = [b.make("getitem", total, index), *[b.make("exp", total)] * (case == "needed whole")]
    if case == "needed whole":
        results.append(b.make("getitem", total, (..., slice(4, 8))))
    simpler = with_joined_parts(b.program(results))
    assert [i.result.shape for i in simpler.instructions if i.op == "add"] == [(3, 8)]
