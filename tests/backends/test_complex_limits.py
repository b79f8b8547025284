"""Complex functions at zeros, infinities, NaN and where an exponential overflows: the same on PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

from .installed import require

PARTS = [np.inf, 1e4, 800.0, 100.0, 3.0, 2.0, 1.0, 0.5, 1e-5, 0.0]
PARTS += [-part for part in PARTS] + [np.nan]
NAMES = [
    "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "reciprocal", "sign", "abs", "negative", "conj", "square",
]  # fmt: skip


def grid(dtype):
    smallest = float(np.finfo(dtype).tiny)
    parts = [*PARTS, smallest, -smallest]
    return np.asarray([complex(a, b) for a in parts for b in parts], dtype)


def values(name, z, device):
    with np.errstate(all="ignore"):
        return getattr(pb, name)(pb.asarray(z, device=device)).to_device("numpy").numpy()


def check_parts(name, z, found, expected):
    tolerance = 20 * np.finfo(z.dtype).eps
    if name == "log1p":  # NumPy's loses digits near zero
        tolerance = max(tolerance, 4e-3 if z.dtype == np.complex64 else 1e-10)
    size = np.abs(expected)
    for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        limit = tolerance * np.where(np.isfinite(size), size, np.abs(b)) + 2 * np.finfo(z.dtype).tiny
        assert np.all(np.abs(a[finite] - b[finite]) <= limit[finite])
        zero = (a == 0) & (b == 0) & (np.isfinite(z.real) | np.isfinite(z.imag))  # else the standard leaves it open
        if name == "log1p":
            zero &= z.real != 0  # NumPy adds one to a negative zero
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", NAMES)
def test_limits_of_complex_functions_on_torch(name, dtype):
    require("torch:cpu")
    z = grid(dtype)
    expected = values(name, z, "numpy")
    check_parts(name, z, values(name, z, "torch:cpu"), expected)
    few = np.stack([values(name, z[i : i + 1], "torch:cpu")[0] for i in range(0, len(z), 7)])  # too few for vectors
    check_parts(name, z[::7], few, expected[::7])


@pytest.mark.parametrize("device", ["numpy", "torch:cpu"])
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_tanh_of_an_infinity_has_a_zero_with_the_sign_of_the_imaginary_part(device, infinity):
    require(device)
    parts = np.asarray([2.0, -2.0, 800.0, -800.0, 0.0, -0.0])
    z = np.asarray([complex(infinity, part) for part in parts])
    out = values("tanh", z, device)
    np.testing.assert_array_equal(out.real, np.sign(infinity))
    np.testing.assert_array_equal(out.imag, 0)
    np.testing.assert_array_equal(np.signbit(out.imag), np.signbit(parts))
