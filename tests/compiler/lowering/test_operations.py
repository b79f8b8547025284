"""Every kernel that lowering knows, alone: on plain arrays, views, broadcast ones, numbers and several dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .building import Building
from .checking import checked, kinds

RNG = np.random.default_rng(7)
UNARY = [
    "negative", "square", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "abs", "sign", "floor", "ceil",
    "round", "trunc", "sigmoid", "positive", "isfinite", "isnan", "isinf", "signbit", "logical_not",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "remainder", "floor_divide", "pow", "logaddexp", "hypot", "atan2",
    "copysign", "nextafter", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor",
]  # fmt: skip
INTEGER = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_left_shift", "bitwise_right_shift", "equal", "less", "remainder", "floor_divide", "logical_and",
]  # fmt: skip


def _normal(*shape: int, dtype: str = "float32") -> Any:
    return (RNG.normal(size=shape) * 2).astype(dtype)


def _special(dtype: str) -> Any:
    return np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3.0], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str, dtype: str) -> None:
    b = Building()
    x, y = b.input(_special(dtype)), b.input(_normal(3, 4, dtype=dtype))
    schedule = checked(b.program([getattr(b, op)(x), getattr(b, op)(b.matrix_transpose(y))]), b.given())
    assert set(kinds(schedule)) <= {"L"}


@pytest.mark.parametrize("op", BINARY)
def test_binary_with_broadcasting_and_numbers(op: str) -> None:
    b = Building()
    x, y, z = b.input(_normal(3, 4)), b.input(_normal(4)), b.input(_special("float32")[:4])
    f = getattr(b, op)
    outputs = [f(x, y), f(x, z), f(z, b.expand_dims(y, (1,))), f(x, 2), f(x, 0.5)]
    if op != "pow":
        outputs.append(f(1.5, x) if op not in ("logical_and", "logical_or", "logical_xor", "floor_divide") else f(x, x))
    schedule = checked(b.program(outputs), b.given())
    assert set(kinds(schedule)) <= {"L"}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint32"])
@pytest.mark.parametrize("op", INTEGER)
def test_integers(op: str, dtype: str) -> None:
    b = Building()
    x, y = b.input(np.arange(1, 7).astype(dtype)), b.input(np.array([3, 1, 2, 2, 1, 5]).astype(dtype))
    schedule = checked(b.program([getattr(b, op)(x, y), getattr(b, op)(x, 3)]), b.given())
    assert set(kinds(schedule)) == {"L"}


@pytest.mark.parametrize("pair", [("int32", "float32"), ("float32", "float64"), ("bool", "float32"), ("uint8", "int32"),
                                  ("int64", "uint64"), ("float16", "int8"),
                                  ("bool", "int8"), ("int8", "uint8")])  # fmt: skip
@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "less", "equal", "divide", "where"])
def test_promotion_is_numpys(op: str, pair: tuple[str, str]) -> None:
    b = Building()
    x, y = b.input(np.array([0, 1, 2, 1]).astype(pair[0])), b.input(np.array([1, 1, 0, 3]).astype(pair[1]))
    made = b.where(b.input(np.array([1, 0, 1, 0], bool)), x, y) if op == "where" else getattr(b, op)(x, y)
    checked(b.program([made]), b.given(), exact=True)


def test_truth_values() -> None:
    b = Building()
    x, y = b.input(np.array([0, 0, 1, 1], bool)), b.input(np.array([0, 1, 0, 1], bool))
    ops = [
        "add",
        "multiply",
        "maximum",
        "minimum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "logical_xor",
        "equal",
        "not_equal",
        "less",
    ]
    outputs = [getattr(b, op)(x, y) for op in ops] + [b.bitwise_invert(x), b.abs(x), b.square(x)]
    outputs += [
        b.where(b.input(np.array([0.0, 2.0, np.nan, -0.0])), x, y),
        b.add(x, True),
        b.add(x, 2),
        b.multiply(y, 1.5),
    ]
    schedule = checked(b.program(outputs), b.given(), exact=True)
    assert "H" not in kinds(schedule)


def test_numbers_that_a_dtype_cannot_hold_are_compared_as_numpy_does() -> None:
    b = Building()
    x = b.input(np.array([1, 200], "uint8"))
    checked(b.program([b.less(x, 300), b.greater(x, -1), b.equal(x, 1.5)]), b.given(), exact=True)


def test_conversions() -> None:
    b = Building()
    x = b.input(np.array([0.0, 1.5, -2.5, 100.0], "float32"))
    names = ["float64", "float16", "int32", "int8", "bool", "uint8", "complex64"]
    made = [b.astype(x if name != "uint8" else b.abs(x), np.dtype(name)) for name in names]
    checked(b.program([*made, b.astype(made[2], np.dtype("float32"))]), b.given(), exact=True)


def test_powers() -> None:
    b = Building()
    x, n = b.input(_normal(5)), b.input(np.arange(5))
    made = [
        b.pow(x, 2),
        b.pow(x, 3),
        b.pow(x, 1),
        b.pow(b.abs(x), 0.5),
        b.pow(n, 2),
        b.pow(n, n),
        b.pow(x, x),
    ]
    checked(b.program(made), b.given())


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool", "uint8"])
def test_reductions(op: str, dtype: str) -> None:
    b = Building()
    data = (RNG.normal(size=(3, 4, 5)) * (1 if dtype != "uint8" else 0) + 1).astype(dtype)
    x = b.input(data)
    outputs = []
    for axis in (None, (-1,), (-2,), (-3,), (-3, -2), (-2, -1), (-3, -1), (-3, -2, -1)):
        outputs += [getattr(b, op)(x, axis, False), getattr(b, op)(b.permute_dims(x, (2, 0, 1)), axis, True)]
    schedule = checked(b.program(outputs), b.given())
    assert set(kinds(schedule)) == {"L"}


def test_maxima_of_nan() -> None:
    b = Building()
    x = b.input(np.array([[1.0, np.nan, 2.0], [3.0, 1.0, -np.inf]], "float32"))
    outputs = [b.max(x, (-1,), False), b.min(x, (-2,), True), b.max(x, None, False)]
    checked(b.program(outputs), b.given(), exact=True)


def test_reductions_over_axes_of_length_one_and_zero() -> None:
    b = Building()
    x, none = b.input(_normal(3, 1, 2)), b.input(np.zeros((0, 3), "float32"))
    outputs = [b.sum(x, (-2,), False), b.max(x, (-2,), True), b.any(x, (-2,), False), b.sum(none, (-2,), False)]
    outputs += [
        b.prod(none, None, False),
        b.all(none, (-2,), True),
        b.sum(none, (-1,), False),
        b.count_nonzero(none, (-2,)),
    ]
    checked(b.program(outputs), b.given(), exact=True)


MOVES: dict[str, Any] = {
    "reshape": lambda b, x: [
        b.reshape(x, (4, 6)), b.reshape(b.permute_dims(x, (1, 2, 0)), (12, 2)),
        b.reshape(b.getitem(x, (Ellipsis, slice(0, 3))), (9, 2)),
        b.reshape(b.getitem(x, (Ellipsis, slice(0, 2))), (6, 2)),
    ],
    "permute": lambda b, x: [b.permute_dims(x, (2, 0, 1)), b.matrix_transpose(x)],
    "expand and squeeze": lambda b, x: [b.expand_dims(x, (1, 4)), b.squeeze(b.expand_dims(x, (0, 2)), (0, 2))],
    "broadcast": lambda b, x: [
        b.broadcast_to(x, (2, 2, 3, 4)), b.broadcast_to(b.getitem(x, (slice(0, 1),)), (5, 3, 4)),
    ],
    "flip": lambda b, x: [b.flip(x, (-1,)), b.flip(x, (-3, -1)), b.add(b.flip(x, (-2,)), x)],
    "roll": lambda b, x: [b.roll(x, (1,), (-1,)), b.roll(x, (-5, 2), (-2, -1)), b.roll(x, (3, -1), (-2, -2))],
    "repeat": lambda b, x: [b.repeat(x, 3, -1), b.repeat(x, 2, -3)],
    "tile": lambda b, x: [b.tile(x, (2, 1, 3)), b.tile(x, (2,)), b.tile(x, (2, 1, 1, 2))],
    "pad": lambda b, x: [b.pad(x, ((1, 2), (0, 0), (2, 0)), 0.0), b.pad(x, ((0, 1), (1, 1), (1, 1)), -np.inf)],
    "concat": lambda b, x: [b.concat((x, b.exp(x), x), -2), b.concat((x, b.reshape(x, (2, 2, 6))), None)],
    "stack": lambda b, x: [b.stack((x, b.exp(x)), 0), b.stack((x, x, x), -1), b.stack((x, x), 2)],
    "unstack": lambda b, x: [*b.unstack(x, 1), *b.unstack(x, -1)],
    "tril": lambda b, x: [b.tril(x, 0), b.triu(x, 0), b.tril(x, -1), b.triu(b.matrix_transpose(x), 1)],
    "diagonal": lambda b, x: [b.diagonal(x, 0), b.diagonal(x, 1), b.diagonal(x, -2), b.diagonal(x, 9)],
    "place diagonal": lambda b, x: [b.place_diagonal(x, (2, 3, 4, 4), 0), b.place_diagonal(x, (2, 3, 6, 6), -2)],
    "getitem": lambda b, x: [
        b.getitem(x, (0, slice(None, None, -1))), b.getitem(x, (Ellipsis, -1)),
        b.getitem(x, (None, slice(1, 2), None, 2)),
        b.getitem(x, 1), b.getitem(x, (slice(None), slice(3, 0, -2), slice(1, None, 2))), b.getitem(x, (slice(5, 9),)),
    ],
    "setitem": lambda b, x: [
        b.setitem(x, b.getitem(x, (0,)), (slice(None),)), b.setitem(x, 7.0, (0, slice(None, None, 2))),
        b.setitem(x, b.reshape(b.getitem(x, (0, 0, slice(0, 3))), (1, 1, 3)), (1, 2, slice(1, None))),
        b.setitem(x, 3, (slice(9, None),)),
    ],
    "place": lambda b, x: [
        b.place(x, (2, 5, 4), (slice(None), slice(1, 4))), b.place(x, (4, 3, 4), (slice(None, None, 2),)),
        b.place(b.getitem(x, (0,)), (5, 3, 4), (3,)), b.place(x, (2, 3, 4), (Ellipsis,)),
    ],
    "index add": lambda b, x: [
        b.index_add(x, b.getitem(x, (0,)), (slice(0, 1),)), b.index_add(x, x, (Ellipsis,)),
        b.index_add(x, b.exp(b.getitem(x, (slice(None), slice(0, 2)))), (slice(None), slice(1, 3))),
    ],
    "shift": lambda b, x: [b.shift(x, (-1,), 1), b.shift(x, (-2,), -2), b.shift(x, (-1,), 0)],
    "creation": lambda b, x: [
        b.zeros((2, 3), np.dtype("int32"), x), b.full((4,), 2.5, np.dtype("float32"), x),
        b.zeros_like(x), b.ones_like(x),
        b.arange(0, 7, 1, np.dtype("int64"), x), b.arange(2, 9, 3, np.dtype("int32"), x),
        b.arange(0.5, 4, 0.7, np.dtype("float32"), x), b.arange(5, 0, -2, np.dtype("int64"), x),
        b.full((), 3, np.dtype("bool"), x),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128"])
@pytest.mark.parametrize("move", MOVES)
def test_movement(move: str, dtype: str) -> None:
    b = Building()
    x = b.input(_normal(2, 3, 4, dtype=dtype))
    if dtype == "int16" and move in ("concat", "stack", "index add"):
        b.exp = b.negative
    if dtype == "int16" and move == "pad":
        outputs = [b.pad(x, ((1, 2), (0, 0), (2, 0)), 5)]
    else:
        outputs = MOVES[move](b, x)
    schedule = checked(b.program(outputs), b.given(), exact=dtype != "float32" or move not in ("concat", "stack"))
    if dtype != "complex128":
        assert "H" not in kinds(schedule)


def test_what_is_moved_can_be_computed_with() -> None:
    for move, make in MOVES.items():
        b = Building()
        x = b.input(_normal(2, 3, 4))
        outputs = [
            b.sum(b.multiply(y, y), (-1,), False) if y.ndim else b.add(y, 1)
            for y in make(b, b.exp(x))
            if y.dtype != bool
        ]
        assert "H" not in kinds(checked(b.program(outputs), b.given())), move


@pytest.mark.parametrize("shapes", [
    ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
    ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5)), ((2, 1, 4), (4, 3)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "complex64"])
def test_matrix_products(shapes: Any, dtype: str) -> None:
    b = Building()
    x, y = (b.input(_normal(*shape, dtype=dtype)) for shape in shapes)
    schedule = checked(b.program([b.matmul(x, y)]), b.given())
    assert dtype in ("int32", "complex64") or "H" not in kinds(schedule)


def test_products_of_views() -> None:
    b = Building()
    x, y = b.input(_normal(4, 6)), b.input(_normal(2, 6, 4))
    strided = b.getitem(x, (slice(None), slice(None, None, 2)))
    outputs = [
        b.matmul(b.matrix_transpose(x), x), b.matmul(y, b.matrix_transpose(y)), b.matmul(b.flip(x, (-1,)), y),
        b.matmul(strided, b.matrix_transpose(strided)), b.matmul(b.broadcast_to(b.getitem(x, (0,)), (5, 6)), y),
        b.matmul(b.ones_like(x), y), b.matmul(b.permute_dims(y, (1, 0, 2)), b.getitem(x, (slice(None), slice(0, 3)))),
        b.matmul(x, b.astype(b.matrix_transpose(x), np.dtype("float64"))),
    ]  # fmt: skip
    schedule = checked(b.program(outputs), b.given())
    assert "H" not in kinds(schedule)


def test_what_has_no_native_form_runs_on_the_host() -> None:
    b = Building()
    x = b.input(_normal(4, 4))
    outputs = [b.sort(b.exp(x), (-1,), False, True), b.add(b.inv(x), 1.0), b.gammaln(b.abs(x))]
    assert kinds(checked(b.program(outputs), b.given())).count("H") == 3


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2)])
def test_arrays_without_elements(shape: tuple[int, ...]) -> None:
    b = Building()
    x = b.input(np.zeros(shape, "float32"))
    y = b.add(b.exp(x), x)
    outputs = [y, b.sum(y, None, False), b.sum(y, (-1,), True), b.reshape(y, (0, 7)), b.concat((y, x), -1), x]
    outputs += [
        b.sort(y, (-1,), False, True),
        b.concat((b.reshape(y, (0,)), b.full((2,), 1.0, np.dtype("float32"), x)), 0),
    ]
    checked(b.program(outputs, [(x, y)]), b.given(), exact=True)


def test_large_integers_are_compared_exactly() -> None:
    b = Building()
    x = b.input(np.array([-1, 2**53 + 1, 5], "int64"))
    y = b.input(np.array([2**63, 2**53, 5], "uint64"))
    checked(b.program([b.less(x, y), b.equal(x, y), b.greater(x, y)]), b.given(), exact=True)


def test_the_sign_of_a_zero_among_numbers_is_kept() -> None:
    b = Building()
    x = b.input(_normal(5))
    outputs = [b.copysign(x, 0.0), b.copysign(x, -0.0), b.divide(1.0, b.multiply(b.abs(x), -0.0))]
    checked(b.program(outputs), b.given(), exact=True)


def test_positions_over_several_axes() -> None:
    b = Building()
    x = b.input(_normal(4, 3))
    grid = b.reshape(b.arange(0, 12, 1, np.dtype("int64"), x), (3, 4))
    outputs = [b.add(b.matrix_transpose(grid), x), b.add(b.getitem(b.flip(grid, (-2,)), (slice(None), slice(1, 4))), 0)]
    assert kinds(checked(b.program(outputs), b.given())) == "LL"


def test_bfloat16() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    b = Building()
    x, y = b.input(_normal(4, 6).astype(bfloat16)), b.input(_normal(6).astype(bfloat16))
    outputs = [
        b.add(x, y),
        b.tanh(x),
        b.greater(x, y),
        b.where(b.greater(x, y), x, y),
        b.astype(x, np.dtype("float32")),
    ]
    outputs += [
        b.sum(x, (-1,), False),
        b.sum(x, (-2,), True),
        b.sum(x, None, False),
        b.max(x, (-1,), True),
        b.matmul(x, y),
    ]
    schedule = checked(b.program(outputs, [(x, b.multiply(x, x))]), b.given())
    assert "H" not in kinds(schedule)
