"""A small network to train, in Pullback and in PyTorch: the same numbers, the same loss."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb

from ..backends.installed import optional

torch = optional("torch")

SHAPES = ((5, 7), (7,), (7, 3), (3,), ())
MATRICES = ((5, 3), (3, 3), (3, 5))


def values(shapes: Any = SHAPES, dtype: Any = np.float64, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(0.5 * rng.standard_normal(shape), dtype) for shape in shapes]


def data(dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((11, 5)).astype(dtype), rng.standard_normal((11, 3)).astype(dtype)


def network_loss(xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    w1, b1, w2, b2, scale = parameters
    error = (xp.tanh(x @ w1 + b1) @ w2 + b2) * scale - y
    return (error * error).mean()


def matrices_loss(xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    """A loss whose gradients have full rank: Muon would blow up the rounding errors in the missing directions."""
    w1, w2, w3 = parameters
    error = xp.tanh(x @ w1) @ w2 - y
    back = xp.tanh(y @ w3) - x
    return (error * error).mean() + (back * back).mean()


def parameters(initial: list[np.ndarray], device: str = "numpy") -> list[pb.Tensor]:
    return [pb.tensor(value, device=device, requires_grad=True) for value in initial]


def trained(make: Any, steps: int, initial: list[np.ndarray], loss: Any = network_loss, device: str = "numpy") -> Any:
    """Parameters after `steps` steps with the optimizer that `make(parameters)` gives."""
    dtype = initial[0].dtype
    tensors = parameters(initial, device)
    x, y = (pb.asarray(array, device=device) for array in data(dtype))
    optimizer = make(tensors)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(pb, tensors, x, y).backward()
        optimizer.step()
    return [np.array(t.detach().to_device("numpy").numpy()) for t in tensors], optimizer


def torch_trained(make: Any, steps: int, initial: list[np.ndarray], loss: Any = network_loss) -> Any:
    """The same in PyTorch."""
    dtype = initial[0].dtype
    tensors = [torch.tensor(value, requires_grad=True) for value in initial]
    x, y = (torch.as_tensor(array) for array in data(dtype))
    optimizer = make(tensors)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(torch, tensors, x, y).backward()
        optimizer.step()
    return [t.detach().numpy() for t in tensors], optimizer
