"""Activation functions, and softmax with its relatives, with the names of PyTorch's functional interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..autodiff.apply import apply
from ..autodiff.creation import asarray
from ..autodiff.fast import call_for, fast_path
from ..errors import DtypeError
from ..operations import OPERATIONS
from .axes import all_axes, negative_axes

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "elu", "gelu", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "relu", "sigmoid", "silu", "softmax",
    "softplus",
]  # fmt: skip

Axis = int | Sequence[int]

_leaky_relu = call_for("leaky_relu")
_elu = call_for("elu")
_gelu = call_for("gelu")
_softplus = call_for("softplus")
_softmax = call_for("softmax")
_log_softmax = call_for("log_softmax")
_logsumexp = call_for("logsumexp")


@fast_path
def relu(x: Any) -> Tensor:
    """max(x, 0) for each element of `x`; its gradient at 0 is 0.

    Parameters
    ----------
    x : array
        Real numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.relu(pb.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return apply(OPERATIONS["relu"], (x,))


@fast_path
def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x)) for each element of `x`, a number between 0 and 1, without overflow.

    Parameters
    ----------
    x : array
        Real numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sigmoid(pb.tensor([-1000.0, 0.0, 1000.0]))
    tensor([0. , 0.5, 1. ])
    """
    return apply(OPERATIONS["sigmoid"], (x,))


@fast_path
def log_sigmoid(x: Any) -> Tensor:
    """log(sigmoid(x)) for each element of `x`, also where sigmoid(x) is too small to be represented.

    >>> import pullback as pb
    >>> pb.log_sigmoid(pb.tensor([-1000.0, 1000.0]))
    tensor([-1000.,     0.])
    """
    return apply(OPERATIONS["log_sigmoid"], (x,))


@fast_path
def silu(x: Any) -> Tensor:
    """x sigmoid(x) for each element of `x`, also called swish.

    Parameters
    ----------
    x : array
        Real numbers of any shape.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.silu(pb.tensor([0.0, 20.0]))
    tensor([ 0., 20.])
    """
    return apply(OPERATIONS["silu"], (x,))


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """Each element of `x` where it is positive, `negative_slope` times it elsewhere.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    negative_slope : float
        The slope below zero.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.leaky_relu(pb.tensor([-2.0, 3.0]), 0.5)
    tensor([-1.,  3.])
    """
    return _leaky_relu(x, float(negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Each element of `x` where it is positive, alpha (exp(x) - 1) elsewhere.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    alpha : float
        Minus the limit far below zero.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.elu(pb.tensor([-1000.0, 3.0]), alpha=0.5)
    tensor([-0.5,  3. ])
    """
    return _elu(x, float(alpha))


def gelu(x: Any, approximate: str = "none") -> Tensor:
    """Each element of `x` times the normal distribution function at it.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    approximate : str
        "none" is exact; "tanh" is the usual approximation by a hyperbolic tangent.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gelu(pb.tensor([-10.0, 0.0, 10.0])).tolist()[1:]
    [0.0, 10.0]
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}.')
    return _gelu(x, approximate)


def softplus(x: Any, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, exact for any x: there is no threshold beyond which it is replaced.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    beta : float
        How sharp the bend at zero is.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softplus(pb.tensor([-1000.0, 1000.0]))
    tensor([   0., 1000.])
    """
    if not beta > 0:
        raise ValueError(f"softplus: beta must be positive, got {beta!r}.")
    return _softplus(x, float(beta))


def _real(name: str, x: Any) -> Tensor:
    """`x` as a tensor of real numbers."""
    x = asarray(x)
    if x.dtype.kind == "complex":
        raise DtypeError(f"{name}: expected real numbers, got {x.dtype.name}. Pass the real and imaginary parts.")
    return x


def softmax(x: Any, axis: Axis = -1) -> Tensor:
    """exp(x) divided by its sum over `axis`, without overflow.

    A row of -inf alone has no softmax: it gives NaN. float16 and bfloat16 are summed in float32.

    Parameters
    ----------
    x : array
        Real numbers of any shape: logits.
    axis : int or tuple of int
        Over which axes results add up to one, by default the last one.

    Returns
    -------
    Tensor
        Of the shape of `x`, from 0 to 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softmax(pb.tensor([[1000.0, 1000.0], [0.0, -1000.0]]), axis=1)
    tensor([[0.5, 0.5],
            [1. , 0. ]])
    """
    x = _real("softmax", x)
    return _softmax(x, negative_axes("softmax", axis, x.ndim))


def log_softmax(x: Any, axis: Axis = -1) -> Tensor:
    """log(softmax(x)), also where softmax(x) is too small to be represented.

    Parameters
    ----------
    x : array
        Real numbers of any shape: logits.
    axis : int or tuple of int
        Over which axes, by default the last one.

    Returns
    -------
    Tensor
        Of the shape of `x`, at most 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.log_softmax(pb.tensor([0.0, -1000.0]))
    tensor([    0., -1000.])
    """
    x = _real("log_softmax", x)
    return _log_softmax(x, negative_axes("log_softmax", axis, x.ndim))


def logsumexp(x: Any, axis: Axis | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over `axis` (all axes without one), without overflow.

    Of -inf alone, or of nothing, it is -inf, with a gradient of zero.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    axis : int or tuple of int, optional
        Over which axes; by default all of them.
    keepdims : bool
        Whether these axes stay, with size one.

    Returns
    -------
    Tensor
        Without these axes; 0-d by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logsumexp(pb.tensor([[1000.0, -1000.0], [-float("inf"), -float("inf")]]), axis=1)
    tensor([1000.,  -inf])
    """
    x = _real("logsumexp", x)
    axes = all_axes(x.ndim) if axis is None else negative_axes("logsumexp", axis, x.ndim)
    return _logsumexp(x, axes, bool(keepdims))
