"""jacrev, jacfwd, hessian, hvp: shapes, trees, complex numbers, agreement with other libraries."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb

random = np.random.default_rng(0)
X, Y = random.normal(size=(2, 3)), random.normal(size=(3, 4))


@pytest.mark.parametrize("jacobian", [pb.jacrev, pb.jacfwd])
class TestJacobian:
    def test_shape_is_the_output_then_the_argument(self, jacobian):
        result = jacobian(lambda x, y: x @ y, argnums=(0, 1))(X, Y)
        assert result[0].shape == (2, 4, 2, 3)
        assert result[1].shape == (2, 4, 3, 4)
        np.testing.assert_allclose(result[0], np.einsum("ia,bj->ijab", np.eye(2), Y))
        np.testing.assert_allclose(result[1], np.einsum("ia,jb->ijab", X, np.eye(4)))

    def test_trees(self, jacobian):
        result = jacobian(lambda p: {"s": p["a"] * p["b"], "t": (p["a"],)})({"a": X[0], "b": 2.0})
        assert result["s"]["a"].shape == (3, 3)
        np.testing.assert_allclose(result["s"]["b"], X[0])
        np.testing.assert_allclose(result["t"][0]["a"], np.eye(3))
        assert result["t"][0]["b"].tolist() == [0.0, 0.0, 0.0]

    def test_numbers(self, jacobian):
        assert jacobian(lambda x: x**2)(3.0) == 6.0
        assert jacobian(lambda x: np.stack([x, x**2]))(3.0).tolist() == [1.0, 6.0]
        assert jacobian(lambda x: np.sum(x))(X).shape == (2, 3)

    def test_empty(self, jacobian):
        assert jacobian(lambda x: x * 2)(np.zeros(0)).shape == (0, 0)
        assert jacobian(lambda x: np.ones(2) * np.sum(x))(np.zeros((0, 3))).shape == (2, 0, 3)
        assert jacobian(lambda x: x[:0])(X[0]).shape == (0, 3)

    def test_dtype(self, jacobian):
        assert jacobian(np.sin)(X[0].astype(np.float32)).dtype == np.float32

    def test_holomorphic_functions(self, jacobian):
        z = np.array([1 + 2j, 0.5 - 1j])
        np.testing.assert_allclose(jacobian(lambda z: z**2 * np.exp(z))(z), np.diag((2 * z + z**2) * np.exp(z)))

    def test_complex_functions_of_real_arguments(self, jacobian):
        result = jacobian(lambda x: np.exp(1j * x))(X[0])
        np.testing.assert_allclose(result, np.diag(1j * np.exp(1j * X[0])))
        assert jacobian(lambda x: np.exp(1j * x))(0.0) == 1j

    def test_same_as_jax(self, jacobian):
        jax = pytest.importorskip("jax")

        def f(x, xp):
            return xp.stack([xp.sin(x).sum(), (x[0] * x[1] ** 2).prod(), xp.tanh(x[1, 0])])

        expected = jax.jacfwd(lambda x: f(x, jax.numpy))(X)
        np.testing.assert_allclose(jacobian(lambda x: f(x, np))(X), expected, rtol=1e-6)

    def test_tensors(self, jacobian):
        result = jacobian(np.sin)(pb.asarray(X[0]))
        assert type(result) is pb.Tensor
        assert not result.requires_grad


def test_hessian_of_trees():
    def f(p):
        return p["a"] ** 2 * np.sum(p["b"] ** 3)

    b = np.array([1.0, 2.0])
    result = pb.hessian(f)({"a": 3.0, "b": b})
    assert result["a"]["a"] == 18.0
    np.testing.assert_allclose(result["a"]["b"], 18 * b**2)
    np.testing.assert_allclose(result["b"]["a"], 18 * b**2)
    np.testing.assert_allclose(result["b"]["b"], np.diag(54 * b))


def test_hessian_of_several_arguments_and_outputs():
    result = pb.hessian(lambda x, y: x * y**2, argnums=(0, 1))(X[0], X[1])
    assert [[part.shape for part in row] for row in result] == [[(3, 3, 3)] * 2] * 2
    np.testing.assert_allclose(np.einsum("iii->i", result[0][1]), 2 * X[1])
    np.testing.assert_allclose(np.einsum("iii->i", result[1][1]), 2 * X[0])


def test_hessian_under_a_mask_at_zero():
    """(3x)**2 / 2 has second derivative 9 at zero, also where its first one vanishes behind a mask."""
    x = np.zeros(2)
    np.testing.assert_allclose(pb.hessian(lambda x: np.sum((3 * x) ** 2 / 2))(x), 9 * np.eye(2))
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0))
    with np.errstate(all="ignore"):
        assert pb.grad(f)(x).tolist() == [0.0, 0.0]
        assert pb.jvp(f, (x,), (np.ones(2),))[1] == 0.0


def test_hvp_of_several_arguments():
    x, y = X[0], X[1]
    f = lambda x, y: np.sum(x**2 * y)
    products = pb.hvp(f, (x, y), (np.ones(3), np.zeros(3)))
    np.testing.assert_allclose(products[0], 2 * y)
    np.testing.assert_allclose(products[1], 2 * x)


def test_hvp_costs_no_hessian():
    x = np.ones(2000)
    calls = []
    (product,) = pb.hvp(lambda x: calls.append(1) or np.sum(np.sin(x) * np.roll(x, 1)), (x,), (x,))
    assert product.shape == (2000,)
    assert len(calls) == 1


def test_jacfwd_runs_the_function_once_per_number_and_jacrev_once():
    calls = []
    pb.jacfwd(lambda x: calls.append(1) or x)(np.ones(5))
    assert len(calls) == 5
    calls.clear()
    pb.jacrev(lambda x: calls.append(1) or x)(np.ones(5))
    assert len(calls) == 1


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "vjp", "jvp", "hvp"])
def test_a_tensor_in_the_place_of_a_function_as_in_pytorch(transform):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    others = {"jvp": ((x,), (x,)), "hvp": ((x,), (x,))}.get(transform, (x,))
    with pytest.raises(TypeError, match=r"expected a function, got a tensor.*pb\.backward\(loss\)\[x\]"):
        getattr(pb, transform)((x * x).sum(), *others)
    with pytest.raises(TypeError, match="expected a function, got NoneType"):
        getattr(pb, transform)(None, *others)


POWERS = {
    "array": np.array([2.0, 3.0]), "integers": np.array([2, 3]), "float64": np.float64(2.5), "float32": np.float32(2.0),
    "number": 3.0, "tensor": pb.asarray(np.array([2.0, 3.0])),
}  # fmt: skip


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("operation", [pb.pow, np.power, lambda x, y: x**y, pb.hypot, pb.atan2, pb.xlogy, pb.maximum])
def test_forward_mode_beside_arrays_and_numbers_of_numpy(power, operation):
    v, t, other = np.array([1.5, 2.5]), np.array([0.3, -0.7]), POWERS[power]
    for function in (lambda x: operation(x, other), lambda x: operation(other, x)):
        _, tangent = pb.jvp(function, (v,), (t,))
        assert np.allclose(tangent, pb.jacrev(function)(v) @ t)
        total = lambda x, function=function: pb.sum(function(x) * x)
        assert np.allclose(pb.hessian(total)(v), pb.jacfwd(pb.grad(total))(v))


def test_second_derivatives_run_the_function_once():
    calls = []

    def rosenbrock(x):
        calls.append(1)
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x, v = np.linspace(-1.0, 1.0, 7), np.linspace(0.0, 1.0, 7)
    matrix = pb.hessian(rosenbrock)(x)
    assert len(calls) == 1
    assert np.allclose(matrix, pb.jacfwd(pb.grad(rosenbrock))(x)) and np.array_equal(matrix, matrix.T)
    del calls[:]
    assert np.allclose(pb.hvp(rosenbrock, (x,), (v,))[0], matrix @ v) and len(calls) == 1


def test_hvp_of_a_complex_argument_is_the_derivative_of_the_gradient():
    z, v = np.array([1.0 + 2.0j, 0.5 - 1.0j]), np.array([0.3 - 0.1j, 1.0 + 0.2j])
    function = lambda z: pb.sum(pb.abs(z * z) ** 2)
    (found,) = pb.hvp(function, (z,), (v,))
    h = 1e-6
    assert np.allclose(found, (pb.grad(function)(z + h * v) - pb.grad(function)(z - h * v)) / (2 * h), rtol=1e-6)
