"""Calls of the functions of `np.linalg` and `np.fft`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .comparison import Call, call
from .function_calls import _tensordot_calls, calls
from .values import (
    ARRAYS,
    AXES,
    COMPLEX_MATRIX,
    COMPLEX_VECTOR,
    CUBE,
    EDGES,
    EMPTY,
    EMPTY_COLUMNS,
    EMPTY_ROWS,
    HOLES,
    HUGE,
    INFINITE,
    INTEGERS,
    MATRIX,
    MATRIX32,
    OTHER,
    SCALAR,
    SQUARE,
    SQUARE32,
    STRIDED,
    TURNED,
    VECTOR,
    normal,
)  # fmt: skip

DEFINITE = SQUARE @ SQUARE.T + 3 * np.eye(3)
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
BATCH = normal(2, 3, 3) + 3 * np.eye(3)
COMPLEX_SQUARE = normal(3, 3, dtype=np.complex128)
NAN_SQUARE, INFINITE_SQUARE = np.array([[1.0, np.nan], [0.0, 1.0]]), np.array([[np.inf, 1.0], [0.0, 1.0]])
HUGE_SQUARE, TINY_SQUARE = np.diag([1e300, 1e200, 1e10]), np.diag([1e-300, 1e-200, 1e-10])
NO_MATRICES, NO_ROWS = np.zeros((0, 3, 3)), np.zeros((0, 0))
MATRICES = (
    SQUARE, SQUARE32, DEFINITE, SINGULAR, BATCH, COMPLEX_SQUARE, NAN_SQUARE, INFINITE_SQUARE, HUGE_SQUARE, TINY_SQUARE,
    NO_MATRICES, NO_ROWS, np.zeros((2, 2)), np.eye(3), SQUARE.T, np.array([[2.5]]), -DEFINITE, MATRIX, VECTOR, SCALAR,
    EMPTY_ROWS, EMPTY_COLUMNS, CUBE, STRIDED, normal(5, 3), HUGE, COMPLEX_MATRIX, SQUARE.astype(np.float16),
)  # fmt: skip


@calls("linalg.inv", "linalg.det", "linalg.slogdet", "linalg.eig", "linalg.eigvals", "linalg.svdvals",
       "linalg.matrix_transpose", "linalg.matrix_rank")  # fmt: skip
def _of_a_matrix() -> Iterator[Call]:
    for x in MATRICES:
        yield call(x)
    yield call()
    yield call("a")
    yield call(SQUARE, no_such_option=1)


@calls("linalg.cholesky")
def _factors() -> Iterator[Call]:
    for x in (*MATRICES, np.triu(DEFINITE), np.tril(DEFINITE), DEFINITE + 1j * np.triu(np.ones((3, 3)), 1)):
        yield call(x)
        yield call(x, upper=True)


@calls("linalg.qr")
def _orthogonal() -> Iterator[Call]:
    for x in MATRICES:
        yield call(x)
        for mode in ("reduced", "complete", "r", "no such mode", "raw", "full", 3):
            yield call(x, mode)


@calls("linalg.svd")
def _singular() -> Iterator[Call]:
    for x in MATRICES:
        yield call(x)
        yield call(x, False)
        yield call(x, compute_uv=False)
        yield call(x, full_matrices=False, hermitian=True)
        yield call(x, compute_uv=False, hermitian=True)
    yield call(DEFINITE, hermitian=True)


@calls("linalg.eigh", "linalg.eigvalsh")
def _symmetric() -> Iterator[Call]:
    for x in MATRICES:
        for triangle in ("L", "U", "l", "u", "a", 3, None):
            yield call(x, triangle)
        yield call(x)


@calls("linalg.pinv")
def _pseudo_inverses() -> Iterator[Call]:
    for x in MATRICES:
        yield call(x)
        yield call(x, 0.3)
        yield call(x, rtol=0.2)
        yield call(x, hermitian=True)
        yield call(x, rcond="a")
        yield call(x, 0.1, rtol=0.1)


@calls("linalg.matrix_power")
def _powers() -> Iterator[Call]:
    for x in MATRICES:
        for n in (0, 1, 2, 3, 7, -1, -2, 1.5, "a", np.int64(2), None):
            yield call(x, n)


@calls("linalg.norm")
def _norms() -> Iterator[Call]:
    for x in (*ARRAYS, *MATRICES[:11]):
        yield call(x)
        yield call(x, keepdims=True)
        for order in (None, 2, 1, -1, -2, 0, 3, 0.5, np.inf, -np.inf, "fro", "nuc", "a", -0.5, float("nan"), 1j):
            yield call(x, order)
            for axis in (0, -1, (0, 1), (1, 0), (-1, -2)):
                yield call(x, order, axis)
            yield call(x, order, axis=-1, keepdims=True)
            yield call(x, order, axis=(0, 1), keepdims=True)
        for axis in AXES:
            yield call(x, axis=axis)
        yield call(x, None, (0, 1, 2))


@calls("linalg.vector_norm")
def _vector_norms() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for order in (2, 1, -1, 0, 3, 0.5, np.inf, -np.inf, "fro", "a", -2.5):
            yield call(x, ord=order)
            yield call(x, ord=order, axis=-1)
            yield call(x, ord=order, axis=(0, 1), keepdims=True)
        for axis in AXES:
            yield call(x, axis=axis)


@calls("linalg.matrix_norm")
def _matrix_norms() -> Iterator[Call]:
    for x in (*ARRAYS, *MATRICES):
        yield call(x)
        for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf, 3, "a", None):
            yield call(x, ord=order)
            yield call(x, ord=order, keepdims=True)


@calls("linalg.cond")
def _conditions() -> Iterator[Call]:
    for x in MATRICES:
        yield call(x)
        for order in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc", 3, "a"):
            yield call(x, order)


@calls("linalg.solve")
def _solutions() -> Iterator[Call]:
    for x in MATRICES:
        for y in (VECTOR[:3], SQUARE, normal(3, 2), normal(2), normal(2, 2), normal(2, 3, 1), normal(1, 3, 2),
                  SCALAR, EMPTY,
                  COMPLEX_SQUARE, "a", SQUARE32, [1, 2, 3], INTEGERS[:, :3]):  # fmt: skip
            yield call(x, y)


@calls("linalg.lstsq")
def _least_squares() -> Iterator[Call]:
    for x in (normal(5, 3), SQUARE, SQUARE32, MATRIX, SINGULAR, COMPLEX_SQUARE, VECTOR, CUBE, NAN_SQUARE, NO_ROWS,
              EMPTY_ROWS,
              EMPTY_COLUMNS, normal(5, 1)):  # fmt: skip
        for y in (normal(5), normal(5, 2), VECTOR[:3], normal(3, 2), normal(2), SCALAR, EMPTY, "a"):
            yield call(x, y)
            yield call(x, y, 0.1)
    yield call(SQUARE, VECTOR[:3], rcond="a")
    for rcond in (None, 0.1, 0.01, -1, 0.0, 2.0):  # of which 0.1 and 2.0 leave some singular values out
        yield call(np.diag([1.0, 0.05, 2.0]), VECTOR[:3], rcond)


@calls("linalg.multi_dot")
def _chains() -> Iterator[Call]:
    for arrays in ([MATRIX, MATRIX.T], [MATRIX, MATRIX.T, MATRIX], [VECTOR, MATRIX.T, SQUARE], [MATRIX, VECTOR],
              [VECTOR, OTHER],
                   [VECTOR[:3], SQUARE, VECTOR[:3]], [MATRIX], [], [MATRIX, MATRIX], [CUBE, MATRIX], [MATRIX,
                   CUBE], [SCALAR, MATRIX],
                   [MATRIX, MATRIX.T, MATRIX, MATRIX.T], [MATRIX32, MATRIX.T], [COMPLEX_MATRIX, MATRIX.T], [MATRIX,
                   "a"],
                   [EMPTY_ROWS, EMPTY_COLUMNS], (MATRIX, MATRIX.T, MATRIX)):  # fmt: skip
        yield call(arrays)


_PAIRS = (VECTOR, OTHER, VECTOR[:3], MATRIX, MATRIX32, TURNED, SQUARE, CUBE, SCALAR, EMPTY, EMPTY_ROWS, EMPTY_COLUMNS,
          COMPLEX_VECTOR, HOLES, HUGE, INFINITE, INTEGERS, "a", 2.0)  # fmt: skip


@calls("linalg.matmul", "linalg.vecdot", "linalg.outer", "linalg.cross")
def _products() -> Iterator[Call]:
    for x in _PAIRS:
        for y in _PAIRS:
            if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
                yield call(x, y)


@calls("linalg.tensordot")
def _tensor_products() -> Iterator[Call]:
    yield from _tensordot_calls()


@calls("linalg.diagonal", "linalg.trace")
def _diagonals() -> Iterator[Call]:
    for x in (*ARRAYS, SQUARE, BATCH):
        yield call(x)
        for offset in (1, -1, 9, 1.5, "a"):
            yield call(x, offset=offset)


@calls("linalg.tensorsolve")
def _tensor_solutions() -> Iterator[Call]:
    for x, y in ((normal(6, 2, 3), normal(6)), (normal(2, 3, 6), normal(2, 3)), (SQUARE, VECTOR[:3]), (SQUARE,
              VECTOR), (CUBE, CUBE),
                 (np.ones((2, 2)), normal(2))):  # fmt: skip
        yield call(x, y)
    yield call(normal(2, 6, 3), normal(6), axes=(0,))
    yield call(normal(6, 2, 3), normal(6), (5,))


@calls("linalg.tensorinv")
def _tensor_inverses() -> Iterator[Call]:
    for x in (normal(4, 6, 8, 3), normal(6, 2, 3), SQUARE, CUBE, np.ones((2, 2)), VECTOR):
        for ind in (1, 2, 0, -1, "a"):
            yield call(x, ind)


# -- np.fft ----------------------------------------------------------------------------------------

_SIGNALS = (VECTOR, MATRIX, MATRIX32, CUBE, STRIDED, SCALAR, EMPTY, EMPTY_ROWS, EMPTY_COLUMNS, EDGES, HOLES, HUGE,
COMPLEX_MATRIX,
            COMPLEX_VECTOR, normal(7), normal(5, 3), normal(4, 5, dtype=np.complex64), normal(1))  # fmt: skip

#: Of an empty array NumPy's inverse real transforms return memory that nobody wrote.
_FILLED = tuple(x for x in _SIGNALS if x.size)


@calls("fft.fft", "fft.ifft", "fft.rfft", "fft.ihfft")
def _spectra() -> Iterator[Call]:
    yield from _along_one(_SIGNALS)


@calls("fft.irfft", "fft.hfft")
def _real_signals() -> Iterator[Call]:
    yield from _along_one(_FILLED)


def _along_one(signals: tuple[Any, ...]) -> Iterator[Call]:
    for x in signals:
        yield call(x)
        for n in (1, 3, 6, 0, -1, 1.5, "a"):
            yield call(x, n)
        for axis in (0, -1, 1, 5, "a", None, (0,)):
            yield call(x, axis=axis)
            yield call(x, 5, axis)
        for norm in ("backward", "ortho", "forward", "no such norm", None, 3):
            yield call(x, norm=norm)
            yield call(x, 6, -1, norm)


@calls("fft.fft2", "fft.ifft2", "fft.rfft2", "fft.fftn", "fft.ifftn", "fft.rfftn")
def _spectra_of_several() -> Iterator[Call]:
    yield from _along_several(_SIGNALS)


@calls("fft.irfft2", "fft.irfftn")
def _real_signals_of_several() -> Iterator[Call]:
    yield from _along_several(_FILLED)


def _along_several(signals: tuple[Any, ...]) -> Iterator[Call]:
    sizes: tuple[Any, ...] = ((2, 3), (5, 4), (3,), (1, 1), (0, 2), (-1, 3), (1.5, 2), "a", (2, 3, 4), 3, ())
    for x in signals:
        yield call(x)
        for s in sizes:
            yield call(x, s)
            yield call(x, s=s, axes=(0, -1))
        for axes in ((0, 1), (-1, 0), (0,), (1,), (0, 0), (0, 5), 0, "a", None, (), (0, 1, 2), [0, 1]):
            yield call(x, axes=axes)
        for norm in ("ortho", "forward", "no such norm", 3):
            yield call(x, norm=norm)


@calls("fft.fftshift", "fft.ifftshift")
def _shifts() -> Iterator[Call]:
    for x in _SIGNALS:
        yield call(x)
        for axes in (0, -1, (0, 1), (0,), 5, (0, 5), "a", (), (0, 0)):
            yield call(x, axes)
