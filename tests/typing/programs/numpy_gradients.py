"""Gradients of NumPy code as it is: arrays in, arrays out."""

from typing import Any

import numpy as np
import numpy.typing as npt

import pullback as pb

Array = npt.NDArray[np.float64]


def energy(x: Array) -> Any:
    return np.sum(np.tanh(x) ** 2)


def loss(parameters: dict[str, Array], x: Array, y: Array) -> Any:
    hidden = np.tanh(x @ parameters["w1"] + parameters["b1"])
    return np.mean((hidden @ parameters["w2"] - y) ** 2)


def cube(x: float) -> float:
    return x**3


def with_auxiliary(x: Array) -> tuple[Any, Array]:
    squares = x**2
    return np.sum(squares), squares


def descend(parameters: dict[str, Array], x: Array, y: Array, rate: float = 0.1) -> dict[str, Array]:
    gradients = pb.grad(loss)(parameters, x, y)
    return {name: value - rate * gradients[name] for name, value in parameters.items()}


def main() -> Array:
    x = np.array([0.5, 1.0])
    slope: Array = pb.grad(energy)(x)
    curvature: Array = pb.hessian(energy)(x)
    jacobian: Array = pb.jacrev(np.tanh)(x)
    forward: Array = pb.jacfwd(np.tanh)(x)
    second: float = pb.grad(pb.grad(cube))(2.0)
    assert second == 12.0 and np.allclose(jacobian, forward)
    gradient, squares = pb.grad(with_auxiliary, has_aux=True)(x)
    assert np.allclose(gradient, 2 * x) and squares.shape == (2,)
    by_both = pb.grad(np.dot, argnums=(0, 1))(x, x)
    print(by_both[0], by_both[1])

    value, tangent = pb.jvp(energy, (x,), (np.array([1.0, 0.0]),))
    out, pullback = pb.vjp(np.sin, x)
    (back,) = pullback(np.ones(2))
    (product,) = pb.hvp(energy, (x,), (np.ones(2),))
    print(value, tangent, out, back, product, curvature)

    generator = np.random.default_rng(0)
    parameters: dict[str, Array] = {
        "w1": generator.normal(size=(1, 8)), "b1": np.zeros(8), "w2": generator.normal(size=(8, 1))
    }  # fmt: skip
    inputs = np.linspace(-1, 1, 32)[:, None]
    first, _ = pb.value_and_grad(loss)(parameters, inputs, inputs**2)
    for _ in range(50):
        parameters = descend(parameters, inputs, inputs**2)
    last, gradients = pb.value_and_grad(loss)(parameters, inputs, inputs**2)
    assert float(last) < float(first) and gradients["w1"].shape == (1, 8)
    pb.gradcheck(energy, (x,))
    return slope


if __name__ == "__main__":
    print(main())
