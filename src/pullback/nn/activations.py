"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..functions import activations as functions
from ..functions.trigonometry import tanh
from ..tensors.tensor import Tensor
from .module import Module


class ReLU(Module):
    """`pb.relu` as a module.

    >>> import pullback as pb
    >>> pb.nn.ReLU()(pb.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.relu(x)


class Tanh(Module):
    """`pb.tanh` as a module.

    >>> import pullback as pb
    >>> pb.nn.Tanh()(pb.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, x: Any) -> Tensor:
        return tanh(x)


class Sigmoid(Module):
    """`pb.sigmoid` as a module.

    >>> import pullback as pb
    >>> pb.nn.Sigmoid()(pb.tensor([0.0]))
    tensor([0.5])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.sigmoid(x)


class LogSigmoid(Module):
    """`pb.log_sigmoid` as a module.

    >>> import pullback as pb
    >>> pb.nn.LogSigmoid()(pb.tensor([1000.0]))
    tensor([0.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.log_sigmoid(x)


class SiLU(Module):
    """`pb.silu` as a module.

    >>> import pullback as pb
    >>> pb.nn.SiLU()(pb.tensor([0.0, 20.0]))
    tensor([ 0., 20.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.silu(x)


class LeakyReLU(Module):
    """`pb.leaky_relu` as a module.

    >>> import pullback as pb
    >>> pb.nn.LeakyReLU(0.5)(pb.tensor([-2.0, 3.0]))
    tensor([-1.,  3.])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Tensor:
        return functions.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """`pb.elu` as a module.

    >>> import pullback as pb
    >>> pb.nn.ELU()(pb.tensor([-1000.0, 3.0]))
    tensor([-1.,  3.])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Tensor:
        return functions.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class GELU(Module):
    """`pb.gelu` as a module.

    Parameters
    ----------
    approximate : str
        "none" is exact; "tanh" is the usual approximation by a hyperbolic tangent.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.GELU(approximate="tanh")(pb.tensor([0.0, 10.0]))
    tensor([ 0., 10.])
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise ConfigurationError(f'GELU: approximate must be "none" or "tanh", got {approximate!r}.')
        self.approximate = approximate

    def forward(self, x: Any) -> Tensor:
        return functions.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """`pb.softplus` as a module.

    >>> import pullback as pb
    >>> pb.nn.Softplus()(pb.tensor([-1000.0, 1000.0]))
    tensor([   0., 1000.])
    """

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Any) -> Tensor:
        return functions.softplus(x, self.beta)

    def extra_repr(self) -> str:
        return f"beta={self.beta}"


class Softmax(Module):
    """`pb.softmax` as a module, along `dim`.

    >>> import pullback as pb
    >>> pb.nn.Softmax(dim=-1)(pb.tensor([[0.0, 0.0]]))
    tensor([[0.5, 0.5]])
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return functions.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """`pb.log_softmax` as a module, along `dim`.

    >>> import pullback as pb
    >>> pb.nn.LogSoftmax(dim=-1)(pb.tensor([0.0, -1000.0]))
    tensor([    0., -1000.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.log_softmax(x, self.dim)
