"""Losses as modules."""

from __future__ import annotations

from typing import Any

from ..functions import losses as functions
from ..tensors.tensor import Tensor
from .module import Module


class _Loss(Module):
    """What the losses share: how the losses of the elements become one, "mean", "sum" or "none" of it."""

    def __init__(self, reduction: str = "mean") -> None:
        functions._check_reduction(type(self).__name__, reduction)
        self.reduction = reduction

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """`pb.mse_loss` as a module, called with predictions and targets of the same shape.

    Parameters
    ----------
    reduction : str
        "mean", "sum" or "none" (a loss for each element).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.MSELoss()(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0])).item()
    2.0
    """

    def forward(self, x: Any, target: Any) -> Tensor:
        return functions.mse_loss(x, target, self.reduction)


class L1Loss(_Loss):
    """`pb.l1_loss` as a module.

    >>> import pullback as pb
    >>> pb.nn.L1Loss()(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0])).item()
    1.0
    """

    def forward(self, x: Any, target: Any) -> Tensor:
        return functions.l1_loss(x, target, self.reduction)


class HuberLoss(_Loss):
    """`pb.huber_loss` as a module.

    >>> import pullback as pb
    >>> pb.nn.HuberLoss(delta=0.5)(pb.tensor([2.0]), pb.tensor([0.0])).item()
    0.875
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Any, target: Any) -> Tensor:
        return functions.huber_loss(x, target, self.reduction, self.delta)


class CrossEntropyLoss(_Loss):
    """`pb.cross_entropy` as a module, called with logits and targets.

    Parameters
    ----------
    weight : array, optional
        (classes,): how much each class counts.
    ignore_index : int
        Samples with this class number have no loss and no gradient.
    reduction : str
        "mean", "sum" or "none" (a loss for each sample).
    label_smoothing : float
        The share of each target that is spread over all classes, from 0 to 1.

    Examples
    --------
    >>> import pullback as pb
    >>> round(pb.nn.CrossEntropyLoss()(pb.tensor([[2.0, 0.0, 0.0]]), pb.asarray([0])).item(), 4)
    0.2395
    """

    weight: Tensor | None

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, x: Any, target: Any) -> Tensor:
        return functions.cross_entropy(x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class BCEWithLogitsLoss(_Loss):
    """`pb.binary_cross_entropy_with_logits` as a module.

    >>> import pullback as pb
    >>> pb.nn.BCEWithLogitsLoss()(pb.tensor([1000.0]), pb.tensor([0.0])).item()
    1000.0
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Any, target: Any) -> Tensor:
        return functions.binary_cross_entropy_with_logits(x, target, self.weight, self.reduction, self.pos_weight)
