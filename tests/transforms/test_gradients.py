"""grad and its family: what is a gradient when there is none, what is refused, and what is left behind."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

import pullback as pb
from pullback import modes

X = np.array([1.0, 2.0, 3.0])


def test_what_the_output_does_not_depend_on_has_a_zero_gradient():
    gradients = pb.grad(lambda x, y: np.sum(x), argnums=(0, 1))(X, {"a": X, "b": 2.0})
    assert gradients[1]["a"].tolist() == [0.0, 0.0, 0.0]
    assert gradients[1]["b"] == 0.0
    assert pb.grad(lambda x: 3.0)(X).tolist() == [0.0, 0.0, 0.0]
    assert pb.value_and_grad(lambda x: np.float64(3.0))(X)[0] == 3.0
    assert pb.grad(lambda x: pb.tensor(3.0))(X).tolist() == [0.0, 0.0, 0.0]
    assert pb.jacrev(lambda x: np.ones(2))(X).tolist() == np.zeros((2, 3)).tolist()
    assert pb.jacfwd(lambda x: np.ones(2))(X).tolist() == np.zeros((2, 3)).tolist()
    assert pb.jvp(lambda x: (3.0, np.ones(2)), (X,), (X,))[1][0] == 0.0
    assert pb.vjp(lambda x: np.ones(2), X)[1](np.ones(2))[0].tolist() == [0.0, 0.0, 0.0]


def test_a_single_element_counts_as_a_scalar():
    assert pb.grad(lambda x: x[:1])(X).tolist() == [1.0, 0.0, 0.0]


def test_complex_gradients_point_uphill():
    z = np.array([1 + 2j, -0.5j])
    gradient = pb.grad(lambda z: np.sum(np.abs(z) ** 2))(z)
    np.testing.assert_allclose(gradient, 2 * z)
    assert gradient.dtype == np.complex128


def test_writing_to_an_argument_is_seen_by_the_gradient_and_not_by_the_caller():
    def f(x):
        x[0] = x[1] * x[2]
        x *= 2
        return np.sum(x)

    x = X.copy()
    for transform in (pb.grad, pb.jacrev, pb.jacfwd):
        assert transform(f)(x).tolist() == [0.0, 8.0, 6.0]
        assert x.tolist() == X.tolist()
    t = pb.tensor(X)
    assert pb.grad(f)(t).tolist() == [0.0, 8.0, 6.0]
    assert t.tolist() == X.tolist()


def test_no_grad_outside_and_inside():
    with pb.no_grad():
        assert pb.grad(lambda x: np.sum(x**2))(X).tolist() == [2.0, 4.0, 6.0]
        assert pb.jvp(np.sin, (0.0,), (1.0,))[1] == 1.0
        assert pb.hessian(lambda x: np.sum(x**2))(X).tolist() == (2 * np.eye(3)).tolist()
        _, pullback = pb.vjp(np.sin, 0.0)
        assert pullback(1.0) == (1.0,)

    def f(x):
        with pb.no_grad():
            constant = np.sum(x)
        return constant * np.sum(x)

    for transform in (pb.grad, pb.jacfwd, pb.jacrev):
        assert transform(f)(X).tolist() == [6.0, 6.0, 6.0]


def test_no_grad_around_an_inner_transform_makes_it_a_constant():
    def f(x):
        with pb.no_grad():
            slope = pb.grad(lambda y: y**2 * x)(3.0)
        return slope * x

    for derivative in (pb.grad, lambda f: lambda x: pb.jvp(f, (x,), (1.0,))[1]):
        assert derivative(f)(2.0) == 12.0


def test_stop_gradient():
    tree = {"a": X, "b": 2.0}

    def f(p):
        stopped = pb.stop_gradient(p)
        return np.sum(p["a"] * stopped["a"]) * stopped["b"]

    assert pb.grad(f)(tree)["a"].tolist() == (2 * X).tolist()
    assert pb.grad(f)(tree)["b"] == 0.0
    assert pb.jvp(lambda x: x * pb.stop_gradient(x), (3.0,), (1.0,))[1] == 3.0
    assert pb.stop_gradient({"n": 3, "s": "text"}) == {"n": 3, "s": "text"}


def test_captured_variables():
    w = pb.tensor(X, requires_grad=True)
    gradient = pb.grad(lambda x: np.sum(x * x * w))(X)
    assert type(gradient) is np.ndarray  # arrays in, arrays out
    tracked = pb.grad(lambda x: np.sum(x * x * w))(pb.asarray(X))
    pb.sum(tracked).backward()
    assert w.grad.tolist() == (2 * X).tolist()
    assert pb.grad(lambda x: np.sum(x**3))(w).requires_grad  # a gradient penalty
    consumed = w * 2
    pb.sum(consumed).backward()
    assert pb.grad(lambda x: np.sum(x * consumed))(X).tolist() == (2 * X).tolist()


def test_no_tensor_gets_a_gradient():
    w = pb.tensor(X, requires_grad=True)
    pb.grad(lambda x: np.sum(x * w))(w)
    assert w.grad is None


def test_the_guard_is_off():
    with np.errstate(all="ignore"):
        gradient = pb.grad(lambda x: np.sum(np.log(x)))(np.array([0.0, -1.0]))
    assert np.isinf(gradient[0])


def test_exceptions_leave_nothing_behind():
    def fails(x):
        raise KeyError("inside")

    before = modes.current()
    for transform in (pb.grad, pb.jacrev, pb.jacfwd, lambda f: pb.hessian(f), lambda f: lambda x: pb.vjp(f, x)):
        with pytest.raises(KeyError, match="inside"):
            transform(fails)(X)
    with pytest.raises(KeyError, match="inside"):
        pb.grad(lambda x: np.sum(pb.grad(fails)(x)))(X)
    assert modes.current() is before
    w = pb.tensor(X, requires_grad=True)
    assert type(pb.grad(lambda x: np.sum(x * w))(X)) is np.ndarray


def test_threads():
    results = {}

    def work(number):
        x = np.full(3, float(number))
        results[number] = [pb.grad(lambda x: np.sum(pb.grad(lambda y: np.sum(y**3))(x)))(x)[0] for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [6.0 * i] * 20 for i in range(4)}


def test_vjp_can_be_pulled_back_many_times():
    output, pullback = pb.vjp(lambda x, y: {"p": x * y, "s": np.sum(x)}, X, X + 1)
    assert output["p"].tolist() == [2.0, 6.0, 12.0]
    for scale in (1.0, 2.0):
        x_bar, y_bar = pullback({"p": scale * np.ones(3), "s": 0.0})
        assert x_bar.tolist() == (scale * (X + 1)).tolist()
        assert y_bar.tolist() == (scale * X).tolist()


def test_vjp_of_complex_functions_conjugates_as_torch_does():
    torch = pytest.importorskip("torch")
    z, c = np.array([1 + 2j, 0.5 - 1j]), np.array([0.3 + 1j, 2.0 - 1j])
    expected = torch.autograd.functional.vjp(lambda z: z * z * 1j, torch.tensor(z), torch.tensor(c))[1]
    np.testing.assert_allclose(pb.vjp(lambda z: z * z * 1j, z)[1](c)[0], expected.numpy())


ERRORS = [
    (lambda: pb.grad(lambda x: x * 2)(X), pb.ShapeError, r"returned shape \(3,\).*jacrev"),
    (lambda: pb.grad(lambda x: np.ones(3))(X), pb.ShapeError, r"returned shape \(3,\)"),
    (lambda: pb.grad(lambda x: np.sum(x * 1j))(X), pb.DtypeError, "real scalar, it returned complex128"),
    (lambda: pb.grad(lambda x: np.argmax(x))(X), pb.DtypeError, "int64"),
    (lambda: pb.grad(lambda x: None)(X), pb.DtypeError, "returned None. Did you forget `return`"),
    (lambda: pb.grad(lambda x: (x[0], x))(X), pb.DtypeError, "has_aux=True"),
    (lambda: pb.grad(lambda x: np.sum(x), has_aux=True)(X), pb.ShapeError, r"pair \(output, aux\)"),
    (lambda: pb.grad(lambda x: x)(3), pb.DtypeError, r"argument 0 is 3, an integer.*Write 3\.0"),
    (lambda: pb.grad(lambda x: x)(True), pb.DtypeError, "argument 0"),
    (lambda: pb.grad(lambda x: np.sum(x))(np.arange(3)), pb.DtypeError, r"argument 0 is of dtype int64"),
    (lambda: pb.grad(lambda x, p: x, 1)(1.0, {"a": [1.0, 2]}), pb.DtypeError, r"argument 1\['a'\]\[1\] is 2"),
    (lambda: pb.grad(lambda x: x)("text"), pb.DtypeError, "argument 0 is of type str.*tree.register"),
    (lambda: pb.grad(lambda x: x, argnums=1)(1.0), pb.ShapeError, "argnums=1.*1 positional"),
    (lambda: pb.grad(lambda x: x)(x=1.0), pb.ShapeError, "Pass by position"),
    (lambda: pb.grad(lambda x, y: x, argnums=(0, -2))(1.0, 2.0), pb.ShapeError, "argument 0 twice"),
    (lambda: pb.grad(lambda x: x, argnums="x")(1.0), pb.DtypeError, "argnums must be an integer"),
    (lambda: pb.vjp(np.sin, X)[1](np.ones(2)), pb.ShapeError, r"cotangent has shape \(2,\).*\(3,\)"),
    (lambda: pb.vjp(np.sin, X)[1](np.ones(3, np.float32)), pb.DtypeError, "float32.*float64.*astype"),
    (lambda: pb.vjp(lambda x: {"a": x}, X)[1]([X]), pb.ShapeError, r"structure Structure\(\[\*\]\)"),
    (lambda: pb.vjp(np.sin, X)[1]("text"), pb.DtypeError, "cotangent must be an array"),
    (lambda: pb.jvp(np.sin, X, X), pb.ShapeError, r"primals must be a tuple.*\(primal,\)"),
    (lambda: pb.hvp(np.sum, X, X), pb.ShapeError, r"hvp: primals must be a tuple.*\(primal,\)"),
    (lambda: pb.grad(lambda x: np.sum(np.array([x[0], x[1]])))(X), pb.GradientError, "np.stack.*t.item"),
    (lambda: pb.jvp(np.sin, (X,), (X[:2],)), pb.ShapeError, "tangent of argument 0"),
    (lambda: pb.jvp(np.sin, (X,), (X, X)), pb.ShapeError, "structure"),
    (lambda: pb.jvp(lambda p: p["a"], ({"a": X},), ({"a": X.astype("f4")},)), pb.DtypeError, r"argument 0\['a'\]"),
    (lambda: pb.jvp(np.sin, (3,), (1,)), pb.DtypeError, "integer"),
    (lambda: pb.jacrev(lambda z: np.abs(z))(np.ones(2, complex)), pb.DtypeError, "no complex Jacobian"),
    (lambda: pb.jacfwd(lambda z: np.abs(z))(np.ones(2, complex)), pb.DtypeError, "no complex Jacobian"),
]


@pytest.mark.parametrize(
    "transform", [pb.grad, pb.value_and_grad, pb.jacrev, pb.jacfwd, pb.hessian, pb.per_example_grad]
)
@pytest.mark.parametrize("argnums", [X, (X,), 1.0, True, "x", pb.tensor(X)])
def test_what_the_function_is_called_with_is_refused_at_once_as_argnums(transform, argnums):
    text = rf"{transform.__name__}: argnums must be an integer.*`pb\.{transform.__name__}\(f\)\(x\)`"
    with pytest.raises(pb.DtypeError, match=text):
        transform(np.sum, argnums)


def test_vmap_refuses_an_array_of_examples_as_axes():
    with pytest.raises(pb.DtypeError, match=r"in_axes says.*`pb\.vmap\(f\)\(x\)`"):
        pb.vmap(np.sin, X)


@pytest.mark.parametrize("transform", [pb.grad, pb.value_and_grad, pb.jacrev, pb.jacfwd, pb.hessian])
def test_a_function_without_return_is_asked_about(transform):
    def forgetful(x):
        np.sum(x**2)

    for run in (transform(forgetful), pb.compile(transform(forgetful)), lambda x: pb.gradcheck(forgetful, (x,))):
        with pytest.raises(pb.DtypeError, match=r"returned None\. Did you forget `return`\?"):
            run(X)


def _filled(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i]
    return np.sum(out)


@pytest.mark.parametrize("transform", [pb.grad, pb.jacrev, pb.jacfwd, pb.hessian])
def test_numpys_own_error_ends_with_what_to_write(transform):
    with pytest.raises(ValueError, match="setting an array element") as caught:
        transform(_filled)(X)
    (note,) = caught.value.__notes__
    assert note.startswith("GradientError: out[...] = t: ")
    assert "write `out = np.zeros_like(t, shape=n)`" in note


def test_an_error_that_scipy_raises_in_place_of_ours_ends_with_what_to_write():
    def as_brentq(x):  # and others whose C code goes on after an error of the function that it calls
        try:
            return float(x[0])
        except pb.GradientError as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(SystemError) as caught:
        pb.grad(pb.grad(as_brentq))(X)
    (note,) = caught.value.__notes__
    assert note.startswith("GradientError: float(): ")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x**2),
        lambda x: x.sum(),
        lambda x: np.dot(x, x),
        lambda x: np.sum(np.array(x) ** 2),
        lambda x: x @ x,
    ],
)
def test_a_list_as_an_argument_is_pointed_to(function):
    with pytest.raises((TypeError, AttributeError, pb.GradientError)) as caught:
        pb.grad(function)([1.0, 2.0, 3.0])
    assert "Argument 0 is a list of 3 numbers" in caught.value.__notes__[0]
    assert "pass `np.array([...])` as the argument" in caught.value.__notes__[0]


def test_errors_that_have_nothing_to_do_with_a_list_are_left_as_they_are():
    with pytest.raises(ZeroDivisionError) as caught:
        pb.grad(lambda x: 1 / 0)([1.0])
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(pb.GradientError) as caught:
        pb.grad(lambda x: float(x[0]))(X)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors_say_what_was_given_and_what_to_write(call, error, text):
    before = modes.current()
    with pytest.raises(error, match=text):
        call()
    assert modes.current() is before


COPIES = [lambda x: x.copy(), lambda x: x.clone(), np.copy, copy.copy, lambda x: pb.asarray(x, copy=True)]


@pytest.mark.parametrize("take", COPIES)
def test_copies_keep_the_derivative_in_every_mode(take):
    cubes = lambda x: take(x) ** 3
    assert np.allclose(pb.jacrev(cubes)(X), np.diag(3 * X**2))
    assert np.allclose(pb.jacfwd(cubes)(X), np.diag(3 * X**2))
    assert np.allclose(pb.hessian(lambda x: np.sum(cubes(x)))(X), np.diag(6 * X))
    assert np.allclose(pb.hvp(lambda x: np.sum(cubes(x)), (X,), (np.ones_like(X),))[0], 6 * X)


def test_a_new_tensor_of_an_argument_does_not_lose_the_gradient_silently():
    with pytest.raises(pb.GradientError, match=r"t.clone.*pb.asarray.*t.detach"):
        pb.grad(lambda x: pb.sum(pb.tensor(x) ** 2))(X)
    with pytest.raises(pb.GradientError, match=r"pb.asarray"):
        pb.jvp(lambda x: pb.tensor(x) ** 2, (X,), (X,))
    assert np.allclose(pb.grad(lambda x: pb.sum(x * pb.tensor(x.detach())))(X), X)
