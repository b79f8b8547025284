"""Simpler arithmetic gives the same numbers, to the last bit but for the sign of zeros, for what is special, too."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest

from pullback.compiler.passes.algebra import simplified
from pullback.compiler.passes.dead_code import without_dead_code
from pullback.compiler.program import Program, Value
from tests.compiler.meaning import run

from ..programs import Builder

Body = Callable[..., Value]


def special(dtype: str) -> Any:
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return np.array([True, False])
    if dt.kind in "iu":
        limits = np.iinfo(dt)
        return np.array([0, 1, 2, 3, 7, limits.min, limits.max, limits.max - 1], dt)
    limits = np.finfo(dt)
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.1, -3.0, 7.0]
    extremes = [
        limits.max,
        limits.min,
        limits.smallest_normal,
        limits.smallest_subnormal,
        -limits.smallest_subnormal,
        limits.eps,
    ]
    return np.array([*numbers, *map(float, extremes)], dt)


def before_and_after(body: Body, dtype: str) -> tuple[Program, Program, list[Any]]:
    """The program of `body(make, x, y, c)` on all pairs of special numbers and on conditions, and it simplified."""
    b = Builder()
    numbers = special(dtype)
    x, y = (np.ascontiguousarray(part) for part in np.meshgrid(numbers, numbers, indexing="ij"))
    c = np.arange(x.size).reshape(x.shape) % 3 == 0
    value = body(b.make, b.input(x), b.input(y), b.input(c))
    program = b.program([value])
    return program, without_dead_code(simplified(program)), b.given()


def operations(program: Program) -> str:
    return " ".join(instruction.op for instruction in program.instructions)


def assert_identical(program: Program, other: Program, inputs: list[Any]) -> None:
    (expected,), _ = run(program, inputs)
    (got,), _ = run(other, inputs)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected, strict=True)


ALL = "float64 float32 float16 int32 uint8"
FLOATS = "float64 float32 float16"

#: What is computed, what is left of it, and for which dtypes.
REWRITES: dict[str, tuple[Body, str, str]] = {
    "x + 0": (lambda m, x, y, c: m("add", x, 0), "", ALL),
    "x + 0.0": (lambda m, x, y, c: m("add", x, 0.0), "", FLOATS),
    "x + -0.0": (lambda m, x, y, c: m("add", x, -0.0), "", FLOATS),
    "zeros + x": (lambda m, x, y, c: m("add", m("zeros_like", x), x), "", ALL),
    "x - 0": (lambda m, x, y, c: m("subtract", x, 0), "", ALL),
    "-0.0 - x": (lambda m, x, y, c: m("subtract", -0.0, x), "negative", FLOATS),
    "0 - x, whole": (lambda m, x, y, c: m("subtract", 0, x), "negative", "int32"),
    "x * 1": (lambda m, x, y, c: m("multiply", x, 1), "", ALL),
    "ones * x": (lambda m, x, y, c: m("multiply", m("ones_like", x), x), "", ALL),
    "x * -1": (lambda m, x, y, c: m("multiply", x, -1), "negative", FLOATS),
    "-1.0 * x": (lambda m, x, y, c: m("multiply", -1.0, x), "negative", FLOATS),
    "x * x": (lambda m, x, y, c: m("multiply", x, x), "square", ALL),
    "(-x) * (-y)": (lambda m, x, y, c: m("multiply", m("negative", x), m("negative", y)), "multiply", ALL),
    "(-x) * 0.1": (lambda m, x, y, c: m("multiply", m("negative", x), 0.1), "multiply", FLOATS),
    "-(x * 3.0)": (lambda m, x, y, c: m("negative", m("multiply", x, 3.0)), "multiply", FLOATS),
    "-(x / 3.0)": (lambda m, x, y, c: m("negative", m("divide", x, 3.0)), "divide", FLOATS),
    "(-x) / 3.0": (lambda m, x, y, c: m("divide", m("negative", x), 3.0), "divide", FLOATS),
    "x / 1": (lambda m, x, y, c: m("divide", x, 1), "", FLOATS),
    "whole / 1": (lambda m, x, y, c: m("divide", x, 1), "astype", "int32 uint8"),
    "x / 8": (lambda m, x, y, c: m("divide", x, 8), "multiply", FLOATS),
    "x / -0.25": (lambda m, x, y, c: m("divide", x, -0.25), "multiply", FLOATS),
    "x / -1.0": (lambda m, x, y, c: m("divide", x, -1.0), "negative", FLOATS),
    "x + (-y)": (lambda m, x, y, c: m("add", x, m("negative", y)), "subtract", ALL),
    "(-x) + y": (lambda m, x, y, c: m("add", m("negative", x), y), "subtract", ALL),
    "x - (-y)": (lambda m, x, y, c: m("subtract", x, m("negative", y)), "add", ALL),
    "-(-x)": (lambda m, x, y, c: m("negative", m("negative", x)), "", ALL),
    "+x": (lambda m, x, y, c: m("positive", x), "", ALL),
    "|-x|": (lambda m, x, y, c: m("abs", m("negative", x)), "abs", FLOATS),
    "||x||": (lambda m, x, y, c: m("abs", m("abs", x)), "abs", FLOATS),
    "(-x)**2": (lambda m, x, y, c: m("square", m("negative", x)), "square", FLOATS),
    "|x**2|": (lambda m, x, y, c: m("abs", m("square", x)), "square", FLOATS),
    "x**0": (lambda m, x, y, c: m("pow", x, 0), "full", ALL),
    "x**1": (lambda m, x, y, c: m("pow", x, 1), "", ALL),
    "x**2": (lambda m, x, y, c: m("pow", x, 2), "square", ALL),
    "x**3": (lambda m, x, y, c: m("pow", x, 3), "square multiply", FLOATS),
    "floor of whole": (lambda m, x, y, c: m("floor", x), "", "int32 uint8"),
    "isfinite of whole": (lambda m, x, y, c: m("isfinite", x), "full", "int32 uint8"),
    "isnan of whole": (lambda m, x, y, c: m("isnan", x), "full", "int32 bool"),
    "max(x, x)": (lambda m, x, y, c: m("maximum", x, x), "", ALL),
    "max(x, -inf)": (lambda m, x, y, c: m("maximum", x, -math.inf), "", FLOATS),
    "min(inf, x)": (lambda m, x, y, c: m("minimum", math.inf, x), "", FLOATS),
    "where(c, x, x)": (lambda m, x, y, c: m("where", c, x, x), "", ALL),
    "where(all, x, y)": (lambda m, x, y, c: m("where", m("ones_like", c), x, y), "", ALL),
    "where(none, x, y)": (lambda m, x, y, c: m("where", m("zeros_like", c), x, y), "", ALL),
    "where(not c, x, y)": (lambda m, x, y, c: m("where", m("logical_not", c), x, y), "where", ALL),
    "where(c, where(c, x, 1), y)": (
        lambda m, x, y, c: m("where", c, m("where", c, x, m("ones_like", x)), y), "where", ALL,
    ),
    "where(c, x, where(c, 1, y))": (
        lambda m, x, y, c: m("where", c, x, m("where", c, m("ones_like", x), y)), "where", ALL,
    ),
    "where(c, ones, zeros)": (
        lambda m, x, y, c: m("where", c, m("ones_like", x), m("zeros_like", x)), "astype", ALL,
    ),
    "where(c, zeros, ones)": (
        lambda m, x, y, c: m("where", c, m("zeros_like", x), m("ones_like", x)), "logical_not astype", ALL,
    ),
    "not not c": (lambda m, x, y, c: m("logical_not", m("logical_not", c)), "", "float32"),
    "not x == y": (lambda m, x, y, c: m("logical_not", m("equal", x, y)), "not_equal", ALL),
    "not x < y, whole": (lambda m, x, y, c: m("logical_not", m("less", x, y)), "greater_equal", "int32 uint8"),
    "x and True": (lambda m, x, y, c: m("logical_and", x, True), "astype", ALL),
    "c or False": (lambda m, x, y, c: m("logical_or", False, c), "", "float32"),
    "x and False": (lambda m, x, y, c: m("logical_and", x, False), "full", ALL),
    "x or True": (lambda m, x, y, c: m("logical_or", x, True), "full", ALL),
    "x xor True": (lambda m, x, y, c: m("logical_xor", x, True), "astype logical_not", ALL),
    "c & c": (lambda m, x, y, c: m("bitwise_and", x, x), "", "int32 uint8 bool"),
    "~~x": (lambda m, x, y, c: m("bitwise_invert", m("bitwise_invert", x)), "", "int32 uint8 bool"),
    "half, to single and back": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("float32")), x.dtype), "", "float16 float32",
    ),
    "whole, to int64 and on": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("int64")), np.dtype("int8")), "astype", "int32 uint8",
    ),
    "to its own dtype": (lambda m, x, y, c: m("astype", x, x.dtype), "", ALL),
    "widened": (lambda m, x, y, c: m("widened", x), "", "float32 float64 int32"),
    "widened half": (lambda m, x, y, c: m("widened", x), "astype", "float16"),
    "numbers alone": (
        lambda m, x, y, c: m("exp", m("add", m("ones_like", x), m("full", x.shape, 2, x.dtype, x))), "full", FLOATS,
    ),
}  # fmt: skip
CASES = [(name, dtype) for name, (_, _, dtypes) in REWRITES.items() for dtype in dtypes.split()]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_simpler_and_the_same_to_the_last_bit(name: str, dtype: str) -> None:
    body, left, _ = REWRITES[name]
    program, simpler, inputs = before_and_after(body, dtype)
    assert operations(simpler) == left
    assert_identical(program, simpler, inputs)


@pytest.mark.parametrize("exponent", [-1, 2])
def test_powers_that_are_products_are_rounded_better(exponent: int) -> None:
    def body(m: Any, x: Value, y: Value, c: Value) -> Value:
        return m("pow", x, m("full", x.shape, exponent, x.dtype, x))

    program, simpler, inputs = before_and_after(body, "float32")
    assert operations(simpler) == {-1: "reciprocal", 2: "square"}[exponent]
    (expected,), _ = run(program, inputs)
    np.testing.assert_allclose(run(simpler, inputs)[0][0], expected, rtol=2e-7, atol=0)


#: What must stay: it would be another number for infinities, NaN, zeros, or numbers that are rounded or wrap around.
KEPT: dict[str, tuple[Body, str, str]] = {
    "x * 0": (lambda m, x, y, c: m("multiply", x, 0.0), "multiply", FLOATS),
    "x * zeros": (lambda m, x, y, c: m("multiply", x, m("zeros_like", x)), "multiply", FLOATS),
    "x - x": (lambda m, x, y, c: m("subtract", x, x), "subtract", FLOATS),
    "x / x": (lambda m, x, y, c: m("divide", x, x), "divide", FLOATS),
    "0.0 - x": (lambda m, x, y, c: m("subtract", 0.0, x), "subtract", FLOATS),
    "x / 3": (lambda m, x, y, c: m("divide", x, 3.0), "divide", FLOATS),
    "x / 0": (lambda m, x, y, c: m("divide", x, 0.0), "divide", FLOATS),
    "x / inf": (lambda m, x, y, c: m("divide", x, math.inf), "divide", FLOATS),
    "x / 2**-149": (lambda m, x, y, c: m("divide", x, 2.0**-149), "divide", "float32"),
    "x / 2**127": (lambda m, x, y, c: m("divide", x, 2.0**127), "divide", "float32"),
    "x ** 0.5": (lambda m, x, y, c: m("pow", x, 0.5), "pow", FLOATS),
    "x ** -2": (lambda m, x, y, c: m("pow", x, -2), "pow", FLOATS),
    "sqrt(x ** 2)": (lambda m, x, y, c: m("sqrt", m("square", x)), "square sqrt", FLOATS),
    "-(x - y)": (lambda m, x, y, c: m("negative", m("subtract", x, y)), "subtract negative", FLOATS),
    "(x * 3) * (1/3)": (
        lambda m, x, y, c: m("multiply", m("multiply", x, 3.0), 1 / 3), "multiply multiply", FLOATS,
    ),
    "(x + 1) - 1": (lambda m, x, y, c: m("subtract", m("add", x, 1.0), 1.0), "add subtract", FLOATS),
    "x == x": (lambda m, x, y, c: m("equal", x, x), "equal", FLOATS),
    "not x < y": (lambda m, x, y, c: m("logical_not", m("less", x, y)), "less logical_not", FLOATS),
    "max(x, inf)": (lambda m, x, y, c: m("maximum", x, math.inf), "maximum", FLOATS),
    "where(c, 1, -0.0)": (
        lambda m, x, y, c: m("where", c, m("ones_like", x), m("full", x.shape, -0.0, x.dtype, x)), "full where", FLOATS,
    ),
    "not not x": (
        lambda m, x, y, c: m("logical_not", m("logical_not", x)), "logical_not logical_not", "float32 int32",
    ),
    "to float16 and back": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("float16")), x.dtype),
        "astype astype", "float32 float64",
    ),
    "to int8 and back": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("int8")), x.dtype), "astype astype", "int32 uint8",
    ),
    "int64 to float64 and back": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("float64")), x.dtype), "astype astype", "int64",
    ),
    "int64 to float64 to float32": (
        lambda m, x, y, c: m("astype", m("astype", x, np.dtype("float64")), np.dtype("float32")),
        "astype astype", "int64",
    ),
    "(-x) * 3, whole": (lambda m, x, y, c: m("multiply", m("negative", x), 3), "negative multiply", "int32 uint8"),
    "ones and twos": (
        lambda m, x, y, c: m("concat", (m("ones_like", x), m("full", x.shape, 2.0, x.dtype, x)), 0),
        "full full concat", FLOATS,
    ),
    "ones, read at positions": (
        lambda m, x, y, c: m("getitem", m("ones_like", x), (m("astype", c, np.dtype("int64")),)),
        "full astype getitem", "float32",
    ),
    "uint8: x + (-y) in int32": (
        lambda m, x, y, c: m("add", m("astype", x, np.dtype("int32")), m("negative", y)),
        "astype negative add", "uint8",
    ),
    "complex x * 1": (
        lambda m, x, y, c: m("multiply", m("astype", x, np.dtype("complex64")), 1), "astype multiply", "float32",
    ),
}  # fmt: skip


KEPT_CASES = [(name, dtype) for name, (_, _, dtypes) in KEPT.items() for dtype in dtypes.split()]


@pytest.mark.parametrize(("name", "dtype"), KEPT_CASES)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_has_another_meaning_stays(name: str, dtype: str) -> None:
    body, left, _ = KEPT[name]
    program, simpler, inputs = before_and_after(body, dtype)
    assert operations(simpler) == left
    assert_identical(program, simpler, inputs)


def test_what_is_wanted_for_the_sign_of_zeros_keeps_it_where_nothing_is_added() -> None:
    """The one exception is x + 0.0, and no other rewrite makes use of it."""
    for name, (body, _, dtypes) in REWRITES.items():
        if "0" in name.split() or "0.0" in name.split() or "zeros +" in name or "float32" not in dtypes.split():
            continue
        program, simpler, inputs = before_and_after(body, "float32")
        (expected,), _ = run(program, inputs)
        (got,), _ = run(simpler, inputs)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number], err_msg=name)


# -- operands ----------------------------------------------------------------------------------------


def test_arrays_of_one_number_become_numbers_where_the_dtype_stays() -> None:
    b = Builder()
    x = b.input(np.arange(6, dtype=np.float32).reshape(2, 3))
    whole = b.input(np.arange(3, dtype=np.int8))
    single = b.make("full", (2, 3), 0.1, np.dtype("float32"), x)
    double = b.make("full", (2, 3), 0.1, np.dtype("float64"), x)
    outputs = [
        b.make("multiply", x, single),  # a number
        b.make("multiply", x, double),  # float64 makes the result float64: stays an array, but of no axes
        b.make("add", whole, b.make("full", (3,), 3, np.dtype("int64"), x)),
        b.make("where", b.make("greater", x, 1), single, b.make("zeros_like", x)),
    ]
    program = b.program(outputs)
    simpler = without_dead_code(simplified(program))
    by_result = {instruction.result: instruction for instruction in simpler.instructions}
    first, second, third, fourth = (by_result[value] for value in simpler.outputs)
    assert first.args == (x, float(np.float32(0.1)))
    assert [value.shape for value in second.values()] == [(2, 3), ()]
    assert [value.shape for value in third.values()] == [(3,), ()] and third.result.dtype == np.int64
    assert fourth.args[2] == 0.0 and fourth.args[1].shape == ()
    for got, expected in zip(run(simpler, b.given())[0], run(program, b.given())[0]):
        np.testing.assert_array_equal(got, expected, strict=True)


def test_operands_are_not_broadcast_before_they_are_used() -> None:
    b = Builder()
    x, row = b.input(np.arange(6.0).reshape(2, 3)), b.input(np.arange(3.0))
    product = b.make("multiply", x, b.make("broadcast_to", row, (2, 3)))
    of_row = b.make("exp", b.make("broadcast_to", row, (2, 3)))
    simpler = without_dead_code(simplified(b.program([product, of_row])))
    assert operations(simpler) == "multiply exp broadcast_to"
    assert [instruction.result.shape for instruction in simpler.instructions] == [(2, 3), (3,), (2, 3)]
    for got, expected in zip(run(simpler, b.given())[0], (b.arrays[product], b.arrays[of_row])):
        np.testing.assert_array_equal(got, expected, strict=True)


def test_axes_that_broadcasting_puts_in_are_not_put_in_before() -> None:
    b = Builder()
    x, row = b.input(np.arange(6.0).reshape(2, 3)), b.input(np.arange(3.0))
    wide = b.make("add", x, b.make("reshape", row, (1, 3)))
    narrow = b.make("multiply", row, b.make("reshape", row, (1, 3)))  # here the result has the axis from it
    simpler = without_dead_code(simplified(b.program([wide, narrow])))
    assert operations(simpler) == "add reshape multiply"
    for got, expected in zip(run(simpler, b.given())[0], (b.arrays[wide], b.arrays[narrow])):
        np.testing.assert_array_equal(got, expected, strict=True)


def test_next_to_bfloat16_numbers_stay_arrays() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    b = Builder()
    x = b.input(np.arange(6).astype(ml_dtypes.bfloat16))
    program = b.program([b.make("multiply", x, b.make("full", (6,), 0.5, x.dtype, x))])
    simpler = simplified(program)
    assert simpler.instructions[-1].args[1].shape == ()
    assert_identical(program, simpler, b.given())
