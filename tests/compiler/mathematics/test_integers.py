"""Operations of integers and truth values, and conversions between all dtypes: what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.backends import NUMPY
from pullback.targets.llvm.mathematics.operations import SUPPORTED

from .mapped import converted, mapped

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ALL = (*INTEGERS, "bool", "float32", "float64")
ONE = [
    "abs", "sign", "negative", "positive", "square", "reciprocal", "bitwise_invert", "floor", "ceil", "trunc",
    "round",
]  # fmt: skip
TWO = [
    "add", "subtract", "multiply", "maximum", "minimum", "remainder", "floor_divide", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
]  # fmt: skip
TESTS = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "isfinite", "isnan", "isinf", "logical_not",
]  # fmt: skip


def samples(dtype: str, seed: int) -> Any:
    """Every pair of special numbers, then numbers of all sizes."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, 200).astype(bool)
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
    if limits.min < 0:
        values += [-1, -2, -3, -7, -64]
    special = np.array(values, dtype)
    pairs = (np.repeat(special, len(values)), np.tile(special, len(values)))[seed]
    bits = rng.integers(0, limits.bits - 1, 400)
    return np.concatenate([pairs, (rng.integers(0, 2**62, 400) >> (62 - bits)).astype(dtype)])


def kernel(name: str, *arguments: Any) -> Any:
    with np.errstate(all="ignore"):
        return getattr(NUMPY.xp, name)(*arguments)


CASES = [(name, dtype) for name in (*ONE, *TWO, *TESTS) for dtype in (*INTEGERS, "bool") if dtype in SUPPORTED[name]]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_operations(name: str, dtype: str) -> None:
    one = name in ONE or name in ("isfinite", "isnan", "isinf", "logical_not")
    arguments = [samples(dtype, seed) for seed in range(1 if one else 2)]
    want = kernel(name, *arguments)
    got = mapped(name, *arguments, dtype=want.dtype.name)
    np.testing.assert_array_equal(got, want)
    if name in (
        "remainder",
        "floor_divide",
        "bitwise_left_shift",
        "bitwise_right_shift",
    ):  # long enough to be told apart
        np.testing.assert_array_equal(mapped(name, *arguments, dtype=want.dtype.name, width=1), want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers(dtype: str) -> None:
    x, y = samples(dtype, 0), samples(dtype, 1)
    y = np.where(y < 0, ~y, y) if dtype.startswith("int") else y
    np.testing.assert_array_equal(mapped("pow", x, y), np.power(x, y))


def test_negative_powers_of_integers_are_cut_to_integers() -> None:
    x, y = np.array([1, -1, -1, 2, -3, 5]), np.array([-4, -4, -3, -1, -2, 0])
    np.testing.assert_array_equal(mapped("pow", x, y), [1, 1, -1, 0, 0, 1])


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_where(dtype: str) -> None:
    x, y = samples(dtype, 0), samples(dtype, 1)
    condition = samples("bool", 0).repeat(5)[: x.size]
    x, y = x[: condition.size], y[: condition.size]
    np.testing.assert_array_equal(mapped("where", condition, x, y), np.where(condition, x, y))


def test_logical_operations_take_operands_of_different_dtypes() -> None:
    x, y = np.array([0, 1, 2, 0], np.int8), np.array([np.nan, 0.0, 1.0, -0.0])
    for name in ("logical_and", "logical_or", "logical_xor"):
        np.testing.assert_array_equal(mapped(name, x, y, dtype="bool"), getattr(np, name)(x, y))


def test_every_supported_operation_of_integers_is_tested_here() -> None:
    assert {op for op, dtypes in SUPPORTED.items() if "int32" in dtypes} == {*ONE, *TWO, *TESTS, "where", "pow"}


# -- conversion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", ALL)
def test_conversion(source: str, target: str) -> None:
    if source.startswith("float"):
        rng = np.random.default_rng(3)
        x = np.concatenate([[0.0, -0.0, 0.5, -0.5, 1.9, 126.7], rng.uniform(0, 100, 40), 2.0 ** rng.uniform(-9, 7, 40)])
        if not target.startswith("uint"):
            x = np.concatenate([x, -x])
        if target == "bool":
            x = np.concatenate([x, [np.nan, np.inf, 5e-324]])
        if target.startswith("float"):
            x = np.concatenate([x, [np.nan, np.inf, -np.inf, 1e-40, 1e39, 1 + 2.0**-24, 1 + 2.0**-23 + 2.0**-24]])
        with np.errstate(over="ignore"):
            x = x.astype(source)
    else:
        x = samples(source, 0)
    with np.errstate(over="ignore"):
        want = x.astype(target)
    got = converted(x, target)
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_large_numbers_keep_all_their_bits(source: str) -> None:
    x = np.array([2.0**31 - 128, 2.0**31, 2.0**32 - 512, 2.0**53 + 2, 2.0**62, 2.0**63 - 2.0**40], source)
    np.testing.assert_array_equal(converted(x, "int64"), x.astype("int64"))
    np.testing.assert_array_equal(converted(x[:3], "uint32"), x[:3].astype("uint32"))
    x = np.append(x, np.array([2.0**63, 2.0**64 - 2.0**40], source))
    np.testing.assert_array_equal(converted(x, "uint64"), x.astype("uint64"))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", INTEGERS)
def test_what_does_not_fit_is_the_least_number_cut_to_width(source: str, target: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], source)
    wide = {"uint32": -(2**63), "int64": -(2**63), "uint64": -(2**63)}.get(target, -(2**31))
    want = np.full(5, wide).astype(target)
    if target == "uint64":
        want[[1, 3]] = 0  # beyond 2**63 the rest is converted
    np.testing.assert_array_equal(converted(np.tile(x, 20), target), np.tile(want, 20))
    np.testing.assert_array_equal(converted(x, target, 1), want)
