"""Functions at the ends of every dtype, of mixed dtypes and beside Python's numbers: NumPy's values and dtypes."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import dtypes
from pullback.operations import OPERATIONS

from .installed import require

DTYPES = [
    d for d in dtypes.ALL if d is not dtypes.bfloat16
]  # NumPy's of that name, of another package, is no reference
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.0, np.inf, -np.inf, np.nan]
PARTS = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]
TOLERANCES = {"float16": 4e-3, "float32": 3e-6, "complex64": 1e-5}


def ends(dtype):
    """Zeros, small numbers and the extremes of a dtype."""
    if dtype.kind == "bool":
        return np.asarray([True, False, True])
    if dtype.kind == "float":
        return np.asarray(REALS).astype(dtype.numpy)
    if dtype.kind == "complex":
        return np.asarray([complex(a, b) for a in PARTS for b in PARTS], dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    negative = [] if dtype.kind == "uint" else [-1, -2, -7, limits.min, limits.min + 1]
    return np.asarray([1, 2, 3, 5, 7, 0, 100, limits.max, limits.max - 1, limits.max // 2 + 1, *negative], dtype.numpy)


def few(dtype):
    return np.asarray([0, 1, 3]).astype(dtype.numpy)


def second(name, x):
    """What to combine `x` with."""
    if "shift" in name:
        return np.asarray([0, 1, 3, 7], x.dtype)
    return np.asarray([0, 1, 2, 3], x.dtype) if name == "pow" and x.dtype.kind in "iu" else x[:12]


def public(arity):
    return [
        name
        for name, operation in OPERATIONS.items()
        if operation.elementwise and len(operation.inputs) == arity and not operation.static and hasattr(pb, name)
    ]


UNARY = [*public(1), "isnan", "isinf", "isfinite", "signbit", "sign", "logical_not", "bitwise_invert", "floor", "ceil"]
BINARY = public(2)
OTHERS = {
    "sum": pb.sum, "prod": pb.prod, "mean": pb.mean, "max": pb.max, "argmin": pb.argmin, "any": pb.any,
    "cumulative_sum": lambda x: pb.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: pb.cumulative_prod(x, axis=0),
    "sort": lambda x: pb.sort(x[1:], descending=True), "argsort": pb.argsort, "count_nonzero": pb.count_nonzero,
    "nonzero": lambda x: pb.nonzero(x)[0], "unique_values": pb.unique_values,
    "unique_counts": lambda x: pb.unique_counts(x)[1], "isin": lambda x: pb.isin(x, x[::2]),
    "searchsorted": lambda x: pb.searchsorted(pb.sort(x), x),
    "searchsorted from the right": lambda x: pb.searchsorted(pb.sort(x), x, side="right"),
    "flip": lambda x: x[::-1], "repeat": lambda x: pb.repeat(x, pb.asarray(np.arange(x.size) % 3, device=x.device)),
    "take_along_axis": lambda x: pb.take_along_axis(x, pb.asarray(np.asarray([1, -1, 0]), device=x.device), axis=0),
    "tril": lambda x: pb.tril(pb.stack([x, x])), "vecdot": lambda x: pb.vecdot(x[:3], x[:3]),
    "matmul": lambda x: x[:3] @ x[:3], "tensordot": lambda x: pb.tensordot(x[:3], x[:3], axes=1),
    "cross": lambda x: pb.linalg.cross(x[:3], x[:3]), "clip": lambda x: pb.clip(x, 1, 3),
    "through a mask": lambda x: x[x != 0], "written through a mask": lambda x: _written(x, x != 0, 1),
    "written at places": lambda x: _written(x, np.asarray([0, 2, 0]), x[:3]),
    "written backwards": lambda x: _written(x, slice(None, None, -1), x), "in place": lambda x: _added(x),
    "as positions": lambda x: pb.arange(200)[x[:4]] if x.dtype.kind in ("int", "uint") else x,
    "linspace": lambda x: pb.linspace(0, 5, 4, dtype=x.dtype), "empty sum": lambda x: pb.sum(x[:0]),
    "empty sort": lambda x: pb.sort(x[:0]), "empty max": lambda x: pb.max(x[:0]),
    "softmax": pb.softmax, "logsumexp": pb.logsumexp,
}  # fmt: skip


def _written(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def _added(x):
    x = x.clone()
    x += x
    return x


def result(function, arguments, device):
    with pb.device(device), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            out = function(*[pb.asarray(a, device=device) for a in arguments])
        except Exception as error:
            return type(error)
    return np.asarray(out.to_device("numpy").numpy())


def check(function, arguments, device):
    """Compare with NumPy; of complex numbers what is finite, since libraries differ about the rest."""
    expected, found = result(function, arguments, "numpy"), result(function, arguments, device)
    has_complex = any(a.dtype.kind == "c" for a in arguments)
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected or (has_complex and found is pb.DtypeError)  # NumPy alone has an order of them
        return
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    if has_complex:
        finite = np.isfinite(expected)
        found, expected = found[finite], expected[finite]
    tolerance = TOLERANCES.get(expected.dtype.name, 1e-12)
    for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 10)


def check_each_dtype(name, device):
    function = OTHERS.get(name) or getattr(pb, name)
    for dtype in DTYPES:
        x = ends(dtype)
        if name in OTHERS and x.dtype.kind in "fc":  # sums of what is finite
            x = x[np.isfinite(x)][:6]
        if name in ("pow", "reciprocal", "sign") and x.dtype.kind in "iuc":  # limits that libraries see otherwise
            x = x[np.isfinite(x) & (x != 0)]
        check(function, (x[:, None], second(name, x)) if name in BINARY else (x,), device)


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *OTHERS])
def test_every_dtype_on_torch(name):
    require("torch:cpu")
    check_each_dtype(name, "torch:cpu")


ON_JAX = (
    "exp", "log1p", "sqrt", "acos", "atanh", "sign", "round", "floor_divide", "remainder", "pow", "equal", "prod",
    "cumulative_prod", "as positions", "searchsorted", "written at places", "softmax", "square",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_JAX)
def test_every_dtype_on_jax(name):
    require("jax:cpu")
    check_each_dtype(name, "jax:cpu")


@pytest.mark.parametrize(("x", "y"), list(itertools.product(DTYPES, DTYPES)), ids=lambda dtype: dtype.name)
def test_mixed_dtypes_on_torch(x, y):
    require("torch:cpu")
    for function in (pb.add, pb.divide, pb.equal, lambda a, b: pb.concat([a, b]), lambda a, b: pb.where(a != 1, a, b)):
        check(function, (few(x), few(y)), "torch:cpu")


@pytest.mark.parametrize("number", [True, 2, 2.5, 1j, -1, 300], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_beside_numbers_on_torch(dtype, number):
    require("torch:cpu")
    for name in ("add", "multiply", "divide", "pow", "equal", *(() if number == 1j else ("floor_divide", "less"))):
        function = getattr(pb, name)
        check(lambda x: function(x, number), (few(dtype),), "torch:cpu")  # noqa: B023
