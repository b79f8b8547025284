"""Transforms of lambdas, methods, modules, partial and compiled functions, one inside of another."""

from functools import partial

import numpy as np

import pullback as pb
from pullback import Tensor
from pullback.typing import ArrayLike


def loss(w: Tensor, x: Tensor, scale: float) -> Tensor:
    return (w * x * scale).sum()


class Model:
    def energy(self, w: Tensor) -> Tensor:
        return w.sum()

    def __call__(self, x: Tensor) -> Tensor:
        return 2 * x


class Sum(pb.nn.Module):
    def forward(self, *xs: Tensor, repeats: int = 1) -> Tensor:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return repeats * total


class Learner:
    def __init__(self) -> None:
        self.weight = pb.ones(2)

    @pb.compile(ignore=["weight"])
    def scaled(self, x: Tensor, factor: float = 2.0) -> Tensor:
        return factor * x


def of_module(model: pb.nn.Module, x: Tensor) -> Tensor:
    out: Tensor = model(x)
    return out.sum()


def half(x: ArrayLike) -> Tensor:
    return 0.5 * pb.asarray(x)


def main() -> float:
    x, net = pb.ones(2), pb.nn.Linear(2, 2)

    assert pb.grad(lambda x: x**3)(2.0) == 12.0
    assert pb.grad(pb.grad(pb.grad(lambda x: x**3)))(2.0) == 6.0
    assert pb.vmap(pb.grad(lambda x: x**3))(x).shape == (2,)
    assert pb.vmap(pb.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))(np.ones(3), x.numpy()).shape == (
        3,
        2,
    )
    assert pb.compile(pb.vmap(pb.grad(lambda x: x * x)))(x).sum().item() == 4.0
    assert pb.jacrev(pb.jacfwd(lambda x: np.sum(x**2)))(np.ones(3)).shape == (3, 3)
    assert pb.value_and_grad(lambda p: np.sum(p["w"]))({"w": np.ones(2)})[0] == 2.0
    assert pb.grad(lambda x, y=2.0: x * y)(1.0) == 2.0

    slope: Tensor = pb.grad(partial(loss, scale=2.0))(x, x)
    ones: Tensor = pb.grad(Model().energy)(x)
    rows: Tensor = pb.vmap(Model())(pb.ones((3, 2)))
    out: Tensor = pb.vmap(net)(pb.ones((3, 2)))
    total: Tensor = Sum()(x, slope, ones, repeats=2)
    print(rows.shape, out.shape, total, half([1.0, 2.0]), Learner().scaled(x, factor=3.0))

    gradients = pb.grad(of_module)(net, x)
    print(gradients.num_parameters())
    value, slopes = pb.compile(pb.value_and_grad(of_module))(net, x)
    print(slopes.state_dict().keys())
    activations = {"relu": pb.relu, "tanh": pb.tanh}
    print(activations["relu"](x), [layer(x) for layer in (net, Sum())])
    return value.item()


if __name__ == "__main__":
    print(main())
