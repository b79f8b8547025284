"""Gradients of every example by vmap, and the batch in a vectorized function."""

import pullback as pb
from pullback import Tensor

Parameters = dict[str, Tensor]


def loss(parameters: Parameters, x: Tensor, y: Tensor) -> Tensor:
    hidden = pb.tanh(parameters["w1"] @ x)
    return ((parameters["w2"] @ hidden - y) ** 2).sum()


def main() -> tuple[int, ...]:
    pb.random.seed(0)
    parameters = {"w1": pb.random.normal((8, 4)), "w2": pb.random.normal((2, 8))}
    x, y = pb.random.normal((16, 4)), pb.random.normal((16, 2))
    each = pb.vmap(pb.grad(loss), in_axes=(None, 0, 0))(parameters, x, y)
    assert pb.per_example_grad(loss)(parameters, x, y)["w1"].shape == each["w1"].shape
    print(pb.per_example_norms(loss)(parameters, x, y).shape)
    norms = sum([(g.reshape(16, -1) ** 2).sum(axis=1) for g in each.values()], start=pb.zeros(16))
    clipped = {name: g * pb.minimum(1.0 / pb.sqrt(norms), 1.0).reshape(16, 1, 1) for name, g in each.items()}
    updated = {name: parameters[name] - 0.1 * g.mean(axis=0) for name, g in clipped.items()}
    losses: Tensor = pb.vmap(loss, in_axes=(None, 0, 0))(updated, x, y)
    fast = pb.compile(pb.vmap(pb.grad(loss), in_axes=(None, 0, 0)))
    assert pb.max(pb.abs(fast(parameters, x, y)["w1"] - each["w1"])).item() < 1e-4
    return losses.shape


if __name__ == "__main__":
    print(main())
