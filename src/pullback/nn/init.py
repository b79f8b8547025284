"""Filling tensors with first values, in place, with the names and formulas of PyTorch's `torch.nn.init`.

Every function writes into the tensor that it is given, also into one that requires a gradient, and returns it. Random
numbers come from `generator`, or from the default one that `pb.random.seed` seeds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import modes
from ..autodiff.creation import asarray
from ..errors import ConfigurationError, ShapeError
from ..random import Generator, default_generator
from ..tensors.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def _written(tensor: Tensor, values: Any) -> Tensor:
    with modes.no_grad():
        tensor[...] = values
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with numbers from `a` to `b`, equally likely; returns it.

    >>> import pullback as pb
    >>> bool((pb.nn.init.uniform_(pb.zeros(100), -1.0, 1.0) < 1.0).all())
    True
    """
    source = generator or default_generator()
    return _written(tensor, source.uniform(tensor.shape, a, b, dtype=tensor.dtype, device=tensor.device))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with numbers of the normal distribution of this `mean` and standard deviation `std`; returns it.

    >>> import pullback as pb
    >>> abs(pb.nn.init.normal_(pb.zeros(10000), 3.0, 0.1).mean().item() - 3.0) < 0.01
    True
    """
    source = generator or default_generator()
    return _written(tensor, source.normal(tensor.shape, mean, std, dtype=tensor.dtype, device=tensor.device))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with the number `val`; returns it.

    >>> import pullback as pb
    >>> pb.nn.init.constant_(pb.zeros(2), 0.5)
    tensor([0.5, 0.5])
    """
    return _written(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros; returns it.

    >>> import pullback as pb
    >>> pb.nn.init.zeros_(pb.ones(2))
    tensor([0., 0.])
    """
    return _written(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones; returns it.

    >>> import pullback as pb
    >>> pb.nn.init.ones_(pb.zeros(2))
    tensor([1., 1.])
    """
    return _written(tensor, 1)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill `tensor` with normal numbers under the condition that they lie between `a` and `b`; returns it.

    `mean` and `std` are those of the normal distribution before that.

    >>> import pullback as pb
    >>> bool((abs(pb.nn.init.trunc_normal_(pb.zeros(1000), std=10.0)) <= 2.0).all())
    True
    """
    if not (a < b and std > 0):
        raise ConfigurationError(f"trunc_normal_: a={a} must be below b={b}, and std={std} positive.")
    low, high = (a - mean) / std, (b - mean) / std
    if low > 0:  # both far above the mean: the distribution function is 1 there, but it is exact below
        return _written(tensor, -trunc_normal_(tensor.detach().clone(), -mean, std, -b, -a, generator))
    source = generator or default_generator()
    below, above = (0.5 * math.erfc(-x / math.sqrt(2.0)) for x in (low, high))
    if above - below > 0.5:  # most numbers lie inside: the others are drawn again
        values = np.array(source.normal(tensor.shape, mean, std, dtype="float64").numpy())
        while (outside := (values < a) | (values > b)).any():
            values[outside] = source.normal(int(outside.sum()), mean, std, dtype="float64").numpy()
    else:
        unit = source.uniform(tensor.shape, dtype="float64").numpy()
        values = np.clip(mean + std * _normal_quantile(below + (above - below) * unit), a, b)
    return _written(tensor, asarray(values, dtype=tensor.dtype, device=tensor.device))


def _normal_quantile(probability: Any) -> Any:
    """The numbers below which a normal one lies with the given probabilities, in float64."""
    from statistics import NormalDist

    inverse = NormalDist().inv_cdf
    smallest = np.finfo(np.float64).tiny
    inside = np.clip(probability, smallest, 1.0 - np.finfo(np.float64).epsneg)
    return np.reshape([inverse(p) for p in inside.ravel().tolist()], probability.shape)


# -- by the number of inputs and outputs -----------------------------------------------------------


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much a layer before this activation must be larger to keep the size of what flows through it.

    `nonlinearity` is the activation's name: "linear", "sigmoid", "tanh", "relu", "leaky_relu" (whose slope is `param`)
    or "selu".

    >>> import pullback as pb
    >>> pb.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3.0
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 0.75
    raise ConfigurationError(
        "calculate_gain: nonlinearity must be one of linear, conv1d, conv2d, conv3d, sigmoid, tanh, relu, leaky_relu, "
        f"selu, got {nonlinearity!r}."
    )


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of a weight (outputs, inputs, *kernel) has, and how many outputs an input."""
    if tensor.ndim < 2:
        raise ShapeError(f"a weight must have at least two axes (outputs, inputs) to count them, got {tensor.shape}.")
    outputs, inputs, *kernel = tensor.shape
    return inputs * math.prod(kernel), outputs * math.prod(kernel)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight `tensor` with uniform numbers of the variance 2 gain**2 / (inputs + outputs); returns it.

    >>> import pullback as pb
    >>> pb.nn.init.xavier_uniform_(pb.zeros((3, 2))).shape
    (3, 2)
    """
    bound = gain * math.sqrt(6.0 / max(sum(fans(tensor)), 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill a weight `tensor` with normal numbers of the variance 2 gain**2 / (inputs + outputs); returns it.

    >>> import pullback as pb
    >>> pb.nn.init.xavier_normal_(pb.zeros((3, 2))).shape
    (3, 2)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(sum(fans(tensor)), 1)), generator)


def _kaiming_deviation(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ConfigurationError(f'{name}: mode must be "fan_in" or "fan_out", got {mode!r}.')
    count = fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(count, 1))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight `tensor` with uniform numbers of the variance gain**2 / inputs; returns it.

    The gain is that of the activation `nonlinearity` (see `calculate_gain`), whose slope below zero is `a` if it is
    "leaky_relu". With `mode="fan_out"` outputs count in place of inputs.

    >>> import pullback as pb
    >>> pb.nn.init.kaiming_uniform_(pb.zeros((3, 2)), nonlinearity="relu").shape
    (3, 2)
    """
    bound = math.sqrt(3.0) * _kaiming_deviation("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill a weight `tensor` with normal numbers of the variance gain**2 / inputs; returns it.

    The gain is that of the activation `nonlinearity` (see `calculate_gain`), whose slope below zero is `a` if it is
    "leaky_relu". With `mode="fan_out"` outputs count in place of inputs.

    >>> import pullback as pb
    >>> pb.nn.init.kaiming_normal_(pb.zeros((3, 2)), nonlinearity="relu").shape
    (3, 2)
    """
    return normal_(tensor, 0.0, _kaiming_deviation("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill `tensor` with `gain` times a matrix with orthonormal rows, or columns if there are fewer; returns it.

    Axes behind the second one count as columns.

    >>> import pullback as pb
    >>> q = pb.nn.init.orthogonal_(pb.zeros((2, 3), dtype=pb.float64))
    >>> bool(abs(q @ q.T - pb.eye(2)).max() < 1e-12)
    True
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: a matrix is needed, got shape {tensor.shape}.")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    source = generator or default_generator()
    flat = np.asarray(source.normal((max(rows, columns), min(rows, columns)), dtype="float64"))
    q, r = np.linalg.qr(flat)
    q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)  # else some matrices would be likelier than others
    values = gain * (q if rows >= columns else q.T).reshape(tensor.shape)
    return _written(tensor, asarray(values, dtype=tensor.dtype, device=tensor.device))


def uniform_by_inputs(*tensors: Tensor, inputs: int) -> None:
    """Fill tensors with uniform numbers up to 1 / sqrt(inputs): how linear and convolution layers begin."""
    bound = 1.0 / math.sqrt(inputs) if inputs > 0 else 0.0
    for tensor in tensors:
        uniform_(tensor, -bound, bound)
