"""Activation functions, and softmax with its relatives, with the names of PyTorch's functional interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Sequence

from ..autodiff import base
from ..autodiff.apply import apply, as_operand
from ..autodiff.creation import given as asarray, inf
from ..autodiff.fast import call_for, fast_path
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, ShapeError
from ..keywords import hide_others, unexpected
from ..operations import OPERATIONS
from .axes import all_axes, negative_axes, negative_axis

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike, Operand

__all__ = [
    "elu", "gelu", "glu", "hardsigmoid", "hardswish", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "mish",
    "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus",
]  # fmt: skip

Axis = int | Sequence[int]

_leaky_relu = call_for("leaky_relu")
_elu = call_for("elu")
_gelu = call_for("gelu")
_softplus = call_for("softplus")
_softmax = call_for("softmax")
_log_softmax = call_for("log_softmax")
_logsumexp = call_for("logsumexp")

#: With these the outputs of a deep network of SELUs keep mean zero and variance one.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _is_complex(name: str, x: Any) -> bool:
    x = as_operand(x, OPERATIONS[name])
    return type(x) is complex or (isinstance(x, base.Tensor) and x.dtype.kind == "complex")


@fast_path
def relu(x: Operand) -> Tensor:
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
def sigmoid(x: Operand) -> Tensor:
    """1 / (1 + exp(-x)) for each element of `x`, for real ones a number between 0 and 1, without overflow.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.

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
    return _complex_sigmoid(asarray(x)) if _is_complex("sigmoid", x) else apply(OPERATIONS["sigmoid"], (x,))


def _complex_sigmoid(x: Tensor) -> Tensor:
    on_the_left = TENSORS.less(TENSORS.real(x), 0.0)
    small = TENSORS.exp(TENSORS.where(on_the_left, x, -x))
    return TENSORS.where(on_the_left, small, TENSORS.ones_like(small)) / (1.0 + small)


@fast_path
def log_sigmoid(x: Operand) -> Tensor:
    """log(sigmoid(x)) for each element of `x`, also where sigmoid(x) is too small to be represented.

    >>> import pullback as pb
    >>> pb.log_sigmoid(pb.tensor([-1000.0, 1000.0]))
    tensor([-1000.,     0.])
    """
    return apply(OPERATIONS["log_sigmoid"], (x,))


@fast_path
def silu(x: Operand) -> Tensor:
    """x sigmoid(x) for each element of `x`, also called swish.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.

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
    if _is_complex("silu", x):
        x = asarray(x)
        return x * _complex_sigmoid(x)
    return apply(OPERATIONS["silu"], (x,))


def leaky_relu(x: Operand, negative_slope: float = 0.01) -> Tensor:
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


def elu(x: Operand, alpha: float = 1.0) -> Tensor:
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


def gelu(x: Operand, approximate: str = "none") -> Tensor:
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


def softplus(x: Operand, beta: float = 1.0, threshold: float | None = None) -> Tensor:
    """log(1 + exp(beta x)) / beta, without overflow.

    Parameters
    ----------
    x : array
        Real numbers of any shape.
    beta : float
        How sharp the bend at zero is; it must be positive.
    threshold : float, optional
        Where `beta * x` is larger the result is `x` itself, as in PyTorch, whose threshold is 20. Without one the
        function is exact everywhere.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softplus(pb.tensor([-1000.0, 1000.0]))
    tensor([   0., 1000.])
    >>> pb.softplus(pb.tensor([1.0, 2.0]), threshold=1.5)
    tensor([1.3132616, 2.       ])
    """
    if not beta > 0:
        raise ValueError(f"softplus: beta must be positive, got {beta!r}.")
    out = _softplus(x, float(beta))
    if threshold is None:
        return out
    x = asarray(x)
    return TENSORS.where(TENSORS.greater(x * float(beta), float(threshold)), x, out)


# -- made of others ------------------------------------------------------------------------------------


def relu6(x: Operand) -> Tensor:
    """max(x, 0), but at most 6; its gradient at 0 and at 6 is 0.

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.relu6(pb.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    out = relu(x)
    return TENSORS.where(TENSORS.greater_equal(out, 6), 6, out)


def hardsigmoid(x: ArrayLike) -> Tensor:
    """`sigmoid` made of three straight lines: (x + 3) / 6, but at least 0 and at most 1.

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardsigmoid(pb.tensor([-4.0, 0.0, 4.0]))
    tensor([0. , 0.5, 1. ])
    """
    return relu6(_real("hardsigmoid", x) + 3.0) / 6.0


def hardswish(x: ArrayLike) -> Tensor:
    """x hardsigmoid(x): `silu` made of parabola and straight lines.

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardswish(pb.tensor([-4.0, 0.0, 3.0]))
    tensor([-0.,  0.,  3.])
    """
    x = _real("hardswish", x)
    return x * hardsigmoid(x)


def selu(x: Operand) -> Tensor:
    """`elu`, scaled so that the outputs of many layers keep mean zero and variance one.

    It is 1.0507 x where x is positive, and 1.0507 * 1.6733 (exp(x) - 1) elsewhere.

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.selu(pb.tensor([-1000.0, 1.0]))
    tensor([-1.7580993,  1.050701 ])
    """
    return _elu(x, _SELU_ALPHA) * _SELU_SCALE


def mish(x: ArrayLike) -> Tensor:
    """x tanh(softplus(x)).

    Parameters
    ----------
    x : array of real numbers

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mish(pb.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """
    x = _real("mish", x)
    return x * TENSORS.tanh(_softplus(x, 1.0))


def prelu(x: Any, weight: Any) -> Tensor:
    """x where it is positive, `weight` times x elsewhere: `leaky_relu` with slopes that can be learned.

    Parameters
    ----------
    x : array of real numbers
        (samples, channels, ...), or of any shape if there is one slope for all.
    weight : array of real numbers
        One number, or one for each channel.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prelu(pb.tensor([[-2.0, -2.0], [3.0, 3.0]]), pb.tensor([0.5, 0.1]))
    tensor([[-1. , -0.2],
            [ 3. ,  3. ]])
    """
    x = _real("prelu", x)
    is_number = type(weight) in base.PYTHON_SCALARS and type(weight) is not complex
    weight = weight if is_number else _real("prelu", weight)
    if is_number:
        slopes = float(weight)
    elif weight.size == 1:
        slopes = TENSORS.reshape(weight, ())
    elif x.ndim > 1 and weight.shape == x.shape[1:2]:
        slopes = TENSORS.reshape(weight, weight.shape + (1,) * (x.ndim - 2))
    else:
        raise ShapeError(
            f"prelu: weight has shape {weight.shape}; expected one number, or one for each channel (axis 1) of x of "
            f"shape {x.shape}."
        )
    positive = TENSORS.greater(x, 0)
    return TENSORS.where(positive, x, slopes * TENSORS.where(positive, 0, x))  # infinity times zero is no number


@hide_others
def glu(x: ArrayLike, axis: int = -1, **other: Never) -> Tensor:
    """The first half of `x` times `sigmoid` of the second half: a gated linear unit.

    Parameters
    ----------
    x : array
        Of an even size along `axis`.
    axis : int
        The axis that is halved.

    Returns
    -------
    Tensor
        Half as long as `x` along `axis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.glu(pb.tensor([3.0, 4.0, 0.0, 1000.0]))
    tensor([1.5, 4. ])
    """
    if other:
        raise unexpected("glu", other)
    x = asarray(x)
    along = negative_axis("glu", axis, x.ndim)
    length = x.shape[along]
    if length % 2:
        raise ShapeError(f"glu: axis {axis} of x of shape {x.shape} has {length} elements, which cannot be halved.")
    first, second = TENSORS.split(x, (length // 2, length // 2), along)
    return first * sigmoid(second)


# -- over axes -----------------------------------------------------------------------------------------


def _real(name: str, x: Any) -> Tensor:
    """`x` as a tensor of real numbers."""
    x = asarray(x)
    if x.dtype.kind == "complex":
        raise DtypeError(f"{name}: expected real numbers, got {x.dtype.name}. Pass the real and imaginary parts.")
    return x


@hide_others
def softmax(x: ArrayLike, axis: Axis = -1, **other: Never) -> Tensor:
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
    if other:
        raise unexpected("softmax", other)
    x = _real("softmax", x)
    return _softmax(x, negative_axes("softmax", axis, x.ndim))


@hide_others
def log_softmax(x: ArrayLike, axis: Axis = -1, **other: Never) -> Tensor:
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
    if other:
        raise unexpected("log_softmax", other)
    x = _real("log_softmax", x)
    return _log_softmax(x, negative_axes("log_softmax", axis, x.ndim))


@hide_others
def logsumexp(x: ArrayLike, axis: Axis | None = None, keepdims: bool = False, **other: Never) -> Tensor:
    """log(sum(exp(x))) over `axis` (all axes without one), without overflow.

    Of -inf alone, or of nothing, it is -inf, with a gradient of zero.

    Parameters
    ----------
    x : array
        Real or complex numbers of any shape.
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
    if other:
        raise unexpected("logsumexp", other)
    x = asarray(x)
    axes = all_axes(x.ndim) if axis is None else negative_axes("logsumexp", axis, x.ndim)
    if x.dtype.kind == "complex":
        return _complex_logsumexp(x, axes, bool(keepdims))
    return _logsumexp(x, axes, bool(keepdims))


def _complex_logsumexp(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if x.size:
        largest = TENSORS.max(TENSORS.real(x.detach()), axes, True)
        shift = TENSORS.where(TENSORS.isfinite(largest), largest, 0.0)
        total = TENSORS.sum(TENSORS.exp(x - shift), axes, True)
    else:
        shift, total = 0.0, TENSORS.sum(x, axes, True)
    nothing = TENSORS.equal(total, 0)
    out = TENSORS.where(nothing, -inf, TENSORS.log(TENSORS.where(nothing, 1.0, total)) + shift)
    return out if keepdims else TENSORS.squeeze(out, axes)
