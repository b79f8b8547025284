"""Normalisation layers."""

from __future__ import annotations

import math
from typing import Any, Self, Sequence

from ..autodiff.creation import asarray
from ..errors import ConfigurationError, ShapeError
from ..functions import normalization as functions
from ..functions.carry import is_symbolic
from ..functions.filled import ones, zeros
from ..modes import no_grad
from ..tensors.tensor import Tensor
from . import init
from .module import Module, Parameter


def _sizes(name: str, normalized_shape: Any) -> tuple[int, ...]:
    sizes = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if not sizes or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise ConfigurationError(f"{name}: normalized_shape must be positive integers, got {normalized_shape!r}.")
    return sizes


class _Affine(Module):
    """What the layers share: a factor `weight` that begins as ones and an offset `bias` that begins as zeros."""

    weight: Tensor | None
    bias: Tensor | None

    def _make(self, shape: tuple[int, ...], weight: bool, bias: bool, dtype: Any, device: str | None) -> None:
        self.weight = Parameter(ones(shape, dtype=dtype, device=device)) if weight else None
        self.bias = Parameter(zeros(shape, dtype=dtype, device=device)) if bias else None

    def reset_parameters(self) -> None:
        """Set the first values anew: factors of one, offsets of zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalise over the last axes, those of `normalized_shape`; see `pb.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The sizes of the last axes: the width of a model, say.
    eps : float
        Added to the variance, so that nothing is divided by zero.
    elementwise_affine : bool
        Whether results are multiplied by a `weight` that is learned.
    bias : bool
        Whether a `bias` that is learned is added, too.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.LayerNorm(2, eps=0.0)(pb.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = _sizes("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype, device)

    def forward(self, x: Any) -> Tensor:
        return functions.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Affine):
    """Divide by the root of the mean square over the last axes, those of `normalized_shape`; see `pb.rms_norm`.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The sizes of the last axes: the width of a model, say.
    eps : float, optional
        Added to the mean square; by default the smallest step of the dtype from 1 on.
    elementwise_affine : bool
        Whether results are multiplied by a `weight` that is learned.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.RMSNorm(2, eps=0.0)(pb.tensor([[1.0, 7.0]])).detach()
    tensor([[0.2, 1.4]])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape = _sizes("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, False, dtype, device)

    @classmethod
    def from_weight(cls, weight: Tensor, eps: float | None = None) -> Self:
        """The layer of this very tensor: nothing is drawn, nothing is copied.

        >>> import pullback as pb
        >>> pb.nn.RMSNorm.from_weight(pb.ones(2), eps=0.0)(pb.tensor([1.0, 7.0]))
        tensor([0.2, 1.4])
        """
        self = cls.__new__(cls)
        self.normalized_shape, self.eps, self.elementwise_affine = weight.shape, eps, True
        self.register_parameter("weight", weight)
        self.register_parameter("bias", None)
        return self

    def forward(self, x: Any) -> Tensor:
        return functions.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Normalise each sample (channels, ...) over groups of channels; see `pb.group_norm`.

    Parameters
    ----------
    num_groups : int
        How many groups the channels are split into.
    num_channels : int
        The number of channels.
    eps : float
        Added to the variance, so that nothing is divided by zero.
    affine : bool
        Whether results are multiplied by a `weight` and a `bias` is added, both learned.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.GroupNorm(2, 4, eps=0.0)(pb.tensor([[1.0, 3.0, 10.0, 30.0]])).detach()
    tensor([[-1.,  1., -1.,  1.]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ConfigurationError(
                f"GroupNorm: {num_channels} channels cannot be split into {num_groups} groups of equal size."
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make((num_channels,), affine, affine, dtype, device)

    def forward(self, x: Any) -> Tensor:
        return functions.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _BatchNorm(_Affine):
    """What the batch normalisations share; they differ in the axes that they accept."""

    axes: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make((num_features,), affine, affine, dtype, device)
        tracked = track_running_stats
        self.running_mean = zeros(num_features, dtype=dtype, device=device) if tracked else None
        self.running_var = ones(num_features, dtype=dtype, device=device) if tracked else None
        self.num_batches_tracked = zeros((), dtype="int64", device=device) if tracked else None

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set the first values anew, and forget the running statistics."""
        super().reset_parameters()
        self.reset_running_stats()

    def forward(self, x: Any) -> Tensor:
        x = asarray(x)
        if x.ndim not in self.axes:
            expected = " or ".join(map(str, self.axes))
            raise ShapeError(f"{type(self).__name__}: x must have {expected} axes, got shape {x.shape}.")
        mean, var, count = self.running_mean, self.running_var, self.num_batches_tracked
        uses_batch = self.training or mean is None
        if not (self.training and mean is not None and var is not None and count is not None):
            return functions.batch_norm(x, mean, var, self.weight, self.bias, uses_batch, 0.0, self.eps)[0]
        momentum: Any = self.momentum
        if momentum is None:  # as a tensor where a compiled program counts the batches
            momentum = 1.0 / (count + 1).astype(mean.dtype) if is_symbolic(count) else 1.0 / (count.item() + 1)
        out, new_mean, new_var = functions.batch_norm(x, mean, var, self.weight, self.bias, True, momentum, self.eps)
        with no_grad():  # written in place: the buffers stay the same objects, and the graph does not see it
            mean[...] = new_mean
            var[...] = new_var
            count += 1
        return out

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalise each channel of (samples, channels) or (samples, channels, width) over all the others.

    In training by the batch's own statistics, which also move the running ones; in evaluation (`model.eval()`) by the
    running ones. See `pb.batch_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance, so that nothing is divided by zero.
    momentum : float or None
        How far the running statistics move towards the batch's; None for the mean of all batches so far.
    affine : bool
        Whether results are multiplied by a `weight` and a `bias` is added, both learned.
    track_running_stats : bool
        Whether there are running statistics; otherwise the batch's own are always used.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> norm = pb.nn.BatchNorm1d(1, momentum=1.0)
    >>> norm(pb.tensor([[1.0], [3.0]])).shape, norm.running_mean, norm.num_batches_tracked.item()
    ((2, 1), tensor([2.]), 1)
    """

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of (samples, channels, height, width) over all the others; see `BatchNorm1d`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : float
        Added to the variance, so that nothing is divided by zero.
    momentum : float or None
        How far the running statistics move towards the batch's; None for the mean of all batches so far.
    affine : bool
        Whether results are multiplied by a `weight` and a `bias` is added, both learned.
    track_running_stats : bool
        Whether there are running statistics; otherwise the batch's own are always used.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.BatchNorm2d(3)(pb.random.normal((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of (samples, channels, depth, height, width) over all the others; see `BatchNorm1d`.

    >>> import pullback as pb
    >>> pb.nn.BatchNorm3d(3)(pb.random.normal((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    axes = (5,)


class _InstanceNorm(_Affine):
    """Each channel of each sample by itself: group normalisation with a group per channel."""

    axes = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        *,
        affine: bool = False,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.num_features = num_features
        self.eps = eps
        self.affine = affine
        self._make((num_features,), affine, affine, dtype, device)

    def forward(self, x: Any) -> Tensor:
        x = asarray(x)
        name, shape = type(self).__name__, x.shape
        if len(shape) not in (self.axes + 1, self.axes + 2) or shape[-self.axes - 1] != self.num_features:
            raise ShapeError(
                f"{name}: x must have {self.num_features} channels before {self.axes} spatial axes, got shape {shape}."
            )
        if math.prod(shape[-self.axes :]) < 2:
            raise ShapeError(f"{name}: one value per channel has no variance; x has shape {shape}.")
        samples = x if len(shape) == self.axes + 2 else x[None]
        out = functions.group_norm(samples, self.num_features, self.weight, self.bias, self.eps)
        return out if samples is x else out[0]

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, affine={self.affine}"


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample over its width; the axis of samples may be left out.

    `num_features` is the number of channels. With `affine` results are multiplied by a weight and a bias is added.

    >>> import pullback as pb
    >>> pb.nn.InstanceNorm1d(1, eps=0.0)(pb.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.,  1.]]])
    """

    axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample over its height and width; see `InstanceNorm1d`.

    >>> import pullback as pb
    >>> pb.nn.InstanceNorm2d(3)(pb.random.normal((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample over its depth, height and width; see `InstanceNorm1d`.

    >>> import pullback as pb
    >>> pb.nn.InstanceNorm3d(3)(pb.random.normal((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    axes = 3
