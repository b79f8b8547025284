"""Gradient accumulation: one step from several micro-batches, as if they had been one batch."""

from __future__ import annotations

import math
from typing import Any

from ..autodiff.gradients import Gradients, backward
from ..errors import ConfigurationError, GradientError
from ..tensors.tensor import Tensor

__all__ = ["Accumulation"]


class Accumulation:
    """Adds up the gradients of micro-batches and divides them by their total weight.

    Give the *sum* of the losses of each micro-batch, and its weight: the number of samples, or of tokens that are not
    masked. The result is the gradient of the mean over all of them, whatever the sizes of the micro-batches; the mean
    of their means, which frameworks usually take, is something else as soon as the sizes differ.

    Parameters
    ----------
    scaler : LossScaler, optional
        Losses are scaled with it, and `step` is its `step`. Call `scaler.update()` after that, and not between
        micro-batches.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.1)
    >>> accumulation = pb.optim.Accumulation()
    >>> for samples in ([1.0, 2.0, 3.0], [10.0]):
    ...     accumulation.backward((w * pb.asarray(samples)).sum(), weight=len(samples))
    >>> accumulation.mean_loss
    4.0
    >>> accumulation.step(optimizer)
    True
    >>> w
    tensor([0.6], requires_grad=True)
    """

    def __init__(self, scaler: Any = None) -> None:
        self.scaler = scaler
        self.reset()

    def reset(self) -> None:
        """Forget what was added up."""
        self._gradients = Gradients()
        self._loss: Tensor | None = None
        self._scale = 1.0
        self.weight = 0.0
        self.micro_batches = 0

    def backward(self, loss_sum: Tensor, weight: float) -> None:
        """Add the gradients of one micro-batch, given the sum of its losses (`loss_sum`).

        `weight` is the number of samples, or of tokens that count; it may be zero, where everything is masked.
        """
        weight = checked_weight(weight)
        scale = 1.0 if self.scaler is None else self.scaler.get_scale()
        if self.micro_batches and scale != self._scale:
            raise GradientError(
                f"Accumulation.backward: the scale went from {self._scale} to {scale} between two micro-batches. "
                "Call `scaler.update()` after `accumulation.step(...)` only."
            )
        gradients = backward(loss_sum if self.scaler is None else self.scaler.scale(loss_sum))
        self._gradients.add(gradients)
        loss = loss_sum.detach()
        self._loss = loss if self._loss is None else self._loss + loss
        self._scale = scale
        self.weight += weight
        self.micro_batches += 1

    def resume(self, gradients: Gradients) -> None:
        """Go on from gradients that were added up elsewhere, with the weight that is counted here."""
        self._gradients = gradients

    def check_weight(self) -> None:
        """Refuse to take a mean of nothing."""
        if self.weight == 0:
            given = (
                f"the {self.micro_batches} micro-batches have" if self.micro_batches else "no micro-batch was given:"
            )
            raise GradientError(
                f"Accumulation: {given} a total weight of 0, so there is no mean. Skip this step with `reset()`, "
                "or check the masks."
            )

    @property
    def mean_loss(self) -> float:
        """The mean loss of what was added up so far."""
        self.check_weight()
        return float(self._loss.item()) / self.weight  # type: ignore[union-attr]

    def gradients(self) -> Gradients:
        """The gradients of the mean loss; the accumulation starts anew.

        With a scaler they are still scaled: pass them to `scaler.unscale_(optimizer, grads)` before looking at them.
        """
        self.check_weight()
        gradients = self._gradients
        gradients.scale(1.0 / self.weight)
        self.reset()
        return gradients

    def step(self, optimizer: Any, clip_norm: float | None = None) -> bool:
        """Update the optimizer's parameters, with gradients of a joint norm of at most `clip_norm`, and start anew.

        Whether the step was taken: a scaler skips it where gradients overflow.
        """
        if clip_norm is not None and not clip_norm > 0:
            raise ConfigurationError(f"Accumulation.step: clip_norm must be positive, got {clip_norm!r}.")
        gradients = self.gradients()
        if self.scaler is not None:
            self.scaler.unscale_(optimizer, gradients)
        if clip_norm is not None:
            gradients.clip_global_norm(clip_norm)
        if self.scaler is not None:
            return bool(self.scaler.step(optimizer, gradients))
        optimizer.step(gradients)
        return True


def checked_weight(weight: Any) -> float:
    """The weight of a micro-batch as a number, which must be finite and not negative."""
    weight = float(weight)
    if not (math.isfinite(weight) and weight >= 0):
        raise GradientError(f"Accumulation.backward: the weight must be finite and not negative, got {weight!r}.")
    return weight
