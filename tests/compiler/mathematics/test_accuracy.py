"""Elementary functions against exact values, over their whole ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from .exact import BINARY, UNARY, errors
from .mapped import mapped

#: Units in the last place that results may be off: what is measured, rounded up.
BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.1, 1.1), "expm1": (1.75, 1.75), "log": (0.85, 0.85), "log1p": (0.9, 0.85), "log2": (0.51, 0.9),
    "log10": (0.51, 0.9), "sigmoid": (1.8, 1.8), "tanh": (1.25, 1.25), "erf": (1.25, 2.5), "erfc": (0.51, 4.5),
    "ndtr": (4.9, 4.9),
    "sin": (1.6, 0.8), "cos": (1.6, 0.8), "tan": (0.51, 2.0), "asin": (0.51, 0.7), "acos": (0.51, 0.85),
    "atan": (0.51, 1.75), "sinh": (0.51, 1.75), "cosh": (0.51, 1.5), "asinh": (0.51, 1.75), "acosh": (0.51, 1.75),
    "atanh": (0.51, 1.75), "pow": (0.51, 1.1), "atan2": (0.51, 1.75), "hypot": (0.51, 0.8), "logaddexp": (0.51, 2.0),
}  # fmt: skip
DTYPES = ("float32", "float64")
#: Beyond these (low, high), results are constant or not numbers.
_DOMAINS = {
    "exp": (-746, 710), "expm1": (-50, 710), "sigmoid": (-746, 50), "tanh": (-25, 25), "erf": (-7, 7),
    "erfc": (-7, 27), "ndtr": (-38, 9), "sinh": (-711, 711), "cosh": (-711, 711), "log": (0, np.inf),
    "log2": (0, np.inf), "log10": (0, np.inf), "log1p": (-1, np.inf), "asin": (-1, 1), "acos": (-1, 1),
    "atanh": (-1, 1), "acosh": (1, np.inf),
}  # fmt: skip


def points(rng: np.random.Generator, dtype: str, count: int, low: float = -np.inf, high: float = np.inf) -> Any:
    """Numbers of all sizes, about 1, about 0, on small integers and their neighbours, within bounds."""
    limits = np.finfo(dtype)
    bits = limits.nmant
    signs = rng.choice([-1.0, 1.0], count)
    with np.errstate(all="ignore"):
        parts = [
            signs * 2.0 ** rng.uniform(limits.minexp, limits.maxexp, count),
            signs * 2.0 ** rng.uniform(-8, 8, count),
            rng.normal(0, 1, count),
            rng.normal(0, 20, count),
            signs * (1 + rng.choice([-0.5, 1.0], count) * 2.0 ** rng.uniform(-bits, 0, count)),
            np.nextafter(rng.integers(-40, 40, count).astype(dtype), rng.choice([-99, 0, 99], count).astype(dtype)),
        ]
        if np.isfinite(low) and np.isfinite(high):
            parts.append(rng.uniform(low, high, 2 * count))
        x = np.concatenate(parts).astype(dtype)
    return x[(x >= low) & (x <= high) & np.isfinite(x)]


def assert_within(bound: float, name: str, *arguments: Any) -> None:
    off = errors(name, mapped(name, *arguments), *arguments)
    assert np.isfinite(off).sum() > 100 or np.isinf(off).any(), "hardly anything was compared"
    worst = int(np.nanargmax(off))
    assert off[worst] <= bound, f"{name}({[x[worst] for x in arguments]}): off by {off[worst]:.3f} units"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name: str, dtype: str) -> None:
    low, high = _DOMAINS.get(name, (-1e6, 1e6) if name in ("sin", "cos", "tan") else (-np.inf, np.inf))
    x = points(np.random.default_rng(5), dtype, 300, low, high)
    assert_within(BOUNDS[name][DTYPES.index(dtype)], name, x)


#: In float64, where NumPy's error does not count.
_IN_DOUBLE: dict[str, Any] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: np.array(list(map(math.erf, x.tolist()))),
}  # fmt: skip


@pytest.mark.parametrize("name", _IN_DOUBLE)
def test_single_precision_at_many_points(name: str) -> None:
    rng = np.random.default_rng(12)
    x = np.concatenate([rng.normal(0, 1, 100_000), rng.uniform(-90, 90, 100_000)]).astype(np.float32)
    x = np.concatenate([x, rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)])
    with np.errstate(all="ignore"):
        want = _IN_DOUBLE[name](x.astype(np.float64))
        nearest = want.astype(np.float32)
        off = np.abs(mapped(name, x) - want) / np.spacing(np.abs(nearest))
    off[~np.isfinite(nearest) | (np.abs(want) < np.finfo(np.float32).tiny)] = 0
    worst = int(np.argmax(off))
    assert off[worst] <= BOUNDS[name][0], f"{name}({x[worst]!r}): off by {off[worst]:.3f} units"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_half_pi(name: str, dtype: str) -> None:
    rng = np.random.default_rng(6)
    n = np.concatenate([np.arange(1, 200), rng.integers(1, 83000, 400)])
    x = (n * np.pi / 2).astype(dtype)
    x = np.concatenate([x, np.nextafter(x, 0).astype(dtype), x * x.dtype.type(0.5)])
    assert_within(BOUNDS[name][DTYPES.index(dtype)], name, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_any_size(name: str, dtype: str) -> None:
    """The first two are the float32 and the float64 that come next to a multiple of pi/2 relative to their size."""
    rng = np.random.default_rng(7)
    sizes = 2.0 ** rng.uniform(10, np.finfo(dtype).maxexp, 250)
    x = np.concatenate([[16367173 * 2.0**72, 6381956970095103 * 2.0**797], sizes, -sizes])
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    assert_within(BOUNDS[name][DTYPES.index(dtype)], name, x[np.isfinite(x)])


def test_one_large_angle_leaves_the_others_as_they_are() -> None:
    x = np.linspace(-10, 10, 64, dtype=np.float32)
    mixed = x.copy()
    mixed[5::16] = 1e30
    plain, beside = mapped("sin", x), mapped("sin", mixed)
    same = np.arange(64) % 16 != 5
    assert (plain[same] == beside[same]).all()
    assert_within(BOUNDS["sin"][0], "sin", np.tile(mixed, 4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name: str, dtype: str) -> None:
    rng = np.random.default_rng(8)
    bounds = (-1e4, 1e4) if name == "logaddexp" else (-np.inf, np.inf)
    x, y = points(rng, dtype, 250, *bounds), points(rng, dtype, 250, *bounds)
    count = min(x.size, y.size)
    x, y = rng.permutation(x)[:count], rng.permutation(y)[:count]
    if name == "pow":
        x = np.abs(x)
    if name == "logaddexp":  # its relative error grows without bound where the sum's parts cancel
        keep = (np.maximum(x, y) > 0) | (np.abs(x - y) > 40)
        x, y = x[keep], y[keep]
    assert_within(BOUNDS[name][DTYPES.index(dtype)], name, x, y)


@pytest.mark.parametrize("name", ["atan2", "hypot"])
@pytest.mark.parametrize("exponents", [(960, 1023.9), (-1074, -1000)])
def test_two_arguments_that_are_both_huge_or_tiny(name: str, exponents: tuple[float, float]) -> None:
    rng = np.random.default_rng(13)
    x, y = (rng.choice([-1.0, 1.0], 600) * 2.0 ** rng.uniform(*exponents, 600) for _ in range(2))
    assert_within(BOUNDS[name][1], name, x, y)


def test_powers_near_overflow_and_of_numbers_near_one() -> None:
    rng = np.random.default_rng(9)
    x = 1 + rng.choice([-0.5, 1], 800) * 2.0 ** rng.uniform(-40, -1, 800)
    y = rng.uniform(-700, 700, 800) / np.log(x)
    assert_within(1.1, "pow", x, y)
    assert_within(0.51, "pow", np.float32(x), np.float32(y / 8))


@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_powers_of_negative_numbers(dtype: str) -> None:
    rng = np.random.default_rng(10)
    x, y = (-np.exp(rng.normal(0, 1, 500))).astype(dtype), rng.integers(-30, 30, 500).astype(dtype)
    assert_within(1.1, "pow", x, y)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_scalar_gives_what_a_vector_gives(name: str, dtype: str) -> None:
    rng = np.random.default_rng(11)
    arguments = [points(rng, dtype, 40)[:208] for _ in range(1 if name in UNARY else 2)]
    vectors, scalars = mapped(name, *arguments), mapped(name, *arguments, width=1)
    same = (vectors == scalars) | (np.isnan(vectors) & np.isnan(scalars))
    assert same.all(), [argument[~same] for argument in arguments]
