"""Every scalar operation that loops have, as an expression of Triton's, against NumPy's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.compiler.host import HOST
from pullback.compiler.lowering.scalar_steps import ELEMENTWISE
from pullback.operations import OPERATIONS
from pullback.targets.kernels import Access, Loop, Step, Write

from .test_loops import run

_TRUTHS = {"logical_and", "logical_or", "logical_xor", "logical_not"}
_BITS = {op for op in ELEMENTWISE if op.startswith("bitwise")}
_INTEGERS = {
    "add", "subtract", "multiply", "negative", "square", "abs", "sign", "maximum", "minimum", "remainder",
    "floor_divide", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "pow", *_BITS,
}  # fmt: skip
_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 1e-3, -1e-3, 20.0, -20.0, 100.0, -100.0]
_LIMITS = [np.inf, -np.inf, np.nan, 1e30, -1e30]
#: Functions of the library that end before float32 does, or that are steep there: no exact numbers are asked of them.
_STEEP = {"sin", "cos", "tan", "pow"}


def _called(op: str, dtype: str, arrays: list[np.ndarray]) -> np.ndarray:
    """A loop over elements that computes one operation."""
    result = "bool" if OPERATIONS[op].dtypes in ("comparison", "logical", "class") else dtype
    steps = [Step("read", (), str(array.dtype), number) for number, array in enumerate(arrays)]
    steps.append(Step(op, tuple(range(len(arrays))), result))
    out = np.zeros(arrays[0].shape, result)
    accesses = [Access(str(array.dtype), (1,)) for array in (*arrays, out)]
    loop = Loop((), arrays[0].shape, tuple(accesses[:-1]), tuple(steps), (Write(len(steps) - 1, accesses[-1]),))
    run(loop, [*arrays, out])
    return out


def _operands(op: str, dtype: str, values: Any) -> list[np.ndarray]:
    count, values = len(OPERATIONS[op].inputs), np.array(values, dtype)
    if op == "where":
        x, y = np.meshgrid(values, values)
        return [np.arange(x.size) % 3 == 0, x.ravel(), y.ravel()]
    grids = np.meshgrid(*[values] * count)
    return [np.ascontiguousarray(grid.ravel()) for grid in grids]


_OF_FLOATS = sorted(ELEMENTWISE - _TRUTHS - _BITS - {"astype", "positive"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", _OF_FLOATS)
def test_operations_of_floats(op: str, dtype: str) -> None:
    values = _SPECIAL if op in _STEEP else [*_SPECIAL, *_LIMITS]
    arrays = _operands(op, dtype, values)
    with np.errstate(all="ignore"):
        expected = getattr(HOST, op)(*arrays)
        found = _called(op, dtype, arrays)
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=8 * eps, atol=eps * 1e-3 if op != "logaddexp" else eps)
    if found.dtype.kind == "f":
        same = (np.signbit(found) == np.signbit(expected)) | np.isnan(expected)
        assert same.all(), arrays[0][~same]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("op", sorted(_INTEGERS))
def test_operations_of_integers(op: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, 40, int(limits.max), int(limits.max) - 1]
    values += [-1, -2, -5, -40] if limits.min else []
    if op == "pow":
        values = [value for value in values if 0 <= value < 8]
    arrays = _operands(op, dtype, values)
    with np.errstate(all="ignore"):
        expected = getattr(HOST, op)(*arrays)
        found = _called(op, dtype, arrays)
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("op", sorted(_TRUTHS))
def test_operations_of_truths(op: str) -> None:
    arrays = _operands(op, "bool", [False, True])
    np.testing.assert_array_equal(_called(op, "bool", arrays), getattr(HOST, op)(*arrays), strict=True)
