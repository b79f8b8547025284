"""Plain NumPy code on tensors: values, dtypes and derivatives are right, and what cannot work says so."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.tensors import numpy_functions, numpy_linalg

from .numpy_cases import CASES


@pytest.mark.parametrize(("function", "arguments"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_numpy_code_runs_unchanged(function, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's about NaN where a case has one on purpose
        expected = np.asarray(function(*[x.copy() for x in arguments]))
        tracked = function(*[pb.tensor(x, requires_grad=True) for x in arguments])
        plain = function(*[pb.asarray(x) for x in arguments])
        for result in (tracked, plain):
            assert isinstance(result, pb.Tensor)
            assert result.shape == expected.shape
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(result.detach()), expected, rtol=1e-12, atol=1e-12)
        assert pb.gradcheck(function, arguments, order=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x),
        lambda x: np.mean(x, axis=0),
        lambda x: np.mean(x, dtype=np.float64),
        lambda x: x * np.float32(2),
        lambda x: x * np.float64(2),
        lambda x: x * 2.5,
        lambda x: np.arange(3) * x,
        lambda x: np.multiply(x, [1, 2, 3]),
        lambda x: np.concatenate([x, np.ones(2, np.float64)]),
        lambda x: np.where(x > 0, x, 1.5),
        lambda x: np.dot(x, np.ones(3, np.float64)),
        lambda x: np.fft.fft(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.stack([x, x]).var(),
    ],
)
def test_dtypes_are_numpys(function, dtype):
    x = np.array([0.5, -1.0, 2.0], dtype)
    result = function(pb.tensor(x, requires_grad=True))
    assert result.dtype == np.asarray(function(x)).dtype
    gradient = pb.grad(lambda x: np.sum(np.real(function(x))))(x)
    assert gradient.dtype == x.dtype


def test_headline_to_third_order():
    def first(x):
        return np.sum(np.tanh(x) ** 2)

    def second(x):
        return np.sum(pb.grad(first)(x))

    def third(x):
        return np.sum(pb.grad(second)(x))

    x = np.array([0.1, 0.5, -1.0])
    t = np.tanh(x)
    s = 1 - t * t
    for f, expected in (
        (first, 2 * t * s),
        (second, 2 * s * (1 - 3 * t * t)),
        (third, 8 * t * s * (3 * t * t - 2)),
    ):
        gradient = pb.grad(f)(x)
        assert type(gradient) is np.ndarray
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)


# -- programs as people write them -----------------------------------------------------------------

random = np.random.default_rng(0)
X = random.normal(size=(20, 3))
LABELS = (random.random(20) > 0.5).astype(float)
CLASSES = random.integers(0, 4, 20)


def logistic_regression(w):
    predictions = 1 / (1 + np.exp(-(X @ w[:3] + w[3])))
    return -np.mean(LABELS * np.log(predictions) + (1 - LABELS) * np.log(1 - predictions))


def softmax_regression(w):
    logits = np.dot(X, w)
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    return -np.mean(log_probabilities[np.arange(20), CLASSES])


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def euler(parameters):
    """A damped pendulum, step by step."""
    position, speed = np.array([0.5, -0.2]), np.zeros(2)
    for _ in range(25):
        position, speed = (
            position + 0.1 * speed,
            speed + 0.1 * (-parameters[0] * np.sin(position) - parameters[1] * speed),
        )
    return np.sum(position**2) + np.linalg.norm(speed)


def gaussian_log_likelihood(parameters):
    mean, factor = parameters[:3], np.tril(np.reshape(parameters[3:], (3, 3))) + 2 * np.eye(3)
    covariance = factor @ factor.T
    centred = X - mean
    _, logdet = np.linalg.slogdet(covariance)
    mahalanobis = np.sum(centred * np.linalg.solve(covariance, centred.T).T)
    return -0.5 * (mahalanobis + len(X) * (logdet + 3 * np.log(2 * np.pi)))


def filled_in_place(x):
    table = np.zeros_like(x, shape=(4, 4))
    for i in range(4):
        table[i, i] = x[i]
        table[i, (i + 1) % 4] += 0.5 * x[i - 1]
    table *= 2
    return np.sum(np.linalg.inv(table + 5 * np.eye(4)))


def dot_chain(w):
    a, b = np.reshape(w[:6], (2, 3)), np.reshape(w[6:], (3, 2))
    return np.dot(np.dot(np.dot(a, b), a), np.ones(3)).sum()


def gaussian_process(parameters):
    points = np.linspace(0, 1, 6)
    distances = np.subtract.outer(points, points) ** 2
    kernel = np.exp(-0.5 * distances / parameters[0] ** 2) + (0.1 + parameters[1] ** 2) * np.eye(6)
    factor = np.linalg.cholesky(kernel)
    weights = np.linalg.solve(kernel, np.sin(6 * points))
    return 0.5 * np.dot(np.sin(6 * points), weights) + np.sum(np.log(np.diag(factor)))


def neural_network(parameters):
    w1, b1, w2 = np.split(parameters, [12, 16])
    hidden = np.maximum(0.1 * (X @ w1.reshape(3, 4) + b1), X @ w1.reshape(3, 4) + b1)
    return np.mean((hidden @ w2 - LABELS) ** 2) + 1e-2 * np.sum(parameters**2)


def spectral(x):
    spectrum = np.fft.rfft(x * np.hanning(8))
    return np.sum(np.abs(spectrum[1:]) ** 2 / (1 + np.abs(spectrum[1:]) ** 2))


def kalman_filter(parameters):
    state, variance, total = 0.0, 1.0, 0.0
    for observation in np.sin(np.arange(10.0)):
        variance = variance + np.exp(parameters[0])
        gain = variance / (variance + np.exp(parameters[1]))
        error = observation - state
        total = total + error**2 / (variance + np.exp(parameters[1])) + np.log(variance + np.exp(parameters[1]))
        state, variance = state + gain * error, (1 - gain) * variance
    return total


def principal_component(x):
    centred = X[:, :2] * x - np.mean(X[:, :2] * x, axis=0)
    return np.linalg.eigvalsh(np.cov(centred.T))[-1]


PROGRAMS = [
    (logistic_regression, 4),
    (softmax_regression, (3, 4)),
    (rosenbrock, 5),
    (euler, 2),
    (gaussian_log_likelihood, 12),
    (filled_in_place, 4),
    (dot_chain, 12),
    (gaussian_process, 2),
    (neural_network, 20),
    (spectral, 8),
    (kalman_filter, 2),
    (principal_component, 2),
]


@pytest.mark.parametrize(("program", "shape"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_programs_in_the_style_of_autograd(program, shape):
    x = np.random.default_rng(5).normal(size=shape) * 0.5 + 0.3
    gradient = pb.grad(program)(x)
    assert type(gradient) is np.ndarray
    assert gradient.dtype == np.float64
    assert gradient.shape == x.shape
    assert pb.gradcheck(program, (x,), order=2)
    np.testing.assert_allclose(pb.value_and_grad(program)(x)[0], program(x), rtol=1e-12)


# -- what comes back from NumPy functions without a gradient ----------------------------------------


def test_functions_of_values_alone_need_no_detach():
    t = pb.tensor([3.0, 1.0, 2.0], requires_grad=True)
    assert np.argmax(t) == 0
    assert np.argsort(t).tolist() == [1, 2, 0]
    assert np.shape(t) == (3,)
    assert np.ndim(t) == 1
    assert np.size(t) == 3
    assert np.allclose(t, t)
    assert np.isclose(t, 3.0).tolist() == [True, False, False]
    assert np.array_equal(t, t)
    assert np.any(t > 2)
    assert np.isnan(t).tolist() == [False] * 3
    assert (np.array([2.0, 2.0, 2.0]) < t).tolist() == [True, False, False]
    assert np.result_type(t) == np.float32
    assert np.searchsorted(np.array([0.0, 1.5]), t).tolist() == [2, 1, 2]


def test_like_functions_make_tensors_to_write_into():
    t = pb.tensor([3.0, 1.0, 2.0], requires_grad=True)
    for out, value in ((np.zeros_like(t), 0), (np.ones_like(t), 1), (np.full_like(t, 7), 7)):
        assert isinstance(out, pb.Tensor)
        assert not out.requires_grad
        assert out.tolist() == [value] * 3
    assert np.zeros_like(t, dtype=np.int32, shape=(2, 2)).dtype == np.int32
    out = np.empty_like(t)
    out[...] = t * 2
    assert out.requires_grad
    assert np.full_like(t, t[0]).requires_grad


def test_every_numpy_function_works_where_no_gradient_is_needed():
    t = pb.asarray(np.array([3.0, 1.0, 2.0]))
    assert np.histogram(t, 2)[0].tolist() == [1, 2]
    assert isinstance(np.linalg.svd(np.diag(t)).U, pb.Tensor)
    assert np.apply_along_axis(np.sum, 0, t).item() == 6.0
    with pb.no_grad():
        assert np.histogram(pb.tensor([3.0, 1.0, 2.0], requires_grad=True), 2)[0].tolist() == [1, 2]


def test_scipy_special_ufuncs():
    special = pytest.importorskip("scipy.special")
    x = np.array([0.3, 1.2, 2.0])
    for name in ("expit", "erf", "erfc", "gammaln", "psi", "i0", "ndtr", "log_ndtr", "log_expit"):
        assert pb.gradcheck(getattr(special, name), (x,))
        np.testing.assert_allclose(pb.vjp(getattr(special, name), x)[0], getattr(special, name)(x), rtol=1e-12)
    with pytest.raises(TypeError, match=r"scipy\.special\.ellipk has no gradient.*pb\.custom_op"):
        special.ellipk(pb.tensor(x, requires_grad=True))


# -- a gradient is never lost silently ---------------------------------------------------------------

TRACKED = pb.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
ARRAY = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: np.asarray(t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: np.array(t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: np.array([t[0], t[1]]), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: ARRAY.__setitem__(slice(None), t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: ARRAY.__setitem__(0, t[0]), ValueError, "sequence"),
        (lambda t: ARRAY.__iadd__(t), pb.GradientError, "instead of `x \\+= t`"),
        (lambda t: np.add(t, 1, out=ARRAY), pb.GradientError, "cannot be written into a NumPy array"),
        (lambda t: np.sum(t, axis=0, out=np.zeros(())), pb.GradientError, "cannot be written"),
        (lambda t: np.add.at(ARRAY, [0], t[0]), pb.GradientError, "cannot be written"),
        (lambda t: np.copyto(ARRAY, t), pb.GradientError, "cannot be written"),
        (lambda t: ARRAY.dot(t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: np.vectorize(lambda x: x)(t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: np.frompyfunc(lambda x: x, 1, 1)(t), TypeError, "has no gradient here"),
        (lambda t: np.apply_along_axis(np.sum, 0, t), TypeError, "np.apply_along_axis"),
        (lambda t: np.fromiter(t, float), ValueError, "sequence"),
        (lambda t: np.random.normal(t), pb.GradientError, r"t\.detach\(\)"),
        (lambda t: math.sin(t[0]), pb.GradientError, r"t\.item\(\)"),
        (lambda t: float(t[0]), pb.GradientError, r"t\.item\(\)"),
        (lambda t: int(t[0]), pb.GradientError, r"t\.item\(\)"),
        (lambda t: complex(t[0]), pb.GradientError, r"t\.item\(\)"),
        (lambda t: np.add(t, t, where=ARRAY > 0), TypeError, "np.where"),
        (lambda t: np.quantile(t, t[0] / 5), TypeError, "np.quantile has a gradient with respect to `a` alone"),
        (lambda t: np.histogram(t), TypeError, "np.histogram has no gradient here"),
        (lambda t: np.spacing(t), TypeError, "`spacing` has no gradient here"),
        (lambda t: np.bitwise_and.reduce(t), TypeError, "bitwise_and"),
        (lambda t: np.multiply.at(t * 1, [0], 2.0), TypeError, "np.add.at and np.subtract.at have"),
        (lambda t: np.matmul(t, t, axes=[(0,), (0,), ()]), TypeError, "`axes=`"),
    ],
)
def test_what_cannot_work_says_so(call, error, text):
    before = ARRAY.copy()
    with pytest.raises(error, match=text):
        call(TRACKED)
    assert np.array_equal(ARRAY, before)


def test_the_cause_is_named_when_numpy_wraps_the_error():
    out = np.zeros(3)
    with pytest.raises(ValueError) as caught:
        out[0] = TRACKED[0]
    assert isinstance(caught.value.__cause__, pb.GradientError)


def test_forward_mode_is_not_lost_either():
    for lose in (np.asarray, lambda t: float(np.sum(t)), lambda t: np.zeros(2).__setitem__(slice(None), t)):
        with pytest.raises(pb.GradientError):
            pb.jvp(lose, (np.ones(2),), (np.ones(2),))


def test_arrays_of_untracked_tensors():
    t = pb.tensor([1.0, 2.0])
    view = np.asarray(t)
    assert not view.flags.writeable
    assert np.shares_memory(view, t.data)
    copy = np.array(t)
    copy[0] = 9
    assert t.tolist() == [1.0, 2.0]
    assert np.asarray(t, np.float64).dtype == np.float64
    out = np.zeros(2)
    out[:] = t
    np.add(t, 1, out=out)
    assert out.tolist() == [2.0, 3.0]
    np.copyto(out, t)
    out += t
    assert out.tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, np.float64, copy=False)


def test_out_of_a_tensor_is_written_with_its_gradient():
    w = pb.tensor([1.0, 2.0], requires_grad=True)
    out = pb.zeros((2,))
    alias = out.clone()
    assert np.multiply(w, w, out=out) is out
    assert out.requires_grad
    assert alias.tolist() == [0.0, 0.0]
    np.sum(out).backward()
    assert w.grad.tolist() == [2.0, 4.0]
    total = pb.zeros(())
    assert np.sum(w, out=total) is total
    assert total.requires_grad
    with pytest.raises(pb.ShapeError):
        np.multiply(w, w, out=pb.zeros((3,)))


def test_untracked_ufuncs_write_where_they_are_told():
    t, out = pb.tensor([1.0, 2.0]), pb.zeros((2,))
    np.add(t, t, out=out)
    assert out.tolist() == [2.0, 4.0]
    np.add.at(out, [0, 0], 1.0)
    assert out.tolist() == [4.0, 4.0]
    np.put(out, [1], 7.0)
    np.place(out, [True, False], [5.0])
    assert out.tolist() == [5.0, 7.0]
    assert np.add(t, t, where=np.array([True, False]), out=pb.zeros((2,))).tolist() == [2.0, 0.0]


def test_methods_of_arrays_that_are_ufuncs_work_too():
    a = np.array([0.0, 2.0, 4.0])
    assert pb.grad(lambda t: a.clip(1.0, t).sum())(3.0) == 1.0
    assert pb.grad(lambda t: a.clip(t, None).sum())(1.0) == 1.0


def test_operators_with_arrays_go_both_ways():
    a, w = np.array([1.0, 2.0]), pb.tensor(np.array([3.0, 4.0]), requires_grad=True)
    for result, expected in (
        (a + w, [4.0, 6.0]),
        (w + a, [4.0, 6.0]),
        (a - w, [-2.0, -2.0]),
        (a / w, [1 / 3, 0.5]),
        (a**w, [1.0, 16.0]),
        (a @ w, 11.0),
        (w @ a, 11.0),
        (np.float64(2) * w, [6.0, 8.0]),
    ):
        assert isinstance(result, pb.Tensor)
        assert result.requires_grad
        np.testing.assert_allclose(result.detach().numpy(), expected)


# -- the tables agree with NumPy ---------------------------------------------------------------------


def _implementations():
    for module in numpy_functions.MODULES:
        for name, function in vars(module).items():
            if name.startswith("numpy_"):
                yield np, name.removeprefix("numpy_"), function
    for name, function in vars(numpy_linalg).items():
        if name.startswith("linalg_"):
            yield np.linalg, name.removeprefix("linalg_"), function
    for name in sorted(numpy_linalg._ONE_AXIS | numpy_linalg._SEVERAL_AXES):
        yield np.fft, name, numpy_linalg.find("fft", name)


@pytest.mark.parametrize(
    ("namespace", "name", "function"), [pytest.param(*row, id=row[1]) for row in _implementations()]
)
def test_arguments_are_named_as_in_numpy(namespace, name, function):
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("arguments are compared with those of NumPy 2.4")
    theirs = inspect.signature(getattr(namespace, name)).parameters
    ours = inspect.signature(function).parameters
    accepted = {"constant_values", "end_values", "stat_length", "reflect_type"} if name == "pad" else set()
    accepted |= {"einsum": {"dtype", "order"}, "clip": {"dtype"}}.get(name, set())  # among NumPy's **kwargs
    if name == "empty_like":
        accepted.add("a")  # NumPy calls it `prototype`; it is given by position
    assert not set(ours) - set(theirs) - accepted
    for key, parameter in ours.items():
        other = theirs.get(key)
        if other is not None and parameter.default is not inspect.Parameter.empty:
            values = (parameter.default, other.default)
            plain = [None if value is np._NoValue or value is False else value for value in values]
            assert plain[0] == plain[1] or key in ("shift", "ddof", "dtype", "where"), (key, values)


def test_float_power_of_a_tensor_and_a_number():
    x = np.array([1.0, 2.0], np.float32)
    for power in (lambda t: np.float_power(t, 0.1), lambda t: np.float_power(0.1, t)):
        result = power(pb.tensor(x, requires_grad=True))
        assert result.dtype == pb.float64 and np.allclose(result.detach().numpy(), power(x), rtol=1e-14)
