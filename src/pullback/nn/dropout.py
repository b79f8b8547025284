"""Dropout: random zeros in training."""

from __future__ import annotations

from typing import Any

from ..autodiff.creation import asarray
from ..errors import ConfigurationError, ShapeError
from ..functions.filled import ones
from ..functions.normalization import dropout
from ..tensors.tensor import Tensor
from .module import Module


def probability(name: str, p: Any) -> float:
    """`p`, after a look whether it is a probability."""
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise ConfigurationError(f"{name}: a probability, from 0 to 1, is needed, got {p!r}.")
    return float(p)


class Dropout(Module):
    """In training, each element zero with probability `p` and the others divided by 1 - p; see `pb.dropout`.

    In evaluation (`model.eval()`) inputs come back as they are.

    Parameters
    ----------
    p : float
        The probability of each element to become zero, from 0 to 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Dropout(0.5).eval()(pb.tensor([1.0, 2.0]))
    tensor([1., 2.])
    >>> pb.random.seed(0)
    >>> sorted(set(pb.nn.Dropout(0.5)(pb.ones(100)).tolist()))
    [0.0, 2.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = probability(type(self).__name__, p)

    def forward(self, x: Any) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _ChannelDropout(Dropout):
    """Whole channels at a time: those of x (samples, channels, *spatial), or (channels, *spatial)."""

    axes = 0

    def forward(self, x: Any) -> Tensor:
        x = asarray(x)
        if x.ndim not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                f"{type(self).__name__}: x must have {self.axes + 2} axes (samples, channels, ...), "
                f"or {self.axes + 1} without samples, got shape {x.shape}."
            )
        if not self.training or self.p == 0:
            return x
        kept = (*x.shape[: x.ndim - self.axes], *(1,) * self.axes)
        return x * dropout(ones(kept, dtype=x.dtype, device=x.device), self.p)


class Dropout1d(_ChannelDropout):
    """`Dropout` of whole channels (samples, channels, width) at a time.

    >>> import pullback as pb
    >>> pb.nn.Dropout1d()(pb.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    axes = 1


class Dropout2d(_ChannelDropout):
    """`Dropout` of whole channels (samples, channels, height, width) at a time.

    >>> import pullback as pb
    >>> pb.nn.Dropout2d()(pb.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    axes = 2


class Dropout3d(_ChannelDropout):
    """`Dropout` of whole channels (samples, channels, depth, height, width) at a time.

    >>> import pullback as pb
    >>> pb.nn.Dropout3d()(pb.ones((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    axes = 3
