"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigurationError
from ..functions import activations as functions
from ..functions.filled import full
from ..functions.trigonometry import tanh
from ..tensors.tensor import Tensor
from . import init
from .module import Module, Parameter


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
    """`pb.softplus` as a module; without `threshold` it is exact everywhere.

    >>> import pullback as pb
    >>> pb.nn.Softplus()(pb.tensor([-1000.0, 1000.0]))
    tensor([   0., 1000.])
    """

    def __init__(self, beta: float = 1.0, threshold: float | None = None) -> None:
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Any) -> Tensor:
        return functions.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class ReLU6(Module):
    """`pb.relu6` as a module.

    >>> import pullback as pb
    >>> pb.nn.ReLU6()(pb.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.relu6(x)


class Hardsigmoid(Module):
    """`pb.hardsigmoid` as a module.

    >>> import pullback as pb
    >>> pb.nn.Hardsigmoid()(pb.tensor([-4.0, 0.0, 4.0]))
    tensor([0. , 0.5, 1. ])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.hardsigmoid(x)


class Hardswish(Module):
    """`pb.hardswish` as a module.

    >>> import pullback as pb
    >>> pb.nn.Hardswish()(pb.tensor([0.0, 3.0]))
    tensor([0., 3.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.hardswish(x)


class SELU(Module):
    """`pb.selu` as a module.

    >>> import pullback as pb
    >>> pb.nn.SELU()(pb.tensor([0.0, 1.0]))
    tensor([0.      , 1.050701])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.selu(x)


class Mish(Module):
    """`pb.mish` as a module.

    >>> import pullback as pb
    >>> pb.nn.Mish()(pb.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """

    def forward(self, x: Any) -> Tensor:
        return functions.mish(x)


class PReLU(Module):
    """`pb.prelu` as a module: one slope for all, or one for each of `num_parameters` channels, which begin as `init`.

    >>> import pullback as pb
    >>> pb.nn.PReLU()(pb.tensor([-4.0, 3.0])).detach()
    tensor([-1.,  3.])
    """

    weight: Tensor

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: str | None = None, dtype: Any = None
    ) -> None:
        if num_parameters < 1:
            raise ConfigurationError(f"PReLU: num_parameters must be positive, got {num_parameters!r}.")
        self.first_slope = init
        self.weight = Parameter(full(num_parameters, float(init), dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Set the slopes to `init` anew."""
        init.constant_(self.weight, self.first_slope)

    def forward(self, x: Any) -> Tensor:
        return functions.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.weight.size}"


class GLU(Module):
    """`pb.glu` as a module, along `dim`.

    >>> import pullback as pb
    >>> pb.nn.GLU()(pb.tensor([3.0, 4.0, 0.0, 1000.0]))
    tensor([1.5, 4. ])
    """

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return functions.glu(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


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
