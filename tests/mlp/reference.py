"""The same network in Pullback's tensors: what `Mlp` must agree with."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

ACTIVATIONS = ("identity", "relu", "leaky_relu", "tanh", "sigmoid", "gelu", "silu", "softmax")
LOSSES = {
    "mse": pb.mse_loss,
    "mae": pb.l1_loss,
    "huber": pb.huber_loss,
    "cross_entropy": pb.cross_entropy,
    "binary_cross_entropy": pb.binary_cross_entropy_with_logits,
}
REFUSED = {("cross_entropy", "softmax"), ("binary_cross_entropy", "sigmoid")}


def output_of(mlp: pb.Mlp, x: Any, weights: list[Any], biases: list[Any]) -> pb.Tensor:
    for w, b, activation in zip(weights, biases, mlp.activations):
        x = pb.linear(x, w, b)
        if activation != "identity":
            x = getattr(pb, activation)(x)
    return x


def gradients_of(mlp: pb.Mlp, x: Any, target: Any, loss: str) -> tuple[float, Any, Any, Any]:
    """The loss, the output, and the gradients of all parameters (as one vector) and of the input."""
    layers = range(len(mlp))
    weights = [pb.tensor(mlp.weights(i), requires_grad=True) for i in layers]
    biases = [pb.tensor(mlp.biases(i), requires_grad=True) for i in layers]
    x = pb.tensor(x, requires_grad=True)
    output = output_of(mlp, x, weights, biases)
    value = LOSSES[loss](output, target)
    value.backward()
    parts = [t.grad.numpy().ravel() for pair in zip(weights, biases) for t in pair]
    return value.item(), output.detach().numpy(), np.concatenate(parts), x.grad.numpy()


def target_for(loss: str, samples: int, width: int, dtype: Any, generator: Any) -> Any:
    if loss == "cross_entropy":
        return generator.integers(0, width, samples)
    if loss == "binary_cross_entropy":
        return generator.integers(0, 2, (samples, width)).astype(dtype)
    return (2 * generator.standard_normal((samples, width))).astype(dtype)


def network(sizes: Any, hidden: str, output: str, dtype: Any, seed: int = 0) -> pb.Mlp:
    """A network whose biases are not zero."""
    mlp = pb.Mlp(sizes, hidden, output, seed=seed, dtype=dtype)
    for layer in range(len(mlp)):
        mlp.biases(layer)[...] = np.random.default_rng(layer).standard_normal(mlp.sizes[layer + 1]) * 0.3
    return mlp
