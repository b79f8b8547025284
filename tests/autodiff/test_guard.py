"""The numerics guard, and zero cotangents that stay zero."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.autodiff import guard as guard_module
from tests.backends.installed import needs_ml_dtypes


def line() -> int:
    return sys._getframe(1).f_lineno


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


class TestBornForward:
    def test_names_operation_and_line(self):
        w = pb.tensor(np.array([1.0, -2.0]), requires_grad=True)
        x = w * 2
        here = line() + 1
        y = x.log()
        loss = y.mean()
        with pytest.raises(pb.NumericalInstabilityError) as error:
            loss.backward()
        message = str(error.value)
        assert "`log` made nan" in message and f"test_guard.py:{here}" in message
        assert "minimum of -4" in message and w.grad is None

    def test_goes_back_to_the_first_culprit(self):
        w = pb.tensor(np.array([0.0, 1.0]), requires_grad=True)
        here = line() + 1
        y = 1 / w
        z = ((y * 2).tanh() * y).sum()
        with pytest.raises(pb.NumericalInstabilityError, match=f"`(divide|reciprocal)` made inf: test_guard.py:{here}"):
            z.backward()

    def test_names_a_range_where_values_were_not_kept(self):
        w = pb.tensor(np.array([1e308, 1.0]), requires_grad=True)
        first = line() + 1
        y = w + w
        z = y + 1.0
        last = line() + 1
        loss = z.sum()
        with pytest.raises(pb.NumericalInstabilityError) as error:
            loss.backward()
        assert f"test_guard.py:{first}" in str(error.value) and f"test_guard.py:{last}" in str(error.value)


class TestBornBackward:
    def test_names_operation_and_line(self):
        w = pb.tensor(np.array([0.0, 1.0]), requires_grad=True)
        x = w * 3
        here = line() + 1
        y = x.sqrt()
        loss = y.sum()
        with pytest.raises(pb.NumericalInstabilityError) as error:
            loss.backward()
        message = str(error.value)
        assert "gradient of `sqrt` is inf" in message and f"test_guard.py:{here}" in message
        assert w.grad is None

    def test_in_an_earlier_window(self, monkeypatch):
        monkeypatch.setattr(guard_module, "WINDOW_BYTES", 64)
        w = pb.tensor(np.array([0.0, 1.0]), requires_grad=True)
        y = w * 3
        for _ in range(5):
            y = y * 1.5
        here = line() + 1
        y = y.sqrt()
        for _ in range(20):
            y = y * 1.5
        with pytest.raises(pb.NumericalInstabilityError, match=f"gradient of `sqrt` is inf: test_guard.py:{here}"):
            y.sum().backward()
        assert w.grad is None

    def test_windows_do_not_change_gradients(self, monkeypatch):
        w = pb.tensor(np.array([0.3, 1.0]), requires_grad=True)

        def loss():
            y = w
            for _ in range(10):
                y = (y * w).sin() + y * w
            return y.sum()

        loss().backward()
        plain, w.grad = w.grad, None
        monkeypatch.setattr(guard_module, "WINDOW_BYTES", 40)
        loss().backward()
        assert np.array_equal(plain.numpy(), w.grad.numpy())

    def test_a_walk_after_the_error_says_so(self):
        w = pb.tensor(np.array([0.0]), requires_grad=True)
        loss = w.sqrt().sum()
        with pytest.raises(pb.NumericalInstabilityError):
            loss.backward()
        with pytest.raises(pb.GraphConsumedError):
            loss.backward()


class TestModes:
    def test_off(self):
        w = pb.tensor(np.array([0.0]), requires_grad=True)
        with pb.guard("off"):
            w.sqrt().sum().backward()
        assert np.isinf(w.grad.numpy()).all()

    def test_warn(self):
        w = pb.tensor(np.array([0.0]), requires_grad=True)
        with pb.guard("warn"), pytest.warns(RuntimeWarning, match="gradient of `sqrt`"):
            w.sqrt().sum().backward()
        assert np.isinf(w.grad.numpy()).all()

    def test_trace_raises_at_once(self):
        x = pb.tensor(np.array([-1.0]))
        with pb.guard("trace"):
            here = line() + 2
            with pytest.raises(pb.NumericalInstabilityError, match=f"`log` made nan: test_guard.py:{here}"):
                x.log()

    def test_unknown_mode(self):
        with pytest.raises(ValueError, match="'loud'"):
            pb.guard("loud")

    def test_is_off_in_transforms(self):
        assert np.isinf(pb.grad(lambda x: pb.sqrt(x).sum())(np.array([0.0]))).all()

    def test_large_finite_gradients_are_no_alarm(self):
        w = pb.tensor(np.array([1.0], dtype=np.float32), requires_grad=True)
        (w * 1e30).sum().backward()
        assert w.grad.item() == pytest.approx(1e30)


MASKED = {
    "sqrt": lambda x: pb.where(x > 0, pb.sqrt(x), 0.0),
    "log": lambda x: pb.where(x > 0, pb.log(x), 0.0),
    "x log x": lambda x: pb.where(x > 0, x * pb.log(x), 0.0),
    "divide": lambda x: pb.where(x != 0, 1 / x, 0.0),
    "0/0": lambda x: pb.where(x != 0, x / x, 0.0),
    "pow": lambda x: pb.where(x > 0, x**0.5, 0.0),
    "pow -1": lambda x: pb.where(x > 0, x**-1.0, 0.0),
    "norm": lambda x: pb.where(x > 0, pb.sqrt(x * x + x * x), 0.0),
    "assignment": lambda x: assigned(pb.sqrt(x)),
    "index": lambda x: pb.log(x)[1:],
}


def assigned(y):
    y[0] = 0.0
    return y


@pytest.mark.parametrize("name", MASKED)
def test_zero_cotangents_stay_zero(name):
    x = np.array([0.0, 2.0])
    f = lambda t: MASKED[name](t).sum()
    with np.errstate(all="ignore"):
        gradient = pb.grad(f)(x)
        assert gradient[0] == 0 and np.isfinite(gradient).all()
        hessian = pb.hessian(f)(x)
    step = 1e-4
    numeric = (f(pb.asarray(x + [0, step])).item() - f(pb.asarray(x - [0, step])).item()) / (2 * step)
    assert gradient[1] == pytest.approx(numeric, rel=1e-6, abs=1e-8)
    assert np.isfinite(hessian[1]).all()


def test_second_derivatives_survive():
    f = lambda x: ((3 * x) ** 2 / 2).sum()
    assert pb.hessian(f)(np.array([0.0])) == 9
    g = lambda x: pb.where(x > -1, (3 * x) ** 2 / 2, 0.0).sum()
    assert pb.hessian(g)(np.array([0.0])) == 9


def test_no_warnings_in_walks():
    w = pb.tensor(np.array([0.0]), requires_grad=True)
    y = w.sqrt().sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pb.guard("off"):
            y.backward()


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: pb.where(x < 20, pb.log(1 + pb.exp(x)), x), [1000.0, 1.0]),
        (lambda x: pb.where(x > 0, pb.sin(pb.sqrt(x)), 0.0), [-1.0, 0.0, 4.0]),
        (lambda x: pb.where(x < 20, pb.sinh(x) ** 2, 0.0), [1000.0, 1.0]),
        (lambda x: pb.where(x > 0, pb.sigmoid(pb.log(x)), 0.0), [-1.0, 4.0]),
        (lambda x: pb.where(x > 0, pb.logaddexp(pb.log(x), x), 0.0), [-1.0, 4.0]),
        (lambda x: pb.where(x > 0, pb.hypot(1 / x, x), 0.0), [0.0, 4.0]),
    ],
)
def test_zero_cotangents_stay_zero_through_every_elementwise_operation(f, x):
    x = pb.tensor(x, dtype=pb.float64, requires_grad=True)
    f(x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad.numpy()[-1] != 0
    assert np.isfinite(pb.hessian(lambda t: f(t).sum())(x.detach().numpy())).all()


class TestTransforms:
    """`pb.grad` and `pb.value_and_grad` look only where a block asks for it."""

    def test_pass_on_what_numpy_would(self):
        assert np.isnan(pb.value_and_grad(lambda x: np.sum(np.log(x)))(np.array([-1.0, 1.0]))[0])
        with pb.guard("off"):
            assert np.isinf(pb.grad(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 1.0]))[0])

    @pytest.mark.parametrize("mode", ["raise", "trace"])
    @pytest.mark.parametrize("transform", [pb.grad, pb.value_and_grad])
    def test_inside_a_block_the_origin_is_named(self, transform, mode):
        with pb.guard(mode):
            with pytest.raises(pb.NumericalInstabilityError, match=r"`log` made nan: test_guard.py:.*minimum of -1"):
                transform(lambda x: np.sum(np.log(x)))(np.array([-1.0, 1.0]))
            with pytest.raises(pb.NumericalInstabilityError, match=r"gradient of `sqrt` is inf: test_guard.py:"):
                transform(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 1.0]))
            assert np.allclose(pb.grad(lambda x: np.sum(x**2))(np.ones(2)), 2)
            assert np.allclose(pb.hessian(lambda x: np.sum(x**3))(np.ones(2)), 6 * np.eye(2))
            assert pb.grad(lambda x: 5.0)(1.0) == 0.0

    def test_warns(self):
        with pb.guard("warn"), pytest.warns(RuntimeWarning, match="gradient of `sqrt` is inf"):
            assert np.isinf(pb.grad(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 1.0]))[0])


def test_a_part_added_into_the_sum_of_others_masks_too():
    x = pb.tensor([0.0, 1.0, 4.0], requires_grad=True)
    y = pb.sqrt(x)
    mask = pb.tensor([0.0, 1.0, 1.0])
    parts = [y[1:], y * mask, y * mask]  # walked from the last to the first
    sum(part.sum() for part in parts).backward()
    assert x.grad.tolist() == [0.0, 1.5, 0.75]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full(3, np.nan), "all NaN (shape (3,), float64)"),
        (np.zeros((0, 4)), "empty (shape (0, 4), float64)"),
        (np.array([0j, 1]), "complex (shape (2,), complex128)"),
    ],
    ids=["all NaN", "empty", "complex"],
)
def test_any_input_is_described(values: np.ndarray, message: str) -> None:
    assert message in described(pb.asarray(values))


@needs_ml_dtypes
@pytest.mark.filterwarnings("error")
def test_an_input_in_bfloat16_is_described() -> None:
    values = pb.asarray([0.0, 1.0], dtype=pb.bfloat16)
    assert "minimum of 0 and a maximum of 1 (shape (2,), bfloat16)" in described(values)


def described(variable: pb.Tensor) -> str:
    """What is said of the gradient of a logarithm's input."""
    variable.set_requires_grad(True)
    with np.errstate(all="ignore"), pytest.raises(pb.NumericalInstabilityError) as error:
        pb.real(pb.mean(pb.log(variable))).backward()
    return str(error.value)


@pytest.mark.parametrize("tracked", [False, True])
def test_trace_looks_at_writes_in_place_too(tracked):
    w = pb.tensor([1.0, 2.0], requires_grad=tracked)
    x = w * 1
    with pb.guard("trace"):
        with pytest.raises(pb.NumericalInstabilityError, match="`divide` made inf"):
            x /= pb.tensor([0.0, 1.0])
        with pytest.raises(pb.NumericalInstabilityError, match="`setitem` made inf"):
            x[0] = np.inf
        x += 1
        x[1] = 7.0
    assert x.detach().tolist() == [2.0, 7.0]


def test_a_warning_points_at_the_users_line():
    w = pb.tensor([0.0], requires_grad=True)
    loss = (1 / w).sum()
    with pb.guard("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss.backward()
    assert caught and all(warning.filename == __file__ for warning in caught)
