"""Calls of NumPy's functions that are no ufuncs, by the name that each has after `np.`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .comparison import Call, call
from .values import (
    ARRAYS,
    AXES,
    COMPLEX_MATRIX,
    COMPLEX_VECTOR,
    CUBE,
    EDGE_MATRIX,
    EDGES,
    EDGES32,
    EMPTY,
    EMPTY_COLUMNS,
    EMPTY_ROWS,
    FEW_ARRAYS,
    HOLES,
    HUGE,
    INDEX,
    INFINITE,
    INTEGERS,
    MASK,
    MATRIX,
    MATRIX32,
    ONE,
    OTHER,
    SCALAR,
    SCALAR32,
    SQUARE,
    TIES,
    TURNED,
    VECTOR,
    complex_edges,
    normal,
    positive,
)  # fmt: skip

CALLS: dict[str, Callable[[], Iterator[Call]]] = {}


def calls(*names: str) -> Callable[[Callable[[], Iterator[Call]]], Callable[[], Iterator[Call]]]:
    """Say of which functions these are the calls."""

    def register(generator: Callable[[], Iterator[Call]]) -> Callable[[], Iterator[Call]]:
        for name in names:
            assert name not in CALLS, name
            CALLS[name] = generator
        return generator

    return register


# -- reductions ------------------------------------------------------------------------------------


def _over_axes(**options: Any) -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x, **options)
        for axis in AXES:
            yield call(x, axis=axis, **options)
        yield call(x, axis=-1, keepdims=True, **options)
        yield call(x, keepdims=True, **options)
        yield call(x, axis=(0, 1), keepdims=True, **options)
    yield call(MATRIX, 0, **options)
    yield call(**options)
    yield call(MATRIX, no_such_option=1, **options)
    yield call(MATRIX, keepdims="a", **options)


def _with_dtypes() -> Iterator[Call]:
    for x in (MATRIX, MATRIX32, EDGES32, COMPLEX_VECTOR):
        for dtype in (np.float32, np.float64, np.complex128, "f4", np.int64, "no such type", 3):
            yield call(x, dtype=dtype)
            yield call(x, axis=-1, dtype=dtype)


_WHERE = ((MATRIX, MASK), (HOLES, MASK), (CUBE, MATRIX > 0), (MATRIX, False), (MATRIX, [[True], [False], [True]]),
          (MATRIX32, MATRIX > 5), (VECTOR, [True, False]), (MATRIX, "a"), (EMPTY, True), (MATRIX, 1))  # fmt: skip


@calls("sum", "prod", "nansum", "nanprod")
def _totals() -> Iterator[Call]:
    yield from _over_axes()
    yield from _with_dtypes()
    for x in FEW_ARRAYS:
        yield call(x, initial=2.5)
        yield call(x, axis=-1, initial=-1, keepdims=True)
        yield call(x, initial="a")
        yield call(x, initial=np.float64(3))
        yield call(x, initial=2 + 1j)
    for x, where in _WHERE:
        yield call(x, where=where)
        yield call(x, axis=0, where=where)
        yield call(x, axis=-1, where=where, initial=1.5)


@calls("max", "amax", "min", "amin", "nanmax", "nanmin")
def _extrema() -> Iterator[Call]:
    yield from _over_axes()
    for x in (*FEW_ARRAYS, EMPTY, HOLES):
        yield call(x, initial=0.25)
        yield call(x, axis=-1, initial=-np.inf)
        yield call(x, axis=0, initial=np.nan)
        yield call(x, initial="a")
    for x, where in _WHERE:
        yield call(x, where=where)
        yield call(x, axis=0, where=where, initial=-1.0)


@calls("mean", "nanmean")
def _means() -> Iterator[Call]:
    yield from _over_axes()
    yield from _with_dtypes()
    for x, where in _WHERE:
        yield call(x, where=where)
        yield call(x, axis=0, where=where)


@calls("var", "std", "nanvar", "nanstd")
def _spreads() -> Iterator[Call]:
    yield from _over_axes()
    yield from _over_axes(ddof=1)
    yield from _with_dtypes()
    for x in (MATRIX, MATRIX32, HOLES, COMPLEX_MATRIX, EMPTY):
        yield call(x, ddof=0.5)
        yield call(x, axis=0, ddof=3)
        yield call(x, axis=0, ddof=7)
        yield call(x, correction=1)
        yield call(x, correction=1, ddof=1)
        yield call(x, ddof="a")
        yield call(x, axis=0, mean=np.mean(x, axis=0, keepdims=True))
        yield call(x, axis=0, mean=np.mean(x, axis=0))
    for x, where in _WHERE:
        yield call(x, where=where)
        yield call(x, axis=0, where=where, ddof=1)


@calls("median", "nanmedian")
def _medians() -> Iterator[Call]:
    yield from _over_axes()
    for n in range(1, 7):
        yield call(normal(n))
        yield call(np.append(normal(n), np.nan))
        yield call(np.append(normal(n), [np.inf, -np.inf]))


@calls("quantile", "nanquantile")
def _quantiles() -> Iterator[Call]:
    yield from _quantile_calls(1.0)


@calls("percentile", "nanpercentile")
def _percentiles() -> Iterator[Call]:
    yield from _quantile_calls(100.0)


def _quantile_calls(whole: float) -> Iterator[Call]:
    for x in ARRAYS:
        for q in (0.0, 0.3, 1.0):
            yield call(x, q * whole)
        for axis in AXES:
            yield call(x, 0.37 * whole, axis=axis)
            yield call(x, [0.1 * whole, 0.9 * whole], axis)
        yield call(x, [[0.2 * whole, 0.5 * whole], [0.5 * whole, whole]], axis=0, keepdims=True)
        yield call(x, 0.5 * whole, keepdims=True)
        yield call(x, [], axis=-1)
    for x in (VECTOR, MATRIX, HOLES, MATRIX32, EDGE_MATRIX, TIES):
        for q in (1.5 * whole, -0.1 * whole, float("nan"), "a", None, [0.5 * whole, 2 * whole], 1, 0, True, 0.5j):
            yield call(x, q)
        for method in (
            "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
            "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
            "no such method", None,
        ):  # fmt: skip
            for q in (0.0, 0.21, 0.5, 1.0):
                yield call(x, q * whole, axis=-1, method=method)
            yield call(x, [0.1 * whole, 0.8 * whole], method=method, keepdims=True)
    for weights in ([1.0, 2.0, 0.0, 1.0], [1.0, -2.0, 0.0, 1.0], [1.0] * 3, [1, 1, 1, 2], positive(4)):
        yield call(VECTOR, 0.4 * whole, weights=weights, method="inverted_cdf")
        yield call(MATRIX, 0.4 * whole, axis=1, weights=weights, method="inverted_cdf")
        yield call(VECTOR, 0.4 * whole, weights=weights)
    yield call(VECTOR)
    yield call(VECTOR, 0.5, overwrite_input=True)


@calls("average")
def _averages() -> Iterator[Call]:
    yield from _over_axes()
    for x in ARRAYS:
        yield call(x, returned=True)
        yield call(x, axis=0, returned=True)
        yield call(x, weights=np.ones_like(x), returned=True)
        yield call(x, weights=x, axis=-1)
        yield call(x, weights=np.abs(x.real) + 1, axis=-1, keepdims=True, returned=True)
    for x, axis, weights in (
        (MATRIX, 0, positive(3)), (MATRIX, 1, positive(4)), (MATRIX, -1, positive(4)), (MATRIX, 0, positive(4)),
        (MATRIX, None, positive(4)), (MATRIX, 0, [1, 2, 3]), (MATRIX, 0, np.zeros(3)), (MATRIX, 1, [1.0, -1.0, 0, 0]),
        (CUBE, (0, 2), positive(2, 4)), (CUBE, (2, 0), positive(4, 2)), (CUBE, (0, 1), positive(2, 4)),
        (CUBE, 1, positive(3, 1)), (MATRIX, 5, positive(3)), (MATRIX, 0, "a"), (MATRIX32, 0, positive(3)),
        (MATRIX32, 0, [1, 2, 1]), (HOLES, 0, positive(3)), (INFINITE, 1, [0.0, 1.0, 2.0]), (MATRIX, (0, 0), MATRIX),
        (COMPLEX_MATRIX, 0, positive(3)), (MATRIX, 0, COMPLEX_VECTOR[:3]), (EMPTY, 0, EMPTY), (HUGE, 1, [1, 1, 1]),
        (MATRIX32, 1, np.ones(4, np.float32)), (MATRIX, 1, MASK), (SCALAR, None, np.array(2.0)),
    ):  # fmt: skip
        yield call(x, axis=axis, weights=weights)
        yield call(x, axis, weights, True)
        yield call(x, axis=axis, weights=weights, keepdims=True)


@calls("ptp")
def _ranges() -> Iterator[Call]:
    yield from _over_axes()


@calls("cumsum", "cumprod", "nancumsum", "nancumprod")
def _running() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axis in AXES:
            yield call(x, axis)
    yield from _with_dtypes()
    yield call(MATRIX, 0, np.float32)
    yield call(MATRIX, no_such_option=1)


@calls("cumulative_sum", "cumulative_prod")
def _running_of_the_standard() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axis in AXES:
            yield call(x, axis=axis)
            yield call(x, axis=axis, include_initial=True)
    yield from _with_dtypes()
    yield call(MATRIX, 0)


# -- products --------------------------------------------------------------------------------------

_FACTORS = (VECTOR, OTHER, MATRIX, MATRIX32, TURNED, normal(4, 3), CUBE, normal(2, 4, 2), SCALAR, SCALAR32, EMPTY,
            EMPTY_ROWS, EMPTY_COLUMNS, COMPLEX_MATRIX, COMPLEX_VECTOR, HOLES, HUGE, INFINITE, INTEGERS, EDGES, 2.0, 3,
            [1.0, 2.0, 3.0, 4.0], "a", None)  # fmt: skip


@calls("dot", "vdot", "inner", "outer", "kron")
def _products() -> Iterator[Call]:
    for x in _FACTORS:
        for y in _FACTORS:
            if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
                yield call(x, y)
    yield call(VECTOR)


@calls("tensordot")
def _tensor_products() -> Iterator[Call]:
    yield from _tensordot_calls()
    yield call(CUBE, MATRIX, ([1, 2], [0, 1]))
    yield call(CUBE, MATRIX, 1)


def _tensordot_calls() -> Iterator[Call]:
    for x, y in ((CUBE, MATRIX), (MATRIX, MATRIX.T), (CUBE, CUBE), (VECTOR, OTHER), (SCALAR, VECTOR), (MATRIX32,
              MATRIX),
                 (COMPLEX_MATRIX, MATRIX), (EMPTY_ROWS, EMPTY_COLUMNS), (HOLES, HUGE)):  # fmt: skip
        yield call(x, y)
        for axes in (0, 1, 2, 3, -1, (0, 0), (1, 0), ([1, 2], [0, 1]), ([0], [1]), ([-1], [-1]), (9, 0), "a", None,
                     ([0, 1], [0]), ((), ()), 1.5):  # fmt: skip
            yield call(x, y, axes=axes)


@calls("einsum")
def _einsum_calls() -> Iterator[Call]:
    for subscripts, *operands in (
        ("i,i", VECTOR, OTHER), ("i,i->i", VECTOR, OTHER), ("ij->ji", MATRIX), ("ij->", MATRIX), ("ii", SQUARE),
        ("ii->i", SQUARE), ("ij,jk", MATRIX, TURNED.T @ MATRIX), ("ij,kj->ik", MATRIX, MATRIX32), ("...j->...", CUBE),
        ("...j,j...", MATRIX, MATRIX.T), ("i,j->ij", VECTOR, OTHER), ("ijk,jk->i", CUBE, MATRIX), ("ij,j", MATRIX,
        VECTOR),
        ("ij,jk,kl->il", MATRIX, MATRIX.T, MATRIX), ("i->", EMPTY), ("ij->j", EMPTY_ROWS), ("ij->i", HOLES),
        ("ij->j", INFINITE), ("ij,ij->i", HUGE, HUGE), ("i,i", COMPLEX_VECTOR, VECTOR), (",i", SCALAR, VECTOR),
        ("ij", CUBE), ("i,i", VECTOR, EDGES), ("ij->k", MATRIX), ("ij->ii", MATRIX), ("i->i->i", VECTOR), ("i,j",
        VECTOR),
        ("i1", MATRIX), ("ij,ij", INTEGERS, MATRIX), ("ba", MATRIX), (" i j -> j i ", MATRIX), ("", SCALAR), ("i",
        MATRIX),
        ("ii->i", MATRIX), ("...,...", MATRIX, VECTOR), ("i...->...", MATRIX), (3, MATRIX), (None, MATRIX),
    ):  # fmt: skip
        yield call(subscripts, *operands)
        yield call(subscripts, *operands, optimize=True)
    for sublists in (
        (MATRIX, [0, 1], [1, 0]), (MATRIX, [0, 1]), (MATRIX, [0, 1], MATRIX.T, [1, 2], [0, 2]), (SQUARE, [0, 0]),
        (MATRIX, [0, 1], MATRIX.T, [1, 2]), (CUBE, [..., 3], [...]), (VECTOR, [0], OTHER, [1], [1, 0]), (MATRIX, [0]),
        (VECTOR, [0], []), (MATRIX, [60, 1]), (VECTOR, ["a"]), (VECTOR, [27], OTHER, [51]), (MATRIX, [51, 0]),
        (CUBE, [1, ..., 0], [0, ..., 1]),
    ):  # fmt: skip
        yield call(*sublists)
    yield call("ij", MATRIX, dtype=np.float32)
    yield call("ij->ji", MATRIX, order="F")
    yield call("ij,jk", MATRIX32, MATRIX32.T, dtype=np.float64)
    yield call("ij,jk", MATRIX, MATRIX.T, dtype=np.float32)
    yield call("ij,jk", MATRIX, MATRIX.T, dtype=np.float32, casting="unsafe")
    yield call()
    yield call("i,i", VECTOR, OTHER, optimize="no such way")
    yield call("i,i", VECTOR, OTHER, no_such_option=1)


@calls("cross")
def _cross_calls() -> Iterator[Call]:
    for x, y in ((VECTOR[:3], OTHER[:3]), (SQUARE, SQUARE[::-1]), (SQUARE, VECTOR[:3]), (normal(5, 3), normal(5, 3)),
                 (normal(3, 5), normal(3, 5)), (normal(2, 3, 4), normal(2, 3, 4)), (VECTOR[:2], OTHER[:2]),
                 (VECTOR[:3], OTHER[:2]), (VECTOR, OTHER), (SCALAR, SCALAR), (EMPTY_ROWS, EMPTY_ROWS),
                 (INFINITE, INFINITE), (COMPLEX_VECTOR[:3], VECTOR[:3]), (EDGE_MATRIX, EDGE_MATRIX),
                 (HUGE, HUGE[::-1]), ([1, 2, 3], VECTOR[:3])):  # fmt: skip
        yield call(x, y)
        for axis in (0, 1, -1, 5, "a"):
            yield call(x, y, axis=axis)
            yield call(x, y, axisa=axis)
            yield call(x, y, axisa=axis, axisb=axis, axisc=0)
            yield call(x, y, axisc=axis)


@calls("cov", "corrcoef")
def _covariances() -> Iterator[Call]:
    yield from _covariance_calls()


def _covariance_calls() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        yield call(x, rowvar=False)
        yield call(x, x)
    for x in (MATRIX, MATRIX32, VECTOR, COMPLEX_MATRIX, HOLES, HUGE):
        yield call(x, dtype=np.float64)
        yield call(x, dtype=np.float32)
    for x, y in ((MATRIX, VECTOR), (VECTOR, OTHER), (MATRIX, MATRIX32), (MATRIX, normal(2, 3)), (MATRIX, "a"),
                 (COMPLEX_MATRIX, MATRIX), (MATRIX, CUBE), (VECTOR, SCALAR)):  # fmt: skip
        yield call(x, y)
        yield call(x, y, rowvar=False)
    yield call(MATRIX, no_such_option=1)


# -- calculus --------------------------------------------------------------------------------------


@calls("trapezoid")
def _integrals() -> Iterator[Call]:
    for y in ARRAYS:
        yield call(y)
        for axis in (0, -1, 1, 5, "a", None):
            yield call(y, axis=axis)
            yield call(y, dx=0.5, axis=axis)
    for y, x in ((VECTOR, np.array([0.0, 1.0, 1.5, 4.0])), (MATRIX, VECTOR), (MATRIX, MATRIX), (MATRIX, OTHER[:3]),
                 (MATRIX, normal(3)), (VECTOR, [0, 1, 2, 3]), (MATRIX32, [0, 1, 2, 3]), (CUBE, MATRIX), (HOLES, VECTOR),
                 (VECTOR, SCALAR), (VECTOR, "a"), (HUGE, INFINITE), (COMPLEX_MATRIX, VECTOR)):  # fmt: skip
        yield call(y, x)
        yield call(y, x, axis=0)
        yield call(y, x=x, dx=2.0, axis=-1)
    yield call(MATRIX, dx=np.array([1.0, 2.0, 0.5]))
    yield call(MATRIX, dx="a")
    yield call(MATRIX32, dx=2)


@calls("diff")
def _differences() -> Iterator[Call]:
    for x in ARRAYS:
        for n in (0, 1, 2, 5, -1, 1.5, "a"):
            yield call(x, n)
        for axis in (0, -1, 1, 5, "a", None, (0,)):
            yield call(x, axis=axis)
            yield call(x, n=2, axis=axis)
            yield call(x, axis=axis, prepend=0.5)
            yield call(x, axis=axis, append=x)
    for prepend in (0, np.ones((3, 1)), np.ones((3, 2)), np.ones(3), "a", [1.0], np.float32(2), 1j, np.array(2.0)):
        yield call(MATRIX, prepend=prepend)
        yield call(MATRIX32, append=prepend, axis=1)


@calls("ediff1d")
def _flat_differences() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        yield call(x, to_end=1.0)
        yield call(x, to_begin=[1, 2])
        yield call(x, VECTOR, OTHER)
        yield call(x, "a")
        yield call(x, [1.5], [[2.5, 3.5]])


@calls("gradient")
def _slopes() -> Iterator[Call]:
    for x in (*ARRAYS, normal(2), normal(2, 2), np.ones((3, 1))):
        for edge_order in (1, 2, 3, 0, "a"):
            yield call(x, edge_order=edge_order)
            yield call(x, axis=0, edge_order=edge_order)
            yield call(x, 0.5, axis=-1, edge_order=edge_order)
        for axis in AXES:
            yield call(x, axis=axis)
            yield call(x, 2.0, axis=axis)
    for x, *spacings in (
        (VECTOR, np.array([0.0, 1.0, 1.5, 4.0])), (VECTOR, np.array([0.0, 1.0, 2.0, 3.0])), (VECTOR, [0, 1, 3, 7]),
        (MATRIX, 2.0, 3.0), (MATRIX, positive(3).cumsum(), positive(4).cumsum()), (MATRIX, 2.0, positive(4).cumsum()),
        (MATRIX, positive(4).cumsum()), (MATRIX, 1.0, 2.0, 3.0), (VECTOR, positive(3)), (VECTOR, MATRIX), (VECTOR, "a"),
        (VECTOR, 0.0), (VECTOR, np.zeros(4)), (VECTOR, np.array(2.0)), (MATRIX, np.array(2.0), np.array(0.5)),
        (MATRIX32, 2.0), (MATRIX32, positive(3).cumsum(), 2), (COMPLEX_MATRIX, 2.0, 1.0), (EDGES, 0.5), (EDGES, EDGES),
        (VECTOR, 1j), (HUGE, 1e-300), (VECTOR, None), (MATRIX32, np.float32(2)), (HOLES, 1, positive(4).cumsum()),
    ):  # fmt: skip
        for edge_order in (1, 2):
            yield call(x, *spacings, edge_order=edge_order)
        yield call(x, *spacings, axis=0)
        yield call(x, *spacings, axis=(1, 0))


@calls("interp")
def _interpolations() -> Iterator[Call]:
    knots, heights = np.array([0.0, 1.0, 2.5, 4.0]), np.array([1.0, -2.0, 0.5, 3.0])
    for x in (*ARRAYS, knots, 1.5, 2, [0.5, 1.0], "a", None, np.linspace(-1, 5, 9)):
        yield call(x, knots, heights)
        yield call(x, knots, heights, left=-1.0, right=9.0)
        yield call(x, knots, heights, period=3.0)
    for xp, fp in (
        (knots, heights[:3]), (knots[:1], heights[:1]), (EMPTY, EMPTY), (knots[::-1], heights), (knots, HOLES[0]),
        (knots, np.array([1.0, np.inf, -np.inf, np.nan])), (knots, heights + 1j), (SQUARE, SQUARE), (SCALAR, SCALAR),
        (np.array([0.0, 1.0, 1.0, 2.0]), heights), (np.array([-np.inf, 0.0, 1.0, np.inf]), heights), ([0, 1, 2],
        [3, 4, 5]),
        (np.array([0.0, np.nan, 2.0, 3.0]), heights), (knots.astype(np.float32), heights), (knots, "a"), (knots, 1.0),
        (np.array([0.0, 1e300, 1.5e300, 1.7e300]), heights), (knots, np.array([1e308, -1e308, 1e308, 0.0])),
    ):  # fmt: skip
        for x in (
            np.linspace(-1, 5, 13),
            np.float64(0.7),
            np.array(1.0),
            EDGES,
            np.array([0.5, 1.5], np.float32),
            knots,
        ):
            yield call(x, xp, fp)
            yield call(x, xp, fp, -1, 2.5)
    for period in (3.0, -3.0, 0, "a", np.inf):
        yield call(np.linspace(-4, 9, 14), knots, heights, period=period)
        yield call(np.linspace(-4, 9, 14), knots, heights, left=1.0, period=period)
    yield call(VECTOR, knots, heights, left="a")
    yield call(VECTOR, knots, heights, left=np.array(3.0), right=None)
    yield call(VECTOR, knots)


@calls("convolve", "correlate")
def _filters() -> Iterator[Call]:
    arrays = (VECTOR, OTHER[:2], ONE, normal(5), normal(3, dtype=np.float32), COMPLEX_VECTOR, EMPTY, SCALAR, MATRIX,
              EDGES[:9], HOLES[2], HUGE[0], INTEGERS[0], [1.0, 2.0], 3.0, "a", None)  # fmt: skip
    for x in arrays:
        for y in arrays:
            if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
                yield call(x, y)
                for mode in ("full", "same", "valid"):
                    yield call(x, y, mode)
    for mode in ("no such mode", 0, 1, 2, 3, "f", None):
        yield call(normal(5), VECTOR, mode=mode)


@calls("unwrap")
def _unwrapped() -> Iterator[Call]:
    for x in (*ARRAYS, 4 * normal(8), (4 * normal(8)).astype(np.float32), 9 * normal(3, 5)):
        yield call(x)
        for axis in (0, -1, 5, "a", None):
            yield call(x, axis=axis)
        yield call(x, 4.0)
        yield call(x, period=3.0)
        yield call(x, discont=1.0, period=2)
        yield call(x, period="a")


@calls("bincount")
def _counts() -> Iterator[Call]:
    weights = (VECTOR, EDGES[6:10], VECTOR.astype(np.float32), SCALAR, EMPTY, MATRIX, COMPLEX_VECTOR, VECTOR[:3])
    for x in (INDEX, [0, 1, 1, 0], INTEGERS, np.array([0, -1, 2, 0]), np.array([], int), [0.5, 1, 2, 3], "a", 3,
              np.array([0, 1, 2, 3], np.uint8), MASK):  # fmt: skip
        for w in weights:
            yield call(x, w)
            yield call(x, weights=w, minlength=9)
        yield call(x, VECTOR, minlength=-1)
        yield call(x, VECTOR, minlength="a")
        yield call(x, VECTOR, minlength=None)
    yield call(VECTOR)
    yield call(VECTOR, VECTOR)


@calls("piecewise")
def _pieces() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, SCALAR, EDGES, EMPTY, COMPLEX_MATRIX):
        yield call(x, [x.real < 0, x.real >= 0], [lambda v: -v, lambda v: v * 2])
        yield call(x, [x.real < 0], [lambda v: v * v, 1.5])
        yield call(x, [x.real < 0, x.real > 1], [0, 1, 2])
        yield call(x, x.real < 0, [lambda v: v + 1, lambda v: v - 1])
        yield call(x, [x.real < 0], [lambda v: v])
        yield call(x, [x.real < 0], [lambda v, a: v + a, lambda v, a: a], 2.0)
        yield call(x, [x.real < 0], [lambda v, a=1: v + a], a=3.0)
        yield call(x, [x.real < 0, x.real > 1], [1])
        yield call(x, [x.real < 0], [1, 2, 3, 4])
    yield call(VECTOR, [True, False, True, False], [lambda v: -v, 0])
    yield call(VECTOR, [[True, False, True, False], [False, True, True, False]], [lambda v: -v, 3])
    yield call(VECTOR, [[True, False]], [1])
    yield call(VECTOR, [], [1])
    yield call(SCALAR, [True, False], [lambda v: -v, 0])
    yield call(SCALAR, True, [lambda v: -v, 0])


# -- polynomials and windows of one array ----------------------------------------------------------


@calls("polyval")
def _polynomial_values() -> Iterator[Call]:
    for p in (VECTOR, ONE, EMPTY, OTHER.astype(np.float32), COMPLEX_VECTOR, EDGES[:4], [1, 2, 3], MATRIX, SCALAR):
        for x in (VECTOR, MATRIX, MATRIX32, SCALAR, EMPTY, EDGES, COMPLEX_MATRIX, 2.0, 3, [1, 2], "a", None):
            yield call(p, x)


@calls("sinc", "i0", "fix", "real", "imag", "real_if_close", "iscomplex", "isreal", "iscomplexobj",
       "isrealobj", "isneginf", "isposinf", "nonzero", "flatnonzero", "argwhere", "shape", "ndim", "copy")  # fmt: skip
def _of_one() -> Iterator[Call]:
    for x in (*ARRAYS, complex_edges(), COMPLEX_MATRIX.real + 0j, np.array([1 + 1e-15j, 2]), EDGES.astype(np.float16)):
        yield call(x)
    yield call(VECTOR, no_such_option=1)
    yield call()


@calls("angle")
def _angles() -> Iterator[Call]:
    for x in (*ARRAYS, complex_edges(), complex_edges(np.complex64)):
        yield call(x)
        yield call(x, True)
        yield call(x, deg=False)


@calls("round", "around")
def _rounded() -> Iterator[Call]:
    for x in (*ARRAYS, complex_edges()):
        yield call(x)
        for decimals in (0, 1, 2, -1, 3, 400, -400, 1.5, "a", None):
            yield call(x, decimals)
            yield call(x * 1000 / 7, decimals)


@calls("nan_to_num")
def _without_nan() -> Iterator[Call]:
    for x in (*ARRAYS, complex_edges(), complex_edges(np.complex64)):
        yield call(x)
        yield call(x, nan=1.5)
        yield call(x, posinf=7, neginf=-7)
        yield call(x, True, -1.0, 2.0, 3.0)
        yield call(x, nan="a")
        yield call(x, posinf=1e300)


# -- choosing --------------------------------------------------------------------------------------


@calls("where")
def _choices() -> Iterator[Call]:
    for condition in (
        MASK,
        MATRIX > 0,
        True,
        [True, False, False, True],
        INTEGERS,
        VECTOR,
        EMPTY > 0,
        "a",
        None,
        EDGES[:4],
    ):
        yield call(condition)
        for x in (VECTOR, MATRIX32, EDGES[6:10], SCALAR, COMPLEX_VECTOR, 2.0, "a"):
            for y in (OTHER, 3, SCALAR32, INTEGERS, EMPTY, None, np.float64(2)):
                if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
                    yield call(condition, x, y)
    yield call(MASK, VECTOR)
    yield call(VECTOR, MASK, None)


@calls("select")
def _selections() -> Iterator[Call]:
    conditions = [VECTOR > 0, VECTOR < -0.5]
    for choices in ([VECTOR, OTHER], [VECTOR, 2.0], [MATRIX, VECTOR], [VECTOR.astype(np.float32), 1], [EDGES[6:10],
              VECTOR],
                    [VECTOR], [], [COMPLEX_VECTOR, VECTOR], [VECTOR, "a"], [VECTOR, EDGES], [SCALAR,
                    VECTOR]):  # fmt: skip
        yield call(conditions, choices)
        yield call(conditions, choices, 7.5)
        yield call(conditions, choices, default=VECTOR)
        yield call(conditions[:1], choices[:1], np.nan)
    yield call([MASK, True], [VECTOR, OTHER])
    yield call([INTEGERS[0], MASK], [VECTOR, OTHER])
    yield call([VECTOR, MASK], [VECTOR, OTHER])
    yield call([], [], VECTOR)
    yield call([MASK, [True]], [MATRIX, OTHER])


@calls("clip")
def _clipped() -> Iterator[Call]:
    for x in ARRAYS:
        for low, high in ((-1.0, 1.0), (None, 0.5), (0.5, None), (None, None), (1, -1), (float("nan"), 1), (0, np.inf),
                          (VECTOR, 2.0), ("a", 1), (np.float64(0.1), np.float64(1)), (SCALAR, None), (EMPTY,
                          1)):  # fmt: skip
            yield call(x, low, high)
        yield call(x, a_min=0.0, a_max=1.0)
        yield call(x, min=0.0)
        yield call(x, max=0.5, min=-0.5)
        yield call(x, 0.5)
        yield call(x)
        yield call(x, 0, 1, min=0)
        yield call(x, a_min=0, max=1)
    yield call(MATRIX32, 0, 1, dtype=np.float64)
    yield call(MATRIX, no_such_option=1)


_PLACES = (0, -1, 2, INDEX, [0, 1], [[0, 1], [2, 0]], -3, 9, [-9], [], 1.5, [0.0], "a", None, MASK, np.array(1), True)


@calls("take")
def _taken() -> Iterator[Call]:
    for x in ARRAYS:
        for places in _PLACES:
            yield call(x, places)
            yield call(x, places, axis=0)
            yield call(x, places, -1)
        yield call(x, [0, 7, -9], mode="wrap")
        yield call(x, [0, 7, -9], axis=-1, mode="clip")
        yield call(x, 0, mode="no such mode")
        yield call(x, 0, axis=5)
        yield call(x, 0, axis="a")


@calls("take_along_axis")
def _taken_along() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, CUBE, SCALAR, EMPTY, EDGE_MATRIX, COMPLEX_MATRIX):
        for indices in (np.array([0, 1]), np.array([[0, 1, 2]]), np.array([[0], [1], [0]]), np.array([[[0]]]), INDEX,
                        np.array([9]), np.array([-1, -2]), np.array([0.5]), MASK, np.array([], int), [0, 1],
                        np.array([[0, -1], [1, 0], [2, 2]])):  # fmt: skip
            yield call(x, indices)
            for axis in (0, 1, -1, None, 5, "a"):
                yield call(x, indices, axis)


@calls("compress")
def _compressed() -> Iterator[Call]:
    for x in ARRAYS:
        for condition in (MASK, [True, False], [0, 1, 1], [], [False] * 9, [False] * 99 + [True], True, [[True]],
                  MATRIX > 0,
                          "a", VECTOR):  # fmt: skip
            yield call(condition, x)
            for axis in (0, -1, 5, "a"):
                yield call(condition, x, axis)


@calls("extract")
def _extracted() -> Iterator[Call]:
    for x in ARRAYS:
        for condition in (x > 0, MASK, [True], True, [[0, 1, 2]], [], "a", x):
            yield call(condition, x)


@calls("sort", "argsort")
def _sorted() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axis in AXES:
            yield call(x, axis)
        yield call(x, kind="stable")
        yield call(x, stable=True)
    yield call(VECTOR, kind="no such kind")
    yield call(VECTOR, kind="stable", stable=True)
    yield call(VECTOR, order="a")
    yield call(VECTOR, 0, None, None)


@calls("partition", "argpartition")
def _partitioned() -> Iterator[Call]:
    for x in ARRAYS:
        for kth in (0, 1, -1, [0, 2], 9, -9, 1.5, "a", None, [], [[0]]):
            yield call(x, kth)
            for axis in (0, None, 1, 5):
                yield call(x, kth, axis)
    yield call(VECTOR, 1, kind="no such kind")


@calls("unique")
def _unique() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        yield call(x, True, True, True)
        yield call(x, return_inverse=True)
        yield call(x, return_counts=True, axis=0)
        yield call(x, axis=-1)
        yield call(x, axis=5)
        yield call(x, axis="a")
        yield call(x, equal_nan=False)
        yield call(x, return_index=True, axis=1)


@calls("choose")
def _chosen() -> Iterator[Call]:
    for places in (
        np.array([0, 1, 1, 0]),
        [0, 1, 0, 1],
        np.array([0, 2, -1, 5]),
        0,
        np.array([0.5, 1, 0, 1]),
        "a",
        MASK,
    ):
        for choices in (
            [VECTOR, OTHER],
            [VECTOR, 2.0],
            [MATRIX, VECTOR],
            (VECTOR, SCALAR),
            MATRIX,
            [],
            [VECTOR, EDGES],
        ):
            yield call(places, choices)
            yield call(places, choices, mode="wrap")
            yield call(places, choices, mode="clip")
            yield call(places, choices, mode="no such mode")


# -- values alone ----------------------------------------------------------------------------------


@calls("all", "any")
def _logic() -> Iterator[Call]:
    yield from _over_axes()


@calls("argmax", "argmin", "nanargmax", "nanargmin")
def _places_of_extrema() -> Iterator[Call]:
    yield from _over_axes()


@calls("count_nonzero")
def _counted() -> Iterator[Call]:
    yield from _over_axes()


@calls("allclose", "isclose", "array_equal", "array_equiv", "isin", "searchsorted", "digitize", "may_share_memory",
       "shares_memory", "result_type", "common_type")  # fmt: skip
def _comparisons() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, EDGES, SCALAR, EMPTY, MATRIX32):
        for y in (VECTOR, EDGES, 2.0, [1.0, 2.0], "a", MATRIX, EMPTY, np.array([0.0, 1.0, 2.0])):
            yield call(x, y)


@calls("can_cast")
def _casts() -> Iterator[Call]:
    for x in ARRAYS:
        for dtype in (np.float32, np.float64, "c16", np.int64, "no such type", None):
            yield call(x.dtype, dtype)
            yield call(x, dtype)


@calls("size")
def _sizes() -> Iterator[Call]:
    for x in ARRAYS:
        for axis in AXES:
            yield call(x, axis)


@calls("lexsort")
def _lexical() -> Iterator[Call]:
    for keys in ((VECTOR, OTHER), [TIES[0], VECTOR], MATRIX, (VECTOR, EDGES), VECTOR, SCALAR):
        yield call(keys)
        yield call(keys, axis=0)
        yield call(keys, axis=5)


@calls("array2string", "array_repr", "array_str")
def _words() -> Iterator[Call]:
    for x in FEW_ARRAYS:
        yield call(x)
        yield call(x, precision=2)


@calls("einsum_path")
def _paths() -> Iterator[Call]:
    yield call("ij,jk", MATRIX, MATRIX.T)
    yield call("ij,jk", MATRIX)


@calls("diag_indices_from", "tril_indices_from", "triu_indices_from")
def _places_of_triangles() -> Iterator[Call]:
    for x in (SQUARE, MATRIX, VECTOR, CUBE, EMPTY_ROWS):
        yield call(x)
