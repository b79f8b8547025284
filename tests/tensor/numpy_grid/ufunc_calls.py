"""Calls of ufuncs and of their methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .comparison import Call, call
from .values import (
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
    HOLES,
    HUGE,
    INFINITE,
    INTEGERS,
    MASK,
    MATRIX,
    MATRIX32,
    ONE,
    OTHER,
    SCALAR,
    SCALAR32,
    STRIDED,
    TIES,
    VECTOR,
    complex_edges,
    edges,
    normal,
)  # fmt: skip

HALF = np.array([0.0, 1.5, np.nan, np.inf, -2.0, 6e4], np.float16)
_PLAIN = (VECTOR, MATRIX32, STRIDED, SCALAR, SCALAR32, EMPTY, EMPTY_ROWS, EDGES, EDGES32, COMPLEX_VECTOR)


def ufunc_calls(ufunc: Any) -> Iterator[Call]:
    if ufunc.signature is not None:
        yield from _product_calls()
    elif ufunc.nin == 1:
        yield from _unary_calls()
    elif ufunc.nin == 2:
        yield from _binary_calls()
    yield call()
    yield call(*[VECTOR] * (ufunc.nin - 1))
    yield call(*[VECTOR] * (ufunc.nin + ufunc.nout + 1))
    yield call(*[VECTOR] * ufunc.nin, no_such_option=1)
    yield call(*[MATRIX] * ufunc.nin, casting="no such casting")


def _unary_calls() -> Iterator[Call]:
    for x in (*_PLAIN, complex_edges(), complex_edges(np.complex64), HALF, normal(2, 2, dtype=np.complex128)):
        yield call(x)
    for x in (EDGES32, VECTOR):
        yield call(x, dtype=np.float64)
        yield call(x, dtype=np.complex128)
        yield call(x, dtype=np.int64)
        yield call(x, casting="unsafe", dtype=np.float32)
    yield call(VECTOR, where=True)


def _binary_calls() -> Iterator[Call]:
    for x, y in ((EDGES, EDGES), (EDGES32, EDGES32), (EDGES, EDGES32), (EDGES32, INTEGERS[0]), (EDGES, MASK)):
        yield call(x[:, None], y)
    for x in (EDGES, EDGES32, INTEGERS[0].astype(np.int32)):
        yield call(x[:, None], EDGES[None])
    for x in (EDGES, EDGES32, HALF, SCALAR32, complex_edges()[:3]):
        for number in (0.0, -0.0, 2, -3, 1.5, float("nan"), float("inf"), 1e300, True, np.float64(2.0), np.float32(3)):
            yield call(x, number)
            yield call(number, x)
    for x, y in (
        (COMPLEX_VECTOR, VECTOR), (VECTOR, complex_edges()[:, :4]), (MATRIX, VECTOR), (SCALAR, MATRIX32), (ONE, EMPTY),
        (EMPTY, SCALAR), (EMPTY_ROWS, EMPTY_ROWS), (CUBE, MATRIX), (STRIDED, [1, 2, 3, 4]), ([[1.5]], VECTOR),
        (VECTOR, EDGES), (MATRIX, EMPTY), (VECTOR, "a"), (VECTOR, None), ("abc", VECTOR), (VECTOR, [None] * 4),
        (VECTOR, [1, [2]]), (VECTOR, {}), (HALF, MASK[:1]), (INTEGERS, VECTOR), (VECTOR, 10**400),
    ):  # fmt: skip
        yield call(x, y)
    yield call(VECTOR, OTHER, dtype=np.float32)
    yield call(EDGES32, EDGES32, dtype=np.float64)
    yield call(EDGES32, EDGES32, dtype=np.int64)


def _product_calls() -> Iterator[Call]:
    operands = (VECTOR, OTHER, MATRIX, MATRIX32, normal(4, 3), CUBE, normal(2, 4, 2), SCALAR, EMPTY, EMPTY_ROWS,
                EMPTY_COLUMNS, COMPLEX_MATRIX, COMPLEX_VECTOR, HOLES, HUGE, INFINITE, INTEGERS)  # fmt: skip
    for x in operands:
        for y in operands:
            yield call(x, y)
    for y in (2.0, "a", None, [1.0, 2.0, 3.0, 4.0], [None]):
        yield call(VECTOR, y)
    yield call(VECTOR, OTHER, dtype=np.float32)
    yield call(MATRIX, MATRIX.T, axes=5)


def reduce_calls() -> Iterator[Call]:
    arrays = (VECTOR, MATRIX, MATRIX32, CUBE, SCALAR, ONE, EMPTY, EMPTY_ROWS, EMPTY_COLUMNS, EDGE_MATRIX, EDGES32,
           HOLES,
              HUGE, INFINITE, TIES, STRIDED, COMPLEX_MATRIX, complex_edges())  # fmt: skip
    for x in arrays:
        yield call(x)
        for axis in AXES:
            yield call(x, axis)
        yield call(x, axis=-1, keepdims=True)
        yield call(x, axis=None, keepdims=True)
        yield call(x, axis=0, initial=2.0)
        yield call(x, initial=-np.inf)
        yield call(x, initial=None)
    yield call(MATRIX, dtype=np.float32)
    yield call(EDGES32, dtype=np.float64)
    yield call(EDGES32, dtype="no such type")
    yield call(EDGES32, dtype=np.complex128)
    yield call(MATRIX, initial="a")
    yield call()
    yield call(MATRIX, 0, None, None, True)
    yield call(MATRIX, no_such_option=1)
    for x in (MATRIX, CUBE[0], HOLES):
        yield call(x, where=MASK, initial=1.0)
        yield call(x, axis=1, where=[[True], [False], [True]], initial=0.5)
        yield call(x, where=MASK)
        yield call(x, where=[True, False])


def accumulate_calls() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, CUBE, SCALAR, ONE, EMPTY, EMPTY_ROWS, EMPTY_COLUMNS, HOLES, HUGE, INFINITE,
              TIES,
              edges().reshape(3, 6), COMPLEX_MATRIX):  # fmt: skip
        yield call(x)
        for axis in (0, -1, 1, 5, -7, "a", None, (0, 1), (0,)):
            yield call(x, axis)
    yield call(MATRIX, dtype=np.float32)
    yield call(EDGES32, dtype=np.float64)
    yield call(EDGES32, 0, "no such type")
    yield call(EDGES32, no_such_option=1)


def outer_calls() -> Iterator[Call]:
    arrays = (VECTOR, MATRIX32, SCALAR, EMPTY, EDGES, COMPLEX_VECTOR, INTEGERS[0])
    for x in arrays:
        for y in (*arrays, 2.0, [1.0, 2.0]):
            yield call(x, y)
    yield call(VECTOR)
    yield call(VECTOR, "a")
    yield call(VECTOR, VECTOR, dtype=np.float32)
    yield call(VECTOR, None)


def reduceat_calls() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, CUBE, EDGE_MATRIX, HOLES, COMPLEX_MATRIX, SCALAR, EMPTY, EMPTY_ROWS):
        for indices in ([0, 2], [0, 1, 0, 2], [2, 1, 1], [1], [], [0, 9], [-1], 1, [[0, 1]], [0.5], "a", None):
            yield call(x, indices)
            yield call(x, indices, axis=-1)
        yield call(x, [0, 1], 5)
        yield call(x, [0, 1], dtype=np.float64)
    yield call(VECTOR)
