"""Losses, with the names and arguments of PyTorch's functional interface.

`reduction` is "mean", "sum" or "none" (the loss of each element).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autodiff.creation import asarray
from ..autodiff.fast import call_for
from ..errors import DtypeError, ShapeError
from .normalization import _floating

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "binary_cross_entropy_with_logits", "cross_entropy", "huber", "huber_loss", "l1_loss", "mse_loss",
]  # fmt: skip

_soft_cross_entropy = call_for("soft_cross_entropy")
_binary_cross_entropy_with_logits = call_for("binary_cross_entropy_with_logits")
_cross_entropy = call_for("cross_entropy")
_mse_loss = call_for("mse_loss")
_l1_loss = call_for("l1_loss")
_huber_loss = call_for("huber_loss")


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f'{name}: reduction must be "mean", "sum" or "none", got {reduction!r}.')


def cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """How far logits are from the right classes: minus the logarithm of the softmax of `x` at the right class.

    Where all samples are ignored the mean is 0, with a gradient of 0.

    Parameters
    ----------
    x : array
        Logits (samples, classes, ...) or (classes,): any real numbers, not yet through softmax.
    target : array
        Class numbers (samples, ...), or probabilities in the shape of `x`.
    weight : array, optional
        (classes,): how much each class counts.
    ignore_index : int
        Samples with this class number have no loss and no gradient.
    reduction : str
        "mean", "sum" or "none" (a loss for each sample). The mean of class numbers is over the samples that are not
        ignored, weighted by `weight`; that of probabilities over all samples.
    label_smoothing : float
        The share of each target that is spread over all classes, from 0 to 1.

    Returns
    -------
    Tensor
        A number, or (samples, ...) with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> logits = pb.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> loss = pb.cross_entropy(logits, pb.asarray([0, -100]))
    >>> round(loss.item(), 4)
    0.2395
    >>> loss.backward()
    >>> logits.grad[1]
    tensor([0., 0., 0.])
    """
    _check_reduction("cross_entropy", reduction)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing!r}.")
    x, target = _floating("cross_entropy", x), asarray(target)
    if x.ndim == 0:
        raise ShapeError("cross_entropy: x must have the axes (samples, classes, ...) or (classes,), got a number.")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if classes == 0:
        raise ShapeError(f"cross_entropy: there are no classes in x of shape {x.shape}.")
    if weight is not None:
        weight = _floating("cross_entropy", weight)
        if weight.shape != (classes,):
            raise ShapeError(f"cross_entropy: weight has shape {weight.shape}, expected ({classes},).")
    if target.dtype.kind == "float":
        if target.shape != x.shape:
            raise ShapeError(
                f"cross_entropy: probabilities have shape {target.shape}, logits {x.shape}: they must be equal. "
                "Class numbers must be integers."
            )
        return _soft_cross_entropy(x, target, weight, reduction, float(label_smoothing))
    if target.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"cross_entropy: target must be class numbers or probabilities, got {target.dtype.name}.")
    expected = (x.shape[0], *x.shape[2:]) if x.ndim > 1 else ()
    if target.shape != expected:
        write = " Classes are along axis 1: write `x.swapaxes(1, -1)`." if target.shape == x.shape[:-1] else ""
        raise ShapeError(
            f"cross_entropy: target has shape {target.shape}, expected {expected} for logits {x.shape}.{write}"
        )
    static = (int(ignore_index), reduction, float(label_smoothing))
    return _cross_entropy(x, target, weight, *static)


def _pair(name: str, x: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors of one shape: broadcasting them against each other is nearly always a mistake."""
    x, target = _floating(name, x), asarray(target)
    if target.dtype.kind in ("int", "uint", "bool"):
        target = asarray(target, dtype=x.dtype)
    target = _floating(name, target)
    if x.shape != target.shape:
        raise ShapeError(
            f"{name}: x has shape {x.shape}, target {target.shape}: they must be equal. "
            "Reshape one of them, or use `broadcast_to` if that is meant."
        )
    return x, target


def _factor(name: str, label: str, factor: Any, x: Tensor) -> Tensor | None:
    """A weight that broadcasts to the shape of `x`."""
    if factor is None:
        return None
    factor = _floating(name, factor)
    aligned = zip(reversed(factor.shape), reversed(x.shape))
    if factor.ndim > x.ndim or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(f"{name}: {label} of shape {factor.shape} does not broadcast to x of shape {x.shape}.")
    return factor


def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """The cross-entropy of sigmoid(x) and `target` (0, 1 or a probability), for any x without overflow.

    Parameters
    ----------
    x : array
        Logits of any shape: any real numbers, not yet through the sigmoid.
    target : array
        0, 1 or a probability for each; it has the shape of `x`.
    weight : array, optional
        Multiplies each loss; it broadcasts to `x`.
    reduction : str
        "mean", "sum" or "none" (a loss for each element).
    pos_weight : array, optional
        Multiplies the part of a target of 1; it broadcasts to `x`.

    Returns
    -------
    Tensor
        A number, or of the shape of `x` with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.binary_cross_entropy_with_logits(pb.tensor([1000.0, -1000.0]), pb.tensor([0.0, 0.0]), reduction="none")
    tensor([1000.,    0.])
    """
    name = "binary_cross_entropy_with_logits"
    _check_reduction(name, reduction)
    x, target = _pair(name, x, target)
    factors = (_factor(name, "weight", weight, x), _factor(name, "pos_weight", pos_weight, x))
    return _binary_cross_entropy_with_logits(x, target, *factors, reduction)


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The square of x - target, by default its mean over all elements.

    Parameters
    ----------
    x : array
        Predictions of any shape.
    target : array
        What they should be; it has the shape of `x`.
    reduction : str
        "mean", "sum" or "none" (a loss for each element).

    Returns
    -------
    Tensor
        A number, or of the shape of `x` with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mse_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0])).item()
    2.0
    """
    _check_reduction("mse_loss", reduction)
    return _mse_loss(*_pair("mse_loss", x, target), reduction)


def l1_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The absolute value of x - target, by default its mean; its gradient where they are equal is 0.

    Parameters
    ----------
    x : array
        Predictions of any shape.
    target : array
        What they should be; it has the shape of `x`.
    reduction : str
        "mean", "sum" or "none" (a loss for each element).

    Returns
    -------
    Tensor
        A number, or of the shape of `x` with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.l1_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0])).item()
    1.0
    """
    _check_reduction("l1_loss", reduction)
    return _l1_loss(*_pair("l1_loss", x, target), reduction)


def huber_loss(x: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d**2 / 2 for a difference d = x - target up to `delta`, and delta (|d| - delta / 2) beyond. Also named `huber`.

    Parameters
    ----------
    x : array
        Predictions of any shape.
    target : array
        What they should be; it has the shape of `x`.
    reduction : str
        "mean", "sum" or "none" (a loss for each element).
    delta : float
        Where the loss goes over from a square to a line.

    Returns
    -------
    Tensor
        A number, or of the shape of `x` with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.huber_loss(pb.tensor([0.5, 3.0]), pb.tensor([0.0, 0.0]), reduction="none")
    tensor([0.125, 2.5  ])
    """
    _check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta!r}.")
    return _huber_loss(*_pair("huber_loss", x, target), reduction, float(delta))


huber = huber_loss
