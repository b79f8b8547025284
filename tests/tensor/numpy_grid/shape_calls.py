"""Calls of NumPy's functions that move, join, split and write elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .comparison import Call, call
from .function_calls import calls
from .values import (
    ARRAYS,
    AXES,
    COMPLEX_MATRIX,
    COMPLEX_VECTOR,
    CUBE,
    EDGE_MATRIX,
    EDGES,
    EMPTY,
    EMPTY_COLUMNS,
    EMPTY_ROWS,
    FEW_ARRAYS,
    INDEX,
    INTEGERS,
    MASK,
    MATRIX,
    MATRIX32,
    ONE,
    OTHER,
    SCALAR,
    SCALAR32,
    SQUARE,
    STRIDED,
    TURNED,
    VECTOR,
    normal,
)  # fmt: skip

ORDERS = ("C", "F", "A", "K", None, "no such order", 3)


@calls("reshape")
def _reshaped() -> Iterator[Call]:
    for x in ARRAYS:
        for shape in (-1, (-1,), (2, -1), (x.size,), x.size, (), (1, 1), (-1, -1), (0, -1), (7, 9), "a", None, (2.0, 6),
                      [4, 3], (4, 3), (3, -2)):  # fmt: skip
            yield call(x, shape)
        for order in ORDERS:
            yield call(x, -1, order)
            yield call(x, (-1, 2), order=order)
    yield call(MATRIX, shape=(4, 3))
    yield call(MATRIX)
    yield call(MATRIX, (2, 6), copy=True)
    for x in (CUBE, TURNED, STRIDED):
        yield call(x, (2, -1), order="F")
        yield call(x, (-1, 2), order="A")


@calls("ravel")
def _flat() -> Iterator[Call]:
    for x in ARRAYS:
        for order in ORDERS:
            yield call(x, order)
        yield call(x)


@calls("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays")
def _several() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
    yield call()
    yield call(VECTOR, MATRIX, SCALAR)
    yield call(VECTOR, 2.0, [1, 2])
    yield call(VECTOR, "a")
    yield call(VECTOR, EDGES)


@calls("rollaxis")
def _rolled_axes() -> Iterator[Call]:
    for x in ARRAYS:
        for axis in (0, 1, -1, 2, 5, -7, "a"):
            yield call(x, axis)
            for start in (0, 1, -1, 2, 3, 9, "a"):
                yield call(x, axis, start)


@calls("rot90")
def _turned() -> Iterator[Call]:
    for x in ARRAYS:
        for k in (0, 1, 2, 3, 4, -1, -6, 1.5, "a"):
            yield call(x, k)
        for axes in ((0, 1), (1, 0), (0, -1), (1, 2), (0, 0), (0,), (0, 1, 2), (0, 5), 0, "ab", (-1, -2), (0, -2)):
            yield call(x, axes=axes)
            yield call(x, 3, axes)


@calls("diagonal", "trace")
def _diagonals() -> Iterator[Call]:
    for x in (*ARRAYS, SQUARE, np.zeros((0, 3, 3))):
        yield call(x)
        for offset in (0, 1, -1, 3, -9, 9, 1.5, "a"):
            yield call(x, offset)
            yield call(x, offset=offset, axis1=1, axis2=0)
        for axes in ((0, 2), (2, 1), (-1, -2), (0, 0), (0, 5), (-7, 1), ("a", 0)):
            yield call(x, 0, *axes)


@calls("diag", "diagflat", "tril", "triu")
def _matrices() -> Iterator[Call]:
    for x in (*ARRAYS, SQUARE):
        yield call(x)
        for k in (1, -1, 3, -9, 9, 1.5, "a", None):
            yield call(x, k)


@calls("meshgrid")
def _grids() -> Iterator[Call]:
    for arrays in ((VECTOR,), (VECTOR, OTHER[:3]), (VECTOR, OTHER[:3], ONE), (SCALAR, VECTOR), (EMPTY, VECTOR),
              (MATRIX, VECTOR),
                   (VECTOR, [1, 2]), (VECTOR.astype(np.float32), VECTOR), (VECTOR, "a"), (VECTOR, 2.0)):  # fmt: skip
        for indexing in ("xy", "ij", "no such way"):
            yield call(*arrays, indexing=indexing)
            yield call(*arrays, indexing=indexing, sparse=True)
            yield call(*arrays, indexing=indexing, copy=False)
    yield call(VECTOR, no_such_option=1)


@calls("zeros_like", "ones_like")
def _like() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        yield call(x, np.float32)
        yield call(x, dtype=np.int64, shape=(2, 2))
        yield call(x, shape=3)
        yield call(x, order="F")
        yield call(x, dtype="no such type")
        yield call(x, shape="a")
        yield call(x, shape=-1)
        yield call(x, order="no such order")
    yield call()


@calls("empty_like")
def _unfilled() -> Iterator[Call]:
    for x in (EMPTY, EMPTY_ROWS, EMPTY_COLUMNS):
        yield call(x)
        yield call(x, dtype=np.float32)
        yield call(x, shape=(0, 2))
        yield call(x, shape="a")
        yield call(x, dtype="no such type")


@calls("full_like")
def _filled_like() -> Iterator[Call]:
    for x in ARRAYS:
        for value in (2.5, 3, SCALAR, SCALAR32, VECTOR, [1.0], "a", None, np.nan, EDGES, 1j, True, np.float64(2)):
            yield call(x, value)
            yield call(x, value, shape=(2, 4))
            yield call(x, value, dtype=np.float32)


@calls("full")
def _filled() -> Iterator[Call]:
    for value in (SCALAR, VECTOR, MATRIX32, EDGES, COMPLEX_VECTOR, EMPTY):
        for shape in ((3, 4), 4, (), (2, 3, 4), "a", -1, (0,), (5, 0), None, 1.5):
            yield call(shape, value, like=VECTOR)
            yield call(shape, value, np.float32, like=VECTOR)
            yield call(shape, value, dtype=np.float64, order="F", like=VECTOR)
            yield call(shape, 2.5, like=value)
    yield call((2,), like=VECTOR)
    yield call((2,), "a", like=VECTOR)
    yield call((2,), 1, "no such type", like=VECTOR)


# -- joining and splitting -------------------------------------------------------------------------

_LISTS: tuple[Any, ...] = (
    [VECTOR, OTHER], (VECTOR, OTHER), [VECTOR], [], [MATRIX, MATRIX32], [MATRIX, VECTOR], [CUBE, CUBE], [SCALAR,
    SCALAR32],
    [VECTOR, [1, 2]], [VECTOR, INDEX], [EMPTY, VECTOR], [EMPTY_ROWS, EMPTY_ROWS], [VECTOR, 2.0], [VECTOR, "a"],
    MATRIX, CUBE,
    [COMPLEX_VECTOR, VECTOR], [VECTOR, None], SCALAR, [EDGES, EDGES], [MATRIX, STRIDED], [MATRIX, normal(2, 4)],
    [MATRIX, normal(3, 2)], [VECTOR, MASK], [MATRIX, TURNED],
)  # fmt: skip


@calls("concatenate")
def _joined() -> Iterator[Call]:
    for arrays in _LISTS:
        yield call(arrays)
        for axis in (0, 1, -1, None, 5, "a", (0, 1)):
            yield call(arrays, axis)
        yield call(arrays, axis=None, dtype=np.float32)
        yield call(arrays, dtype=np.float64)
        yield call(arrays, dtype=np.float32, casting="no")
        yield call(arrays, dtype=np.int64, casting="unsafe")
        yield call(arrays, dtype="no such type")


@calls("stack")
def _stacked() -> Iterator[Call]:
    for arrays in _LISTS:
        yield call(arrays)
        for axis in (0, 1, -1, 2, None, 5, "a"):
            yield call(arrays, axis)
        yield call(arrays, dtype=np.float32)
        yield call(arrays, dtype=np.float32, casting="no")


@calls("hstack", "vstack")
def _stacked_across() -> Iterator[Call]:
    for arrays in _LISTS:
        yield call(arrays)
        yield call(arrays, dtype=np.float32)
        yield call(arrays, dtype=np.float32, casting="no")
        yield call(arrays, dtype="no such type")


@calls("dstack", "column_stack")
def _stacked_in_depth() -> Iterator[Call]:
    for arrays in _LISTS:
        yield call(arrays)


@calls("block")
def _blocks() -> Iterator[Call]:
    for arrays in (*_LISTS, [[SQUARE, MATRIX], [normal(2, 3), normal(2, 4)]], [[1.0, VECTOR], [2.0, OTHER]],
              VECTOR, [[]],
                   [[VECTOR], OTHER], [[VECTOR, OTHER], [OTHER]], [[[SCALAR]]], [[[MATRIX, MATRIX]], [[MATRIX,
                   MATRIX]]],
                   [(VECTOR, OTHER)], [[SCALAR, 1.0], [2, SCALAR]]):  # fmt: skip
        yield call(arrays)


@calls("append")
def _appended() -> Iterator[Call]:
    for x in ARRAYS:
        for values in (VECTOR, MATRIX, 2.0, [1, 2], SCALAR, "a", EMPTY, COMPLEX_VECTOR):
            yield call(x, values)
            for axis in (0, -1, 5):
                yield call(x, values, axis)
    yield call([1, 2], VECTOR)
    yield call([[1.0, 2.0]], normal(3, 2), axis=0)
    yield call(2.0, VECTOR)


@calls("split", "array_split")
def _split() -> Iterator[Call]:
    for x in ARRAYS:
        for sections in (1, 2, 3, 4, [1], [1, 2], [2, 1], [0, 9], [], [-1], 0, -1, 1.5, "a", None, np.array([1, 3])):
            yield call(x, sections)
            for axis in (0, 1, -1, 5, "a"):
                yield call(x, sections, axis)


@calls("hsplit", "vsplit", "dsplit")
def _split_across() -> Iterator[Call]:
    for x in ARRAYS:
        for sections in (1, 2, 3, [1], [1, 2], 0, "a"):
            yield call(x, sections)


@calls("unstack")
def _unstacked() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axis in (0, 1, -1, 5, "a", None):
            yield call(x, axis=axis)


@calls("delete")
def _deleted() -> Iterator[Call]:
    for x in ARRAYS:
        for places in (0, -1, [0, 1], [], slice(0, 2), slice(None, None, -1), 9, [9], [-9], MASK, [True, False],
                  1.5, "a",
                       None, np.array([[0, 1]]), slice(1, 99), True, np.array([1])):  # fmt: skip
            yield call(x, places)
            for axis in (0, 1, -1, 5, "a"):
                yield call(x, places, axis)


@calls("insert")
def _inserted() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, CUBE, SCALAR, EMPTY, EMPTY_ROWS, EDGE_MATRIX, COMPLEX_MATRIX):
        for places in (0, 1, -1, [0, 2], [1, 1], [1], [], slice(0, 2), 9, -9, [9], MASK, 1.5, "a", np.array(1)):
            for values in (2.5, SCALAR, VECTOR, [1, 2], OTHER[:2], "a", EMPTY):
                yield call(x, places, values)
                yield call(x, places, values, 0)
                yield call(x, places, values, axis=1)
        yield call(x, 0, 1.0, 5)
    for place, values, axis in ((1, OTHER[:3], 1), ([1], OTHER[:3][:, None], 1), (1, OTHER, 0), ([0, 3], MATRIX[:2], 0),
                                (1, SQUARE, 1), ([1], SQUARE, 1), ([1, 2], [1, 2], 1)):  # fmt: skip
        yield call(MATRIX, place, values, axis)


@calls("tile")
def _tiled() -> Iterator[Call]:
    for x in ARRAYS:
        for repetitions in (2, (2,), (2, 1), (1, 2, 3), 0, (0, 2), (), -1, 1.5, "a", None, [2, 2], np.array([1, 2])):
            yield call(x, repetitions)


@calls("repeat")
def _repeated() -> Iterator[Call]:
    for x in ARRAYS:
        for repeats in (2, 0, [1, 2, 0, 3], [2], [1, 2, 3], -1, 1.5, "a", None, np.array(3), [], [[1]], True):
            yield call(x, repeats)
            for axis in (0, 1, -1, 5, "a"):
                yield call(x, repeats, axis)


@calls("pad")
def _padded() -> Iterator[Call]:
    modes: tuple[Any, ...] = (
        "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap",
    )  # fmt: skip
    for x in FEW_ARRAYS + (VECTOR, EMPTY, ONE, EDGES, normal(2, 1)):
        for mode in (*modes, "no such mode", None):
            for width in (1, 3, (2, 1), ((1, 2), (0, 1)), 0, 9):
                yield call(x, width, mode)
        for width in (-1, 1.5, "a", ((1, 2, 3),), ((1,), (2,)), (1, 2, 3), ((1, 2), (3, 4), (5, 6), (7, 8)), (), None):
            yield call(x, width)
    for mode in ("maximum", "mean", "median", "minimum"):
        for length in (1, 2, (1, 2), ((1, 2), (3, 1)), None, 99, 0, -1, 1.5, "a"):
            yield call(MATRIX, 2, mode, stat_length=length)
    for values in (1.5, (1, 2), ((1, 2), (3, 4)), SCALAR, VECTOR[:2], SQUARE[:2, :2], "a", np.nan, (1, 2, 3), 1j):
        yield call(MATRIX, 2, "constant", constant_values=values)
        yield call(MATRIX, (1, 3), "linear_ramp", end_values=values)
        yield call(MATRIX32, 1, constant_values=values)
    for mode in ("reflect", "symmetric"):
        for kind in ("even", "odd", "no such kind"):
            for width in (1, 2, 7, (0, 3)):
                yield call(MATRIX, width, mode, reflect_type=kind)
                yield call(VECTOR, width, mode, reflect_type=kind)
    yield call(MATRIX, 1, "constant", stat_length=2)
    yield call(MATRIX, 1, "edge", constant_values=2)
    yield call(MATRIX, {0: 1, -1: (2, 0)})
    yield call(MATRIX, {0: 1}, "wrap")
    yield call(MATRIX, {5: 1})
    yield call(MATRIX)


@calls("linspace", "geomspace")
def _spaced() -> Iterator[Call]:
    yield from _space_calls()


@calls("logspace")
def _log_spaced() -> Iterator[Call]:
    yield from _space_calls()
    yield call(SCALAR, 2.0, 5, base=np.array(3.0))
    yield call(SCALAR, 2.0, 5, base=np.array([2.0, 3.0]))
    yield call(SCALAR, 2.0, 5, base=2)
    yield call(1.0, 2.0, 5, base=VECTOR)


def _space_calls() -> Iterator[Call]:
    for start, stop in ((SCALAR, 2.0), (1.0, SCALAR), (SCALAR, SCALAR32), (VECTOR, OTHER), (0, VECTOR), (MATRIX,
              VECTOR),
                        (EDGES, 2.0), (1, EDGES), (SCALAR32, 3), (COMPLEX_VECTOR, 2.0), (VECTOR, EDGES), (VECTOR, "a"),
                        (EMPTY, 1.0), (SCALAR, SCALAR), (np.array(1.0), np.array(-5.0)), (SCALAR, None)):  # fmt: skip
        for num in (0, 1, 2, 5, 7):
            yield call(start, stop, num)
            yield call(start, stop, num, endpoint=False)
        yield call(start, stop, 4, axis=-1)
        yield call(start, stop, 4, axis=5)
        yield call(start, stop, 4, dtype=np.float32)
        yield call(start, stop, 4, dtype=np.int64)
        yield call(start, stop)
        yield call(start, stop, -1)
        yield call(start, stop, 2.5)
        yield call(start, stop, "a")


@calls("vander")
def _powers() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for n in (0, 1, 3, 7, -1, 1.5, "a"):
            yield call(x, n)
            yield call(x, n, True)


@calls("resize")
def _resized() -> Iterator[Call]:
    for x in ARRAYS:
        for shape in (3, (2, 2), (5, 7), 0, (0, 3), (), -1, (2, -1), 1.5, "a", None, [2, 3], np.array([2, 2])):
            yield call(x, shape)


# -- what is one call ------------------------------------------------------------------------------


@calls("astype")
def _converted() -> Iterator[Call]:
    for x in ARRAYS:
        for dtype in (np.float32, "f8", np.complex64, np.int64, bool, "no such type", 3):
            yield call(x, dtype)


@calls("broadcast_to")
def _broadcast() -> Iterator[Call]:
    for x in ARRAYS:
        for shape in (
            x.shape,
            (2, *x.shape),
            4,
            (3, 4),
            (),
            -1,
            (0, 4),
            (2, 3, 4),
            "a",
            (3.0, 4),
            None,
            [3, 4],
            (-1, 4),
        ):
            yield call(x, shape)


@calls("expand_dims", "squeeze")
def _with_axes() -> Iterator[Call]:
    for x in (*ARRAYS, np.ones((1, 3, 1))):
        for axis in (*AXES, 2, -2, (0, 2), (-1, 0), [0]):
            yield call(x, axis)
        yield call(x)


@calls("flip")
def _flipped() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axis in AXES:
            yield call(x, axis)


@calls("fliplr", "flipud", "matrix_transpose")
def _flipped_over() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)


@calls("moveaxis")
def _moved_axes() -> Iterator[Call]:
    for x in ARRAYS:
        for source, destination in ((0, 1), (0, -1), (-1, 0), ((0, 1), (1, 0)), ((0, 1), (-1, -2)), (0, 5), (5, 0),
                  ((0, 0), (0, 1)),
                                    ((0, 1), (0, 0)), ((0, 1), 0), ("a", 0), (1.5, 0), ((), ()), ([0, 2], [2,
                                    1])):  # fmt: skip
            yield call(x, source, destination)


@calls("roll")
def _rolled() -> Iterator[Call]:
    for x in ARRAYS:
        for shift in (0, 1, -2, 99, (1, 2), (1,), 1.5, "a", None):
            yield call(x, shift)
            for axis in (0, -1, (0, 1), (0, 0), 5, "a", (0, 5), ()):
                yield call(x, shift, axis)


@calls("swapaxes")
def _swapped() -> Iterator[Call]:
    for x in ARRAYS:
        for first, second in ((0, 1), (0, 0), (-1, 0), (1, 2), (0, 5), (-7, 0), ("a", 0), (1.5, 0), (None, 0)):
            yield call(x, first, second)


@calls("transpose")
def _transposed() -> Iterator[Call]:
    for x in ARRAYS:
        yield call(x)
        for axes in ((1, 0), (0, 1), (-1, 0), (2, 0, 1), (0, 0), (0,), 0, (), (0, 5), "a", (1.5, 0), [1, 0], (-2, -1)):
            yield call(x, axes)


# -- writing ---------------------------------------------------------------------------------------


def written_by(name: str) -> Callable[..., Any]:
    """A function that changes a copy of its first argument and returns that."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        target = np.copy(x)
        result = getattr(np, name)(target, *args, **kwargs)
        assert result is None
        return target

    return function


@calls("copyto")
def _copied() -> Iterator[Call]:
    for x in FEW_ARRAYS:
        for source in (
            2.5,
            SCALAR,
            VECTOR,
            x,
            [1, 2, 3, 4],
            "a",
            EDGES,
            None,
            COMPLEX_VECTOR,
            x.astype(np.float32),
            1j,
        ):
            yield call(x, source)
            yield call(x, source, where=MASK)
            yield call(x, source, where=[True, False])
            yield call(x, source, casting="unsafe")
            yield call(x, source, "no")


@calls("fill_diagonal")
def _with_diagonals() -> Iterator[Call]:
    for x in (
        SQUARE,
        MATRIX,
        normal(7, 3),
        CUBE,
        normal(3, 3, 3),
        VECTOR,
        SCALAR,
        EMPTY_ROWS,
        np.float32(1) * SQUARE,
        COMPLEX_MATRIX,
    ):
        for value in (2.5, SCALAR, VECTOR, OTHER[:2], OTHER[:3], "a", EMPTY, [1, 2], MATRIX, EDGES):
            yield call(x, value)
            yield call(x, value, wrap=True)


@calls("put")
def _put() -> Iterator[Call]:
    for x in FEW_ARRAYS:
        for places in (0, [0, 1], [0, 0], [], -1, 99, [-99], "a", 1.5, [[0, 2]], True):
            for value in (2.5, VECTOR, SCALAR, [1, 2], EMPTY, "a"):
                yield call(x, places, value)
                yield call(x, places, value, mode="wrap")
                yield call(x, places, value, mode="clip")
        yield call(x, 0, 1.0, mode="no such mode")


@calls("put_along_axis")
def _put_along() -> Iterator[Call]:
    for x in (VECTOR, MATRIX, MATRIX32, CUBE, SCALAR, EDGE_MATRIX):
        for places in (
            np.array([0, 1]),
            np.array([[0, 1, 2]]),
            np.array([[0], [1], [0]]),
            np.array([9]),
            np.array([0.5]),
            INDEX,
        ):
            for value in (2.5, SCALAR, VECTOR, "a", EMPTY):
                for axis in (0, 1, -1, None, 5, "a"):
                    yield call(x, places, value, axis)


@calls("putmask", "place")
def _put_where() -> Iterator[Call]:
    for x in FEW_ARRAYS:
        for mask in (x > 0, MASK, True, [True], INTEGERS, "a", x, x.real < -1e9):
            for value in (2.5, VECTOR, SCALAR, [1, 2], EMPTY, "a", MATRIX, COMPLEX_VECTOR):
                yield call(x, mask, value)
