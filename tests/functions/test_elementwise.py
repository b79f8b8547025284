"""Elementwise functions and operators: values, dtypes, special values, refusals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import pullback as pb

NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
    "atan2": "arctan2", "pow": "power", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}  # fmt: skip
UNARY = [
    "abs",
    "acos",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log1p",
    "negative",
    "positive",
    "real",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "trunc",
]
BINARY = [
    "add",
    "atan2",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "remainder",
    "subtract",
]


def of_numpy(name: str) -> Any:
    return getattr(np, NUMPY_NAMES.get(name, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_agree_with_numpy(name: str, dtype: Any) -> None:
    x = np.linspace(-0.9, 0.9, 7, dtype=dtype)
    found, expected = getattr(pb, name)(pb.asarray(x)), of_numpy(name)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", ["acosh", "log", "log2", "log10", "sqrt", "reciprocal"])
def test_functions_of_positive_numbers_agree_with_numpy(name: str) -> None:
    x = np.linspace(1.1, 3, 5)
    np.testing.assert_array_equal(getattr(pb, name)(pb.asarray(x)).numpy(), of_numpy(name)(x))


@pytest.mark.parametrize("name", [*BINARY, "pow"])
def test_binary_functions_agree_with_numpy_and_broadcast(name: str) -> None:
    x, y = np.linspace(0.5, 2, 3), np.linspace(-1.3, 1.5, 4)[:, None]
    np.testing.assert_array_equal(getattr(pb, name)(pb.asarray(x), pb.asarray(y)).numpy(), of_numpy(name)(x, y))
    np.testing.assert_array_equal(getattr(pb, name)(pb.asarray(x), 1.25).numpy(), of_numpy(name)(x, 1.25))
    np.testing.assert_array_equal(getattr(pb, name)(1.25, pb.asarray(y)).numpy(), of_numpy(name)(1.25, y))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_integers_leaves_them_integers(name: str) -> None:
    assert getattr(pb, name)(pb.asarray([1, 2], dtype=pb.int8)).dtype == pb.int8


def test_powers_with_numbers_keep_the_rules_of_promotion() -> None:
    assert (pb.asarray([2, 3]) ** 2).dtype == pb.int64
    assert (pb.asarray([2, 3]) ** 2.0).dtype == pb.float64
    assert (pb.asarray([2.0, 3.0]) ** 3).dtype == pb.float32
    np.testing.assert_array_equal((pb.asarray([2, 3]) ** 3).numpy(), [8, 27])
    np.testing.assert_allclose((pb.asarray([2.0, -3.0]) ** 3).numpy(), [8, -27])


def test_special_values_are_those_of_the_standard() -> None:
    inf = pb.inf
    quotient = pb.floor_divide(pb.asarray([inf, -inf, 1.0, -1.0, inf]), pb.asarray([2.0, 2.0, -inf, inf, inf])).numpy()
    np.testing.assert_array_equal(quotient, [inf, -inf, -0.0, -0.0, np.nan])
    assert np.signbit(quotient[2:4]).all()
    tangent = pb.tanh(pb.asarray([complex(inf, 2), complex(-inf, -2)])).numpy()
    np.testing.assert_array_equal(tangent, [1, -1])
    np.testing.assert_array_equal(np.signbit(tangent.imag), [False, True])
    assert pb.expm1(pb.asarray(complex(-inf, inf))).numpy().real == -1
    assert not np.signbit(pb.expm1(pb.asarray(complex(-0.0, 0.0))).numpy().real)


def test_lerp_is_exact_at_both_ends() -> None:
    x, y = np.array([0.1, 1e16]), np.array([0.3, 1.0])
    for zero, one in ((0.0, 1.0), (np.zeros(2), np.ones(2))):
        np.testing.assert_array_equal(pb.lerp(x, y, zero), x)
        np.testing.assert_array_equal(pb.lerp(x, y, one), y)
    assert pb.lerp(pb.ones(2, dtype=pb.float16), 3.0, 0.5).dtype == pb.float16
    assert pb.lerp(1.0, 3.0, 0.5).item() == 2


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_rsqrt() -> None:
    np.testing.assert_array_equal(pb.rsqrt(np.array([4.0, np.inf, 0.0, -1.0])), [0.5, 0, np.inf, np.nan])
    assert pb.rsqrt(np.array([4])).item() == 0.5
    assert pb.rsqrt(pb.ones(2, dtype=pb.float16)).dtype == pb.float16


EDGES = np.array([np.inf, -np.inf, np.nan, 0.0, 1.0, 1e-9, 1 + 1e-6, 1e300, -1e300])


@pytest.mark.parametrize("equal_nan", [False, True])
def test_what_is_close_is_numpys(equal_nan: bool) -> None:
    x, y = EDGES[:, None], EDGES
    for options in ({}, {"rtol": 0.0}, {"atol": 0.0}, {"rtol": 0.5, "atol": 2.0}):
        with np.errstate(all="ignore"):
            expected = np.isclose(x, y, equal_nan=equal_nan, **options)
        with np.errstate(all="raise", over="ignore"):
            found = pb.isclose(x, y, equal_nan=equal_nan, **options)
        np.testing.assert_array_equal(found, expected)
        assert bool(pb.allclose(x, y, equal_nan=equal_nan, **options)) is bool(expected.all())
        assert pb.allclose(EDGES[:2], EDGES[:2], **options)
    np.testing.assert_array_equal(pb.isclose(x + 1j, y + 1j), np.isclose(x + 1j, y + 1j))
    assert pb.isclose(np.array([0, 5], np.uint8), np.array([255, 5], np.uint8)).tolist() == [False, True]
    assert pb.allclose(np.zeros(0), np.zeros(0)).item() is True
    x = pb.tensor([1.0], requires_grad=True)
    assert pb.allclose(x, x * (1 + 1e-7))
    assert pb.compile(pb.allclose)(pb.asarray(EDGES[3:]), pb.asarray(EDGES[3:])).item() is True


def test_clip() -> None:
    x = np.array([-2, -1, 0, 1, 2], np.int8)
    np.testing.assert_array_equal(pb.clip(pb.asarray(x), -1, 1).numpy(), np.clip(x, -1, 1))
    np.testing.assert_array_equal(pb.clip(pb.asarray(x), -1000, 1000).numpy(), x)
    np.testing.assert_array_equal(pb.clip(pb.asarray(x), max=0).numpy(), np.minimum(x, 0))
    assert pb.clip(pb.asarray(x)).dtype == pb.int8
    with pytest.raises(pb.DtypeError, match="not an integer"):
        pb.clip(pb.asarray(x), 0.5)
    with pytest.raises(pb.DtypeError, match="no order"):
        pb.clip(pb.asarray([1j]), 0, 1)


# -- operators -----------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("function", ARITHMETIC + COMPARISONS)
def test_operators_agree_with_numpy(function: Any) -> None:
    x, y = np.array([1.5, 2.0, 3.5]), np.array([2.0, 2.0, 0.5])
    a, b = pb.asarray(x), pb.asarray(y)
    for found, expected in (
        (function(a, b), function(x, y)),
        (function(a, 2.0), function(x, 2.0)),
        (function(2, b), function(2, y)),
        (function(a, y), function(x, y)),
    ):
        assert isinstance(found, pb.Tensor)
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("function", BITS)
def test_bitwise_operators_agree_with_numpy(function: Any) -> None:
    x = np.array([6, 5, 1])
    np.testing.assert_array_equal(function(pb.asarray(x), 3).numpy(), function(x, 3))
    np.testing.assert_array_equal(function(3, pb.asarray(x)).numpy(), function(3, x))


def test_unary_operators() -> None:
    x = pb.asarray([1.0, -2.0])
    np.testing.assert_array_equal((-x).numpy(), [-1, 2])
    np.testing.assert_array_equal((+x).numpy(), [1, -2])
    np.testing.assert_array_equal(abs(x).numpy(), [1, 2])
    np.testing.assert_array_equal((~pb.asarray([True, False])).numpy(), [False, True])


def test_unknown_operands_are_left_to_python() -> None:
    x = pb.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"
    with pytest.raises(TypeError):
        operator.lt(x, object())


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(pb.ShapeError, match=r"add\(\(2,\) float32, \(3,\) float32\)"):
        pb.ones(2) + pb.ones(3)


def test_bits_of_floats_are_refused() -> None:
    with pytest.raises(pb.DtypeError, match="bitwise_and"):
        pb.ones(2) & pb.ones(2)


# -- conversions ---------------------------------------------------------------------------------


def test_one_element_becomes_a_python_number() -> None:
    assert float(pb.asarray(1.5)) == 1.5
    assert int(pb.asarray([2])) == 2
    assert complex(pb.asarray(1 + 2j)) == 1 + 2j
    assert bool(pb.asarray(True)) is True
    assert [10, 20][pb.asarray(1)] == 20


@pytest.mark.parametrize("convert", [float, int, complex])
def test_a_gradient_is_not_lost_in_a_conversion(convert: Any) -> None:
    w = pb.tensor(2.0, requires_grad=True)
    with pytest.raises(pb.GradientError, match=r"detach\(\).*item\(\)"):
        convert(w)
    assert convert(w.detach()) == 2


def test_several_elements_have_no_truth_and_no_number() -> None:
    with pytest.raises(pb.ShapeError, match=r"pb\.any"):
        bool(pb.ones(2))
    with pytest.raises(pb.ShapeError, match="one element"):
        float(pb.ones(2))
    with pytest.raises(TypeError, match="integer"):
        [1, 2][pb.asarray(1.0)]


def test_container_protocols() -> None:
    x = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x) == 2
    assert 4.0 in x
    assert 5.0 not in x
    rows = list(x)
    np.testing.assert_array_equal(pb.backward(rows[1].sum())[x].numpy(), [[0, 0], [1, 1]])
    with pytest.raises(TypeError, match="0-d"):
        len(pb.asarray(1.0))
    with pytest.raises(TypeError, match="0-d"):
        iter(pb.asarray(1.0))
