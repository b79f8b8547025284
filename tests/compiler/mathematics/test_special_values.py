"""Zeros, infinities, NaN, the largest and the smallest numbers: what NumPy's kernels give there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends import NUMPY
from pullback.targets.llvm.mathematics import operations as mathematics
from pullback.targets.llvm.mathematics.operations import SUPPORTED, supports

from .mapped import mapped

DTYPES = ("float32", "float64")
ONE = [
    "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "ndtr", "sqrt", "floor", "ceil", "round", "trunc",
    "sign", "abs", "negative", "positive", "reciprocal", "square", "isfinite", "isnan", "isinf", "signbit",
]  # fmt: skip
TWO = [
    "add", "subtract", "multiply", "divide", "remainder", "floor_divide", "pow", "atan2", "hypot", "logaddexp",
    "maximum", "minimum", "copysign", "nextafter", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor",
]  # fmt: skip
TRUTHS = ("is", "equal", "not", "less", "greater", "logical", "signbit")


def specials(dtype: str) -> Any:
    limits = np.finfo(dtype)
    sizes = [0.0, np.inf, 1, 0.5, 2, 3, 2.5, 3.5, 1.5, 1e-3, 20.25, 100, 1e5, 2.0**24 + 2, 2.0**40, limits.max]
    sizes += [limits.tiny, limits.tiny / 8, limits.smallest_subnormal, limits.eps]
    sizes += [88.5, 88.8, 89.5, 103, 105, 709.5, 710.2, 746]  # where exponentials overflow and underflow
    return np.array([np.nan, *sizes, *(-size for size in sizes)], dtype)


def assert_same(name: str, got: Any, want: Any, *arguments: Any) -> None:
    """Equal, with the sign of zeros; and within rounding where both are normal numbers."""
    same = (got == want) & (np.signbit(got) == np.signbit(want)) if got.dtype.kind == "f" else got == want
    if got.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
        limits = np.finfo(got.dtype)
        with np.errstate(all="ignore"):
            near = np.abs(got.astype(float) - want) <= 6 * limits.eps * np.abs(want.astype(float))
            near |= np.abs(got - want) <= limits.smallest_subnormal
        same |= near & (want != 0) & np.isfinite(want)
    wrong = np.flatnonzero(~same)[:5]
    assert same.all(), [(name, [x[i] for x in arguments], got[i], want[i]) for i in wrong]


def kernel(name: str) -> Any:
    return getattr(NUMPY.xp, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str, dtype: str) -> None:
    x = specials(dtype)
    with np.errstate(all="ignore"):
        want = kernel(name)(x)
    if name == "sigmoid":  # NumPy's gives 0 where the result is subnormal; the exact value is the better one
        x, want = x[(want != 0) | (x < -800)], want[(want != 0) | (x < -800)]
    got = mapped(name, x, dtype="bool" if name.startswith(TRUTHS) else dtype)
    assert_same(name, got, want, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str, dtype: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        want = kernel(name)(x, y)
    got = mapped(name, x, y, dtype="bool" if name.startswith(TRUTHS) else dtype)
    assert_same(name, got, want, x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["remainder", "floor_divide", "nextafter", "maximum", "minimum"])
def test_exact_operations_are_exact(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 50, 4000), rng.normal(0, 1, 4000)
    x[2000:] *= 10.0 ** rng.uniform(-30, 30, 2000)
    y[2000:] *= 10.0 ** rng.uniform(-30, 30, 2000)
    y[:500] = np.round(y[:500] * 3)
    x[:500] = np.round(x[:500])
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(mapped(name, x, y), kernel(name)(x, y))


def test_remainders_of_numbers_far_apart_and_of_subnormal_ones() -> None:
    rng = np.random.default_rng(1)
    x, y = 2.0 ** rng.uniform(-1074, 1023, 2000), 2.0 ** rng.uniform(-1074, -900, 2000)
    x[:500] = 2.0 ** rng.uniform(-1074, -1000, 500)
    np.testing.assert_array_equal(mapped("remainder", x, y), np.fmod(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_goes_to_even(dtype: str) -> None:
    x = np.arange(-20, 21).astype(dtype) / 4
    for name in ("round", "floor", "ceil", "trunc"):
        np.testing.assert_array_equal(mapped(name, x), kernel(name)(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5])
def test_known_exponents(exponent: float, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant exponent gives what the same exponent in memory gives."""
    from llvmlite import ir

    from pullback.targets.llvm.code import constant
    from pullback.targets.llvm.mathematics import power

    from .mapped import build, run

    def body(b: ir.IRBuilder, operands: list[Any]) -> Any:
        y = constant(operands[0].type, exponent)
        return mathematics.scalar_operation(b, "pow", [operands[0], y], dtype, [dtype, dtype])

    def not_called(x: Any, y: Any) -> Any:
        raise AssertionError("the general power was written")

    monkeypatch.setattr(power, "_power", not_called)
    _engine, function = build(body, (dtype,), dtype, 8)
    x = np.concatenate([specials(dtype), np.random.default_rng(2).normal(0, 3, 200).astype(dtype)])
    with np.errstate(all="ignore"):
        want = np.power(x, np.full_like(x, exponent))
    assert_same("pow", run(function, [x], dtype), want, x)


def test_other_constant_exponents() -> None:
    from llvmlite import ir

    from pullback.targets.llvm.code import constant

    from .mapped import build, run

    def body(b: ir.IRBuilder, operands: list[Any]) -> Any:
        y = constant(operands[0].type, 2.5)
        return mathematics.scalar_operation(b, "pow", [operands[0], y], "float32", ["float32", "float32"])

    x = np.linspace(0, 5, 37, dtype=np.float32)
    _engine, function = build(body, ("float32",), "float32", 16)
    np.testing.assert_allclose(run(function, [x], "float32"), x**2.5, rtol=2e-7)


def test_empty_arrays() -> None:
    assert mapped("exp", np.empty(0, np.float32)).size == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(dtype: str) -> None:
    x = specials(dtype)
    condition = np.arange(x.size) % 3 == 0
    np.testing.assert_array_equal(mapped("where", condition, x, -x), np.where(condition, x, -x))


def test_every_supported_operation_of_floats_is_tested_here() -> None:
    floats = {op for op, dtypes in SUPPORTED.items() if "float32" in dtypes}
    assert floats == {*ONE, *TWO, "where", "logical_not"}
    assert not mapped("logical_not", np.array([1.5, np.nan, np.inf]), dtype="bool").any()


def test_what_is_supported() -> None:
    assert supports("add", ["float32", "float32"], "float32")
    assert supports("where", ["bool", "int8", "int8"], "int8")
    assert supports("logical_and", ["float32", "int8"], "bool")
    assert supports("pow", ["uint8", "uint8"], "uint8")
    assert supports("pow", ["int32", "int32"], "int32", exponent=3)
    assert not supports("pow", ["int32", "int32"], "int32")
    assert not supports("pow", ["int32", "int32"], "int32", exponent=-1)
    assert not supports("add", ["float32", "float64"], "float64")
    assert not supports("exp", ["int32"], "float64")
    assert not supports("exp", ["complex64"], "complex64")
    assert not supports("gammaln", ["float32"], "float32")
    assert not supports("bitwise_and", ["float32", "float32"], "float32")
