"""Arrays of ordinary and of edge values, in all dtypes that a tensor can require a gradient in."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FLOATS = (np.float64, np.float32)
COMPLEX = (np.complex128, np.complex64)
_random = np.random.default_rng(11)


def edges(dtype: Any = np.float64) -> Array:
    """Every value at which an implementation may go another way than NumPy's."""
    limits = np.finfo(dtype)
    huge = 1e300 if dtype is np.float64 else 3e38
    plain = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, np.nan, np.inf, -np.inf, huge, -huge]
    small = [limits.tiny, -limits.tiny, limits.smallest_subnormal, limits.eps, limits.max]
    return np.array([*plain, *small], dtype)


def complex_edges(dtype: Any = np.complex128) -> Array:
    parts = np.array([0.0, -0.0, 1.0, -2.5, np.nan, np.inf, -np.inf, 1e30])
    values = np.empty((parts.size, parts.size), dtype)
    values.real, values.imag = parts[:, None], parts
    return values


def normal(*shape: int, dtype: Any = np.float64) -> Array:
    values = _random.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * _random.normal(size=shape)
    return np.asarray(values, dtype)


def positive(*shape: int) -> Array:
    return np.asarray(_random.uniform(0.2, 2.0, size=shape))


VECTOR, OTHER = np.array([0.31, -1.27, 0.84, 2.45]), np.array([-0.62, 1.73, 0.27, -1.94])
MATRIX, MATRIX32 = normal(3, 4), normal(3, 4, dtype=np.float32)
SQUARE, SQUARE32 = normal(3, 3), normal(3, 3, dtype=np.float32)
CUBE = normal(2, 3, 4)
TURNED = normal(4, 3).T
STRIDED = normal(6, 8)[::2, ::-2]
SCALAR, SCALAR32 = np.array(1.5), np.array(-2.5, np.float32)
COMPLEX_MATRIX = normal(3, 4, dtype=np.complex128)
COMPLEX_VECTOR = normal(4, dtype=np.complex64)
ONE = np.array([2.5])
EMPTY, EMPTY_ROWS, EMPTY_COLUMNS = np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0))
EDGES, EDGES32 = edges(), edges(np.float32)
EDGE_MATRIX = edges().reshape(3, 6)
HOLES = np.array([[1.0, np.nan, -3.0, 0.5], [np.nan] * 4, [2.0, -0.0, np.inf, 2.0]])
HOLES32 = HOLES.astype(np.float32)
INFINITE = np.array([[np.inf, 1.0, np.inf], [-np.inf, np.inf, 0.0]])
HUGE = np.array([[1e300, 1e300, -1e300], [1e300, 1e-300, 5e-324]])
TIES = np.array([[1.0, 3.0, 3.0, 1.0], [0.0, -0.0, 2.0, 2.0], [-1.0, 5.0, 5.0, 5.0]])
INTEGERS = np.array([[3, 0, 2, 1], [1, 1, -2, 5], [4, 0, 0, 7]])
INDEX = np.array([2, 0, 3, 0])
MASK = np.array([True, False, True, True])

#: What most functions of one array are called with.
ARRAYS = (
    VECTOR, MATRIX, MATRIX32, CUBE, TURNED, STRIDED, SCALAR, SCALAR32, ONE, EMPTY, EMPTY_ROWS, EMPTY_COLUMNS, EDGES,
    EDGES32, EDGE_MATRIX, HOLES, HOLES32, INFINITE, HUGE, TIES, COMPLEX_MATRIX, COMPLEX_VECTOR,
)  # fmt: skip
FEW_ARRAYS = (MATRIX, CUBE, MATRIX32, SCALAR, EMPTY_ROWS, EDGE_MATRIX, COMPLEX_MATRIX)
#: Axes that some of them have, and some that none has.
AXES = (None, 0, -1, 1, (0, 1), (0, -1), (), 5, -7, (0, 0), "a", 1.5)
