"""Special functions against SciPy and mpmath, over their whole range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import optional
from .portable_namespace import PORTABLE

mpmath = optional("mpmath")
special = optional("scipy.special")

# name: (exact function, ranges, units in the last place)
CASES: dict[str, tuple[Callable, list[tuple[float, float]], int]] = {
    "erf": (mpmath.erf, [(-6, 6), (-1, 1), (-1e-8, 1e-8)], 4),
    "erfc": (mpmath.erfc, [(-6, 26), (-1, 1)], 8),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [(-26, 26), (-1, 1), (5, 1e4)], 8),
    "erfinv": (mpmath.erfinv, [(-1, 1), (-1e-8, 1e-8), (0.45, 0.55), (0.98, 1)], 8),
    "ndtr": (mpmath.ncdf, [(-37, 9), (-1, 1)], 8),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), [(-37, 4), (-1, 1), (-500, -30)], 10),
    "gammaln": (
        lambda x: mpmath.log(abs(mpmath.gamma(x))),
        [(0, 1), (0.9, 1.1), (1.9, 2.1), (1, 3), (3, 8), (8, 170)],
        8,
    ),
    "digamma": (mpmath.digamma, [(0, 1), (1, 3), (1.45, 1.47), (3, 10), (10, 1e4)], 6),
    "i0": (lambda x: mpmath.besseli(0, x), [(-15, 15), (15, 700), (-1, 1)], 8),
    "i1": (lambda x: mpmath.besseli(1, x), [(-15, 15), (15, 700), (-1, 1)], 8),
    "i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [(-15, 15), (15, 700)], 12),
    "i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [(-15, 15), (15, 700)], 12),
}
SPECIAL_VALUES = np.array(
    [
        0.0,
        -0.0,
        1,
        2,
        -1,
        -2,
        0.5,
        -0.5,
        np.inf,
        -np.inf,
        np.nan,
        1e-320,
        -1e-320,
        1e-10,
        -1e-10,
        1e10,
        27,
        -27,
        38,
        171.5,
    ]
)


def exact(function: Callable, x: np.ndarray) -> np.ndarray:
    with mpmath.workdps(30):
        return np.array([float(function(mpmath.mpf(float(value)))) for value in x])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_values_to_the_last_digits(name: str, dtype) -> None:
    function, ranges, units = CASES[name]
    for low, high in ranges:
        x = np.random.default_rng(1).uniform(low, high, 60).astype(dtype)
        expected = exact(function, x)
        with np.errstate(over="ignore"):
            rounded = expected.astype(dtype)
        found = getattr(pb, name)(x)._raw
        assert found.dtype == dtype
        fits = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(dtype).tiny)
        error = np.abs(found.astype(np.float64) - expected)[fits] / np.spacing(np.abs(rounded[fits])).astype(np.float64)
        assert error.max(initial=0) <= units, (low, high, x[fits][error.argmax()])


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(special, n)])
def test_special_values(name: str) -> None:
    with np.errstate(all="raise"):
        found = getattr(pb, name)(SPECIAL_VALUES)._raw
    expected = getattr(special, name)(SPECIAL_VALUES)
    if name in ("i0", "i1", "gammaln"):  # SciPy: NaN for I of infinity; gammaln of -inf and of denormal numbers
        usual = np.isfinite(SPECIAL_VALUES) & ((np.abs(SPECIAL_VALUES) > 1e-300) | (SPECIAL_VALUES == 0))
        found, expected = found[usual | np.isnan(SPECIAL_VALUES)], expected[usual | np.isnan(SPECIAL_VALUES)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


def test_bessel_functions_at_infinity_and_where_exp_overflows() -> None:
    assert pb.i0(np.array([np.inf, -np.inf, 1e6]))._raw.tolist() == [np.inf] * 3
    assert pb.i1(np.array([np.inf, -np.inf, -1e6]))._raw.tolist() == [np.inf, -np.inf, -np.inf]
    np.testing.assert_allclose(
        pb.i0(np.array([713.0]))._raw, exact(lambda x: mpmath.besseli(0, x), [713.0]), rtol=1e-14
    )


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n: int) -> None:
    x = np.concatenate([np.random.default_rng(n).uniform(low, high, 30) for low, high in ((0, 2), (2, 50), (-5, 0))])
    expected = exact(lambda value: mpmath.polygamma(n, value), x)
    np.testing.assert_allclose(pb.polygamma(n, x)._raw, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="must not be negative"):
        pb.polygamma(-1, x)
    with pytest.raises(pb.DtypeError, match="must be an integer"):
        pb.polygamma(x, n)


def test_erfinv_at_the_ends() -> None:
    ends = np.array([-1.0, 1.0, 1.5, -np.inf])
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(pb.erfinv(ends)._raw, [-np.inf, np.inf, np.nan, np.nan])
        closest = np.nextafter(1.0, 0.0)
        expected = special.erfinv(closest)
        np.testing.assert_allclose(pb.erfinv(closest)._raw, expected, rtol=1e-15)
        slope = gradient_of("erfinv", np.array([closest]))
        np.testing.assert_allclose(slope, np.sqrt(np.pi) / 2 * np.exp(expected**2), rtol=1e-13)
    with np.errstate(over="ignore"), pb.guard("off"):
        np.testing.assert_array_equal(gradient_of("erfinv", ends[:2]), [np.inf, np.inf])
    half = np.array([-0.5, 0.999], np.float16)
    np.testing.assert_allclose(pb.erfinv(half)._raw, special.erfinv(half.astype(np.float64)), rtol=1e-3)


def test_zeta() -> None:
    rng = np.random.default_rng(5)
    x, q = rng.uniform(1, 30, 400), rng.uniform(-5, 50, 400)
    x[:200] = np.round(x[:200])
    np.testing.assert_allclose(pb.zeta(x, q)._raw, special.zeta(x, q), rtol=1e-13)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(PORTABLE.zeta(x, q), special.zeta(x, q), rtol=1e-13)
    x = np.array([1.0, 0.5, 2.0, 2.0, 2.5, 2.5, 2.0, 1.0, 1.0, 0.5, 3.0, 3.0, 2.0, 2.0, 1e20, 1e20, 1000.0])
    q = np.array([1, 1, 0, -3, -0.5, -1, np.nan, -2, -1.5, -2, -100.25, -1e-20, 1e300, np.inf, 1, 0.5, 1e6], float)
    with np.errstate(all="raise"):
        found = pb.zeta(x, q)._raw
    np.testing.assert_allclose(found, special.zeta(x, q), rtol=1e-13)
    assert pb.zeta(np.array([1e20, np.inf]), np.array([2.0, 2.0])).tolist() == [0, 0]  # SciPy: not a number
    for dtype in (pb.float16, pb.float32):
        single = pb.zeta(2.0, pb.asarray([1.0, 300.0], dtype=dtype))
        assert single.dtype == dtype
        np.testing.assert_allclose(single._raw, special.zeta(2.0, [1.0, 300.0]), rtol=1e-3)
    assert pb.zeta(2, pb.asarray([1, 2])).dtype == pb.float64
    assert pb.zeta(np.zeros((2, 0)) + 2, np.ones((3, 1, 1))).shape == (3, 2, 0)


def test_zeta_has_no_gradient_by_its_exponent() -> None:
    x, q = pb.tensor([2.0], requires_grad=True), pb.tensor([1.5], requires_grad=True)
    with pytest.raises(pb.GradientError, match="`zeta` has no gradient with respect to `x`"):
        pb.zeta(x, q)
    with pytest.raises(pb.GradientError, match="`x`"):
        pb.jvp(lambda x: pb.zeta(x, 1.5), (np.array([2.0]),), (np.ones(1),))
    pb.zeta(x.detach(), q).sum().backward()
    assert q.grad.item() == pytest.approx(-2 * special.zeta(3, 1.5), rel=1e-6)
    with pytest.raises(pb.DtypeError, match="zeta: expected real numbers"):
        pb.zeta(2.0, np.array([1j]))


def test_negative_arguments_of_the_gamma_function() -> None:
    x = np.concatenate([np.random.default_rng(2).uniform(-30, 0, 60), [-100.5, -1e3 - 0.25]])
    np.testing.assert_allclose(pb.gammaln(x)._raw, exact(CASES["gammaln"][0], x), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(pb.digamma(x)._raw, exact(mpmath.digamma, x), rtol=1e-12, atol=1e-13)
    assert pb.gammaln(np.array([-1e308, -np.inf, -3.0]))._raw.tolist() == [np.inf] * 3


def test_xlogy_where_both_are_zero() -> None:
    x, y = pb.tensor([0.0, 0.0, 2.0, 0.0], requires_grad=True), pb.tensor([0.0, 3.0, 3.0, np.nan], requires_grad=True)
    out = pb.xlogy(x, y)
    np.testing.assert_allclose(out._raw, special.xlogy(x._raw, y._raw), rtol=1e-6)
    with pb.guard("off"):
        slope = pb.backward(out, gradient=np.ones(4, np.float32))[y]._raw
    np.testing.assert_allclose(slope[:3], [0, 0, 2 / 3], rtol=1e-6)


def test_large_arrays_are_computed_in_blocks() -> None:
    x = np.random.default_rng(3).normal(size=(3, 100, 101)).transpose(2, 0, 1)
    np.testing.assert_allclose(pb.erf(x)._raw, special.erf(x), rtol=1e-14)
    np.testing.assert_allclose(pb.gammaln(np.abs(x))._raw, special.gammaln(np.abs(x)), rtol=1e-10)


def test_integers_become_float64_and_complex_numbers_are_refused() -> None:
    assert pb.erf(np.array([0, 1])).dtype == pb.float64
    assert pb.gammaln(np.array([5], np.int16))._raw == pytest.approx(np.log(24))
    with pytest.raises(pb.DtypeError, match="complex"):
        pb.erf(np.array([1j]))


@pytest.mark.parametrize("name", [*CASES, "xlogy"])
def test_portable_kernel_agrees(name: str) -> None:
    x = np.random.default_rng(4).uniform(-20, 20, 200)
    arguments = (np.where(x > 15, 0, x), np.abs(x) * (x < 18)) if name == "xlogy" else (x,)
    with np.errstate(all="ignore"):
        found = getattr(PORTABLE, name)(*arguments)
    np.testing.assert_allclose(found, getattr(NUMPY.xp, name)(*arguments), rtol=1e-15)


def gradient_of(name: str, x: np.ndarray) -> np.ndarray:
    variable = pb.tensor(x, requires_grad=True)
    return pb.backward(getattr(pb, name)(variable), gradient=np.ones_like(x))[variable]._raw


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-4)])
@pytest.mark.parametrize(
    ("name", "derivative", "points"),
    [
        (
            "erfcx",
            lambda x: 2 * x * mpmath.exp(x * x) * mpmath.erfc(x) - 2 / mpmath.sqrt(mpmath.pi),
            (-5, 1, 19, 21, 1e4),
        ),
        ("log_ndtr", lambda x: mpmath.npdf(x) / mpmath.ncdf(x), (-1e4, -1e3, -30, -1, 0, 1, 5)),
    ],
)
def test_gradients_are_right_far_out(
    name: str, derivative: Callable, points: tuple, dtype: type, tolerance: float
) -> None:
    with mpmath.workdps(60):
        expected = [float(derivative(mpmath.mpf(x))) for x in points]
    np.testing.assert_allclose(gradient_of(name, np.array(points, dtype)), expected, rtol=tolerance)


def test_the_gradient_of_log_ndtr_grows_with_x() -> None:
    np.testing.assert_allclose(gradient_of("log_ndtr", np.array([-1e150, -1e8])), [1e150, 1e8], rtol=1e-14)
