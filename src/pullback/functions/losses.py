"""Losses, with the names and arguments of PyTorch's functional interface.

`reduction` is "mean", "sum" or "none" (the loss of each element).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..autodiff.creation import given as asarray
from ..autodiff.fast import call_for
from ..autodiff.tables import TENSORS
from ..errors import DtypeError, IndexingError, ShapeError
from .normalization import _floating, no_such_class

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber", "huber_loss", "kl_div",
    "l1_loss", "mse_loss", "nll_loss", "smooth_l1_loss",
]  # fmt: skip

_soft_cross_entropy = call_for("soft_cross_entropy")
_binary_cross_entropy = call_for("binary_cross_entropy")
_binary_cross_entropy_with_logits = call_for("binary_cross_entropy_with_logits")
_cross_entropy = call_for("cross_entropy")
_mse_loss = call_for("mse_loss")
_l1_loss = call_for("l1_loss")
_huber_loss = call_for("huber_loss")


REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(name: str, reduction: str, known: tuple[str, ...] = REDUCTIONS) -> None:
    if reduction not in known:
        *others, last = [f'"{word}"' for word in known]
        raise ValueError(f"{name}: reduction must be {', '.join(others)} or {last}, got {reduction!r}.")


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return (TENSORS.mean if reduction == "mean" else TENSORS.sum)(losses, None, False)


# -- over classes --------------------------------------------------------------------------------------


def cross_entropy(
    x: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
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
    x, weight = _of_classes("cross_entropy", x, weight)
    target = asarray(target)
    if target.dtype.kind == "float":
        if target.shape != x.shape:
            raise ShapeError(
                f"cross_entropy: probabilities have shape {target.shape}, logits {x.shape}: they must be equal. "
                "Class numbers must be integers."
            )
        return _soft_cross_entropy(x, target, weight, reduction, float(label_smoothing))
    _check_class_numbers("cross_entropy", x, target, "class numbers or probabilities")
    static = (int(ignore_index), reduction, float(label_smoothing))
    return _cross_entropy(x, target, weight, *static)


def _of_classes(name: str, x: Any, weight: Any) -> tuple[Tensor, Tensor | None]:
    """Numbers for each class, and their weights if there are any, after a look at their shapes."""
    x = _floating(name, x)
    if x.ndim == 0:
        raise ShapeError(f"{name}: x must have the axes (samples, classes, ...) or (classes,), got a number.")
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if classes == 0:
        raise ShapeError(f"{name}: there are no classes in x of shape {x.shape}.")
    if weight is not None:
        weight = _floating(name, weight)
        if weight.shape != (classes,):
            raise ShapeError(f"{name}: weight has shape {weight.shape}, expected ({classes},).")
    return x, weight


def _check_class_numbers(name: str, x: Tensor, target: Tensor, wanted: str) -> None:
    if target.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"{name}: target must be {wanted}, got {target.dtype.name}.")
    expected = (x.shape[0], *x.shape[2:]) if x.ndim > 1 else ()
    if target.shape != expected:
        write = " Classes are along axis 1: write `x.swapaxes(1, -1)`." if target.shape == x.shape[:-1] else ""
        raise ShapeError(
            f"{name}: target has shape {target.shape}, expected {expected} for x of shape {x.shape}.{write}"
        )


def nll_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Minus the logarithm of the probability of the right class, for logarithms of probabilities.

    `pb.nll_loss(pb.log_softmax(logits, 1), target)` is `pb.cross_entropy(logits, target)`, which is faster.

    Parameters
    ----------
    x : array of real numbers
        Logarithms of probabilities, (samples, classes, ...) or (classes,).
    target : array of integers
        The right classes, (samples, ...), or one number.
    weight : array of real numbers, optional
        By how much each class counts.
    ignore_index : int
        Samples of this class have no loss and no gradient, and may be infinite.
    reduction : "mean", "sum" or "none"
        The mean is over the samples that are not ignored, weighted by `weight`; it is 0 if all are.

    Returns
    -------
    Tensor
        One number, or one for each sample with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nll_loss(pb.log(pb.tensor([[0.5, 0.5], [0.25, 0.75]])), pb.asarray([0, 0]), reduction="none")
    tensor([0.6931472, 1.3862944])
    """
    name = "nll_loss"
    _check_reduction(name, reduction)
    x, weight = _of_classes(name, x, weight)
    target = asarray(target)
    _check_class_numbers(name, x, target, "class numbers")
    axis = 1 - x.ndim if x.ndim > 1 else -1
    counts = TENSORS.not_equal(target, int(ignore_index))
    classes = TENSORS.where(counts, asarray(target, dtype=dtypes.int64), 0)
    classes = TENSORS.where(TENSORS.less(classes, 0), x.shape[axis], classes)  # no class, where -1 would be the last
    try:
        chosen = TENSORS.take_along_axis(x, TENSORS.expand_dims(classes, (axis,)), axis)
    except IndexingError:
        raise no_such_class(name, target, x.shape[axis]) from None
    chosen = TENSORS.squeeze(chosen, (axis,))
    losses = TENSORS.where(counts, -TENSORS.widened(chosen), 0.0)
    weights = TENSORS.ones_like(losses)
    if weight is not None:
        weights = TENSORS.take(TENSORS.widened(weight), TENSORS.reshape(classes, (classes.size,)), -1)
        weights = TENSORS.reshape(weights, classes.shape)
        losses = losses * weights
    if reduction != "none":
        losses = TENSORS.sum(losses, None, False)
    if reduction == "mean":
        total = TENSORS.sum(TENSORS.where(counts, weights, 0.0), None, False)
        losses = losses / TENSORS.where(TENSORS.equal(total, 0), 1.0, total)
    return TENSORS.narrowed(losses, x._backend.raw_dtype(x.dtype))


# -- of pairs ------------------------------------------------------------------------------------------


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
    x: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
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


def binary_cross_entropy(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: str = "mean"
) -> Tensor:
    """The cross-entropy of the probabilities `x` and `target`; `binary_cross_entropy_with_logits` is more exact.

    Logarithms below -100 count as -100, and slopes are at most 1e12, as in PyTorch: at 0 and 1 both are finite.

    Parameters
    ----------
    x : array of real numbers
        Probabilities, from 0 to 1; outside the loss is not a number.
    target : array of numbers
        0, 1 or probabilities, in the shape of `x`.
    weight : array of real numbers, optional
        It multiplies each loss, and broadcasts to `x`.
    reduction : "mean", "sum" or "none"

    Returns
    -------
    Tensor
        One number, or one for each element with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.binary_cross_entropy(pb.tensor([0.5, 0.0]), pb.tensor([1.0, 1.0]), reduction="none")
    tensor([  0.6931472, 100.       ])
    """
    name = "binary_cross_entropy"
    _check_reduction(name, reduction)
    x, target = _pair(name, x, target)
    return _binary_cross_entropy(x, target, _factor(name, "weight", weight, x), reduction)


def kl_div(x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log(target) - x): how far the distribution with the logarithms `x` is from the one `target`.

    Where `target` is 0 the loss is 0, with a gradient of 0, whatever `x` is.

    Parameters
    ----------
    x : array of real numbers
        Logarithms of probabilities.
    target : array of real numbers
        Probabilities, in the shape of `x`; their logarithms with `log_target`.
    reduction : "mean", "batchmean", "sum" or "none"
        "batchmean" is the sum divided by the size of the first axis: the divergence, where "mean" is over all elements.
    log_target : bool
        Whether `target` holds logarithms.

    Returns
    -------
    Tensor
        One number, or one for each element with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.kl_div(pb.log(pb.tensor([[0.5, 0.5]])), pb.tensor([[0.0, 1.0]]), reduction="batchmean")
    tensor(0.6931472)
    """
    _check_reduction("kl_div", reduction, ("mean", "batchmean", "sum", "none"))
    x, target = _pair("kl_div", x, target)
    never = TENSORS.equal(target, -float("inf") if log_target else 0)
    x, target = TENSORS.where(never, 0.0, x), TENSORS.where(never, 0.0 if log_target else 1.0, target)
    losses = TENSORS.exp(target) * (target - x) if log_target else target * (TENSORS.log(target) - x)
    losses = TENSORS.where(never, 0.0, losses)
    if reduction != "batchmean":
        return _reduced(losses, reduction)
    if x.ndim == 0:
        raise ShapeError('kl_div: a number has no first axis to take the mean over: write reduction="sum".')
    return _reduced(losses, "sum") / max(x.shape[0], 1)


def mse_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
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


def l1_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
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


def huber_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean", delta: float = 1.0) -> Tensor:
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


def smooth_l1_loss(x: ArrayLike, target: ArrayLike, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d**2 / (2 beta) for a difference d = x - target below `beta`, and |d| - beta / 2 beyond: `huber_loss` / beta.

    Parameters
    ----------
    x, target : array of real numbers
        Of the same shape.
    reduction : "mean", "sum" or "none"
    beta : float
        Where the parabola ends; with 0 it is `l1_loss`.

    Returns
    -------
    Tensor
        One number, or one for each element with "none".

    Examples
    --------
    >>> import pullback as pb
    >>> pb.smooth_l1_loss(pb.tensor([0.5, 3.0]), pb.tensor([0.0, 0.0]), reduction="none", beta=0.5)
    tensor([0.25, 2.75])
    """
    _check_reduction("smooth_l1_loss", reduction)
    if not beta >= 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta!r}.")
    pair = _pair("smooth_l1_loss", x, target)
    return _l1_loss(*pair, reduction) if beta == 0 else _huber_loss(*pair, reduction, float(beta)) / float(beta)


huber = huber_loss
