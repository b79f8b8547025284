"""What goes in comes out: arrays of any library, numbers, tensors, trees of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pullback as pb

from ..backends.installed import require


def square_sum(x):
    return pb.sum(x * x)


X = [1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_arrays(dtype):
    x = np.array(X, dtype)
    value, gradient = pb.value_and_grad(square_sum)(x)
    assert type(value) is np.dtype(dtype).type
    assert type(gradient) is np.ndarray
    assert gradient.dtype == dtype
    assert gradient.tolist() == [2.0, 4.0, 6.0]


def test_numbers():
    assert pb.grad(lambda x: x * x)(3.0) == 6.0
    assert type(pb.grad(lambda x: x * x)(3.0)) is float
    assert pb.grad(lambda x: x / 3)(1.0) == 1 / 3  # computed in float64
    assert type(pb.grad(lambda x: x * x)(np.float32(3))) is np.float32
    assert type(pb.grad(lambda x: x * x)(np.array(3.0))) is np.ndarray
    assert pb.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 + 4j
    value, _ = pb.value_and_grad(lambda x: x * x)(3.0)
    assert isinstance(value, float)


def test_tensors_come_back_as_tensors_without_a_graph():
    value, gradient = pb.value_and_grad(square_sum)(pb.tensor(X))
    for result in (value, gradient):
        assert type(result) is pb.Tensor
        assert not result.requires_grad
    assert gradient.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("torch:cpu", "float64"),
        ("torch:cpu", "float32"),
        ("jax:cpu", "float64"),
        ("strict:cpu", "float64"),
        ("strict:device1", "float64"),
    ],
)
def test_arrays_of_other_libraries(device, dtype):
    require(device)
    x = pb.asarray(X, dtype=dtype, device=device)._raw
    results = {
        "grad": pb.grad(square_sum)(x),
        "second": pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(x**3))(x)))(x),
        "jvp": pb.jvp(pb.sin, (x,), (x,))[1],
        "vjp": pb.vjp(pb.sin, x)[1](x)[0],
        "jacrev": pb.jacrev(pb.sin)(x),
        "jacfwd": pb.jacfwd(pb.sin)(x),
        "hessian": pb.hessian(square_sum)(x),
        "hvp": pb.hvp(square_sum, (x,), (x,))[0],
    }
    values = np.array(X)
    expected = {
        "grad": 2 * values,
        "second": 6 * values,
        "jvp": np.cos(values) * values,
        "vjp": np.cos(values) * values,
        "jacrev": np.diag(np.cos(values)),
        "jacfwd": np.diag(np.cos(values)),
        "hessian": 2 * np.eye(3),
        "hvp": 2 * values,
    }
    for name, result in results.items():
        assert type(result) is type(x), name
        assert result.dtype == x.dtype, name
        np.testing.assert_allclose(pb.asarray(result, device="numpy").numpy(), expected[name], rtol=1e-6)


# -- trees -----------------------------------------------------------------------------------------


@dataclass
class Layer:
    weight: Any
    bias: Any


def test_trees_of_everything():
    parameters = {"layers": [Layer(np.ones((2, 2)), 1.0), Layer(np.ones((2, 2)), np.float32(2.0))], "none": None}

    def loss(p, x):
        for layer in p["layers"]:
            x = np.tanh(x @ layer.weight + layer.bias)
        return np.sum(x)

    gradient = pb.grad(loss)(parameters, np.ones(2))
    assert pb.tree.structure(gradient) == pb.tree.structure(parameters)
    first, second = gradient["layers"]
    assert type(first) is Layer
    assert first.weight.shape == (2, 2)
    assert type(first.bias) is float
    assert type(second.bias) is np.float32
    assert list(gradient) == ["layers", "none"]


def test_argnums():
    def f(x, y, z):
        return x * y**2 * z

    assert pb.grad(f, argnums=1)(2.0, 3.0, 4.0) == 48.0
    assert pb.grad(f, argnums=-1)(2.0, 3.0, 4.0) == 18.0
    assert pb.grad(f, argnums=(2, 0))(2.0, 3.0, 4.0) == (18.0, 36.0)
    assert pb.grad(f, argnums=(1,))(2.0, 3.0, 4.0) == (48.0,)
    assert pb.grad(lambda x, *, k: k * x)(1.0, k=3.0) == 3.0


def test_other_arguments_stay_as_they_are():
    seen = []
    pb.grad(lambda x, flag, indices: seen.append((flag, indices)) or np.sum(x[indices]))(np.ones(3), "yes", [0, 1])
    assert seen == [("yes", [0, 1])]


def test_the_arguments_are_tensors_inside():
    pb.grad(lambda x: (isinstance(x, pb.Tensor) and x.requires_grad) * x)(1.0)
    seen = []
    pb.grad(lambda p: seen.append(p) or p["a"][0])({"a": [1.0]})
    assert isinstance(seen[0]["a"][0], pb.Tensor)


def test_name_and_docstring_are_kept():
    def loss(x):
        """What is minimised."""
        return x

    for transform in (pb.grad, pb.value_and_grad, pb.jacrev, pb.jacfwd, pb.hessian):
        assert transform(loss).__name__ == "loss"
        assert transform(loss).__doc__ == "What is minimised."


# -- aux -------------------------------------------------------------------------------------------


def test_aux_is_made_of_arrays():
    def f(x):
        return np.sum(x**2), {"doubled": x * 2, "count": 3, "total": np.sum(x), "name": "f"}

    gradient, aux = pb.grad(f, has_aux=True)(np.array(X))
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert type(aux["doubled"]) is np.ndarray
    assert type(aux["total"]) is np.float64
    assert (aux["count"], aux["name"]) == (3, "f")
    (value, aux), _ = pb.value_and_grad(f, has_aux=True)(pb.tensor(X))
    assert not aux["doubled"].requires_grad
    assert not value.requires_grad


def test_aux_everywhere():
    def f(x):
        return np.sin(x), x * 2

    x = np.array(X)
    assert pb.vjp(f, x, has_aux=True)[2].tolist() == [2.0, 4.0, 6.0]
    assert pb.jvp(f, (x,), (x,), has_aux=True)[2].tolist() == [2.0, 4.0, 6.0]
    for transform in (pb.jacrev, pb.jacfwd, pb.hessian):
        assert transform(f, has_aux=True)(x)[1].tolist() == [2.0, 4.0, 6.0]
    products, aux = pb.hvp(lambda x: (np.sum(x**3), x * 2), (x,), (x,), has_aux=True)
    np.testing.assert_allclose(products[0], 6 * x * x)
    assert type(aux) is np.ndarray


def test_results_share_no_memory_with_anything():
    x, weights = np.array(X), np.array(X)
    captured = pb.tensor(weights)
    gradient, aux = pb.grad(lambda x: (np.dot(x, captured), (x, captured, x[:2])), has_aux=True)(x)
    gradient[:] = 7
    for part in aux:
        part[:] = 9
    assert x.tolist() == X
    assert captured.tolist() == X
    same = pb.grad(lambda x, y: np.sum(x + y), argnums=(0, 1))(x, x)
    same[0][0] = 5
    assert same[1].tolist() == [1.0, 1.0, 1.0]
