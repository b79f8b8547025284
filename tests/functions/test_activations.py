"""Activation functions: values, extremes, dtypes, errors, and the portable kernels."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.backends import NUMPY

from ..backends.installed import BFLOAT16, optional
from .portable_namespace import PORTABLE

special = optional("scipy.special")
torch = optional("torch")

EXTREMES = np.array([-np.inf, -1e30, -1000.0, -40.0, -1.0, -0.0, 0.0, 1e-30, 1.0, 40.0, 1000.0, 1e30, np.inf])
CALLS = {
    "relu": (),
    "leaky_relu": (0.1,),
    "elu": (0.7,),
    "gelu": ("none",),
    "sigmoid": (),
    "log_sigmoid": (),
    "silu": (),
    "softplus": (2.0,),
}
#: Made of others: they have no kernels of their own.
COMPOSED = {"relu6": (), "hardsigmoid": (), "hardswish": (), "selu": (), "mish": (), "prelu": (0.25,)}


def gradient(function, x: np.ndarray) -> np.ndarray:
    variable = pb.tensor(x, requires_grad=True)
    out = function(variable)
    with pb.guard("off"):
        return pb.backward(out, gradient=np.ones(out.shape, x.dtype))[variable]._raw


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (pb.sigmoid, special.expit),
        (pb.expit, special.expit),
        (pb.log_sigmoid, special.log_expit),
        (pb.softplus, lambda x: -special.log_expit(-x)),
        (pb.relu, lambda x: np.maximum(x, 0)),
    ],
)
def test_values_at_extremes(function, expected) -> None:
    with np.errstate(all="raise", under="ignore"):
        out = function(pb.asarray(EXTREMES))._raw
    np.testing.assert_allclose(out, expected(EXTREMES), rtol=1e-15)


@pytest.mark.parametrize("name", [*CALLS, *COMPOSED])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_inputs_give_finite_values_and_gradients(name: str, dtype) -> None:
    x = np.array([-1e4, -500.0, -100.0, -30.0, -1.0, 0.0, 1.0, 30.0, 100.0, 500.0, 1e4], dtype)
    function = lambda t: getattr(pb, name)(t, *(CALLS | COMPOSED)[name])
    assert np.isfinite(function(pb.asarray(x))._raw).all()
    slopes = gradient(function, x)
    assert slopes.dtype == dtype
    assert np.isfinite(slopes).all()


def test_gelu_keeps_its_digits_far_out() -> None:
    x = np.array([-35.0, -20.0, -8.0, -1.0, 3.0])
    np.testing.assert_allclose(pb.gelu(x)._raw, x * special.ndtr(x), rtol=1e-12)
    with pytest.raises(ValueError, match="approximate must be"):
        pb.gelu(x, approximate="erf")


def test_relu_has_gradient_0_at_0() -> None:
    np.testing.assert_array_equal(gradient(pb.relu, np.array([-1.0, -0.0, 0.0, 1.0])), [0, 0, 0, 1])


def test_slopes_at_kinks_are_pytorchs() -> None:
    x = np.array([-3.0, -0.0, 0.0, 3.0, 6.0])
    tensor = torch.tensor(x, requires_grad=True)
    for name, arguments in {"relu6": (), "hardswish": (), "selu": (), "prelu": (np.array([0.25]),)}.items():
        out = getattr(torch.nn.functional, name)(tensor, *map(torch.tensor, arguments))
        (expected,) = torch.autograd.grad(out.sum(), tensor)
        found = gradient(lambda t, name=name, arguments=arguments: getattr(pb, name)(t, *arguments), x)
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15, err_msg=name)
    np.testing.assert_allclose(gradient(pb.hardsigmoid, x), [0, 1 / 6, 1 / 6, 0, 0], rtol=1e-15)


def test_functions_made_of_others_at_infinity_and_nan() -> None:
    x = np.array([-np.inf, np.inf, np.nan])
    for function, expected in (
        (pb.relu6, [0, 6, np.nan]),
        (pb.hardsigmoid, [0, 1, np.nan]),
        (pb.selu, [-1.7580993408473766, np.inf, np.nan]),
        (lambda t: pb.prelu(t, 0.5), [-np.inf, np.inf, np.nan]),
    ):
        np.testing.assert_allclose(function(pb.asarray(x))._raw, expected, rtol=1e-15)
    assert pb.prelu(np.array([np.inf]), 0.0)._raw == np.inf


def test_softplus_is_a_straight_line_beyond_its_threshold() -> None:
    x = np.array([-5.0, 0.2, 1.0, 50.0])
    out = pb.softplus(x, 2.0, threshold=1.0)._raw
    np.testing.assert_allclose(out, [pb.softplus(-5.0, 2.0).item(), np.log1p(np.exp(0.4)) / 2, 1.0, 50.0], rtol=1e-6)
    slopes = gradient(lambda t: pb.softplus(t, 2.0, threshold=1.0), x)
    np.testing.assert_allclose(slopes, [*special.expit([-10.0, 0.4]), 1, 1], rtol=1e-12)
    tensor = torch.tensor(x)
    np.testing.assert_allclose(pb.softplus(x, threshold=20.0)._raw, torch.nn.functional.softplus(tensor), rtol=1e-15)


def test_complex_numbers() -> None:
    x = np.array([0.3 - 2j, -1.5 + 0.5j, 2 + 3j])
    np.testing.assert_allclose(pb.sigmoid(x)._raw, 1 / (1 + np.exp(-x)), rtol=1e-14)
    np.testing.assert_allclose(pb.silu(x)._raw, x / (1 + np.exp(-x)), rtol=1e-14)
    np.testing.assert_allclose(pb.logsumexp(x)._raw, special.logsumexp(x), rtol=1e-14)
    far = np.array([-1000 + 1j, 1000 + 1j])
    np.testing.assert_array_equal(pb.sigmoid(far)._raw, [0, 1])
    np.testing.assert_allclose(pb.logsumexp(far)._raw, 1000 + 1j, rtol=1e-14)
    nothing = np.array([[-np.inf, -np.inf + 1j], [0, 1j]])
    assert pb.logsumexp(nothing, 1)._raw[0].real == -np.inf
    np.testing.assert_array_equal(gradient(lambda t: pb.logsumexp(t, 1), nothing)[0], [0, 0])
    assert pb.logsumexp(np.zeros((2, 0), complex), 1).shape == (2,)
    assert pb.sigmoid(1j).dtype == pb.complex64
    assert pb.compile(pb.silu)(pb.asarray(x)).dtype == pb.complex128
    for function in (pb.softplus, pb.log_sigmoid, pb.mish, pb.selu, pb.relu6, pb.hardswish, pb.hardsigmoid):
        with pytest.raises(pb.DtypeError):
            function(x)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(pb.ShapeError, match=r"weight has shape \(2,\); .* \(axis 1\) of x of shape \(2, 3\)"):
        pb.prelu(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(pb.ShapeError, match="prelu: weight"):
        pb.prelu(np.zeros(3), np.zeros(3))
    with pytest.raises(pb.ShapeError, match="3 elements, which cannot be halved"):
        pb.glu(np.zeros((2, 3)))
    assert pb.glu(np.zeros((3, 0))).shape == (3, 0)


def test_masked_rows_of_logsumexp() -> None:
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1000.0, 1000.0], [-np.inf, np.inf]])
    np.testing.assert_array_equal(pb.logsumexp(x, 1)._raw, special.logsumexp(x, 1))
    slopes = gradient(lambda t: pb.logsumexp(t, 1), x[:3])
    np.testing.assert_allclose(slopes, [[0, 0], [1, 0], [0.5, 0.5]], rtol=1e-12)
    assert pb.logsumexp(np.zeros((2, 0)), 1)._raw.tolist() == [-np.inf, -np.inf]
    assert pb.logsumexp(np.zeros((0, 3)), 1).shape == (0,)


def test_softmax_is_stable_and_handles_empty_axes() -> None:
    x = np.array([[1e300, -1e300, 1e300], [-np.inf, 0.0, 0.0]])
    np.testing.assert_array_equal(pb.softmax(x)._raw, [[0.5, 0, 0.5], [0, 0.5, 0.5]])
    np.testing.assert_array_equal(pb.log_softmax(np.array([0.0, -1e300]))._raw, [0, -1e300])
    assert pb.softmax(np.zeros((2, 0))).shape == (2, 0)
    assert gradient(pb.softmax, np.zeros((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("dtype", [pb.float16, BFLOAT16])
def test_half_precision_sums_in_single_precision(dtype) -> None:
    x = pb.asarray(np.zeros(20000), dtype=dtype).set_requires_grad(True)
    out = pb.logsumexp(x)
    assert out.dtype == dtype
    assert abs(float(out._raw) - np.log(20000)) < 0.05
    p = pb.softmax(x)
    assert p.dtype == dtype
    assert p._raw[0] == np.asarray(1 / 20000).astype(p._raw.dtype)
    for name, arguments in (CALLS | COMPOSED).items():
        y = getattr(pb, name)(pb.asarray([-2.0, 3.0], dtype=dtype), *arguments)
        exact = getattr(pb, name)(np.array([-2.0, 3.0]), *arguments)._raw
        assert y.dtype == dtype
        np.testing.assert_allclose(y._raw.astype(np.float64), exact, rtol=1e-2)


def test_errors_say_what_was_given() -> None:
    with pytest.raises(pb.ShapeError, match="axis 2 does not exist; the array has 2 axes"):
        pb.softmax(np.zeros((2, 3)), axis=2)
    with pytest.raises(pb.ShapeError, match="twice"):
        pb.logsumexp(np.zeros((2, 3)), axis=(0, -2))
    with pytest.raises(pb.DtypeError, match="complex128"):
        pb.softmax(np.zeros(3, complex))
    with pytest.raises(pb.DtypeError, match="complex128"):
        pb.log_sigmoid(np.zeros(3, complex))
    with pytest.raises(ValueError, match="beta must be positive"):
        pb.softplus(np.zeros(3), beta=0.0)


def test_integers_become_float64() -> None:
    assert pb.sigmoid(np.array([0, 1])).dtype == pb.float64
    assert pb.relu(np.array([-2, 3]))._raw.tolist() == [0, 3]
    assert pb.softmax(np.array([0, 0], np.uint8))._raw.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", [*CALLS, "softmax", "log_softmax", "logsumexp"])
def test_portable_kernel_agrees(name: str) -> None:
    static = CALLS.get(name, ((-2,),) if "softmax" in name else ((-2,), True))
    for x in (np.random.default_rng(0).normal(size=(2, 3, 4)) * 10, np.array([[-800.0, 0.0], [700.0, 1e-9]])):
        expected = getattr(NUMPY.xp, name)(x, *static)
        np.testing.assert_allclose(getattr(PORTABLE, name)(x, *static), expected, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7, -1e7])
def test_shares_do_not_depend_on_an_offset(offset: float) -> None:
    x = np.array([1.0, 2.0], np.float32) + np.float32(offset)
    expected = special.softmax([1.0, 2.0])
    both = pb.tensor(x, requires_grad=True)
    np.testing.assert_allclose(pb.backward(pb.logsumexp(both))[both]._raw, expected, rtol=1e-6)
    a, b = pb.tensor(x[:1], requires_grad=True), pb.tensor(x[1:], requires_grad=True)
    gradients = pb.backward(pb.logaddexp(a, b), gradient=np.ones(1, np.float32))
    np.testing.assert_allclose([gradients[a].item(), gradients[b].item()], expected, rtol=1e-6)
