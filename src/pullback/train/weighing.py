"""A batch's loss as a number, and how much it counts among others."""

from __future__ import annotations

import math

from ..errors import NumericalInstabilityError
from ..tensors.tensor import Tensor


def total_of(loss: Tensor, weight: float, is_sum: bool) -> float:
    """The sum of a batch's losses as a number, which must be finite."""
    value = finite_value(loss)
    return value if is_sum else value * weight


def finite_value(loss: Tensor) -> float:
    """A loss as a number, which must be finite."""
    value = float(loss.item())
    if not math.isfinite(value):
        raise NumericalInstabilityError(f"the loss is {value}")
    return value


def weight_of(target: Tensor) -> float:
    """The weight of a batch whose loss is a mean: how many samples it has."""
    return float(target.shape[0]) if target.ndim else 1.0
