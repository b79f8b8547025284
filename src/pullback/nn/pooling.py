"""Pooling layers, and one that makes images larger."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Sequence

from ..functions import pooling as functions
from ..functions.convolution import Sizes
from ..tensors.tensor import Tensor
from .module import Module


class _MaxPool(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Any) -> Any:
        return type(self).function(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of every window of (samples, channels, width); see `MaxPool2d`.

    >>> import pullback as pb
    >>> pb.nn.MaxPool1d(2)(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]))
    tensor([[[4., 3.]]])
    """

    function = functions.max_pool1d


class MaxPool2d(_MaxPool):
    """The largest element of every window of images (samples, channels, height, width); see `pb.max_pool2d`.

    Parameters
    ----------
    kernel_size : int or pair of int
        The size of windows.
    stride : int or pair of int, optional
        From one window to the next, by default `kernel_size`.
    padding : int or pair of int
        A margin that is never the largest.
    dilation : int or pair of int
        The distance between the elements of a window.
    return_indices : bool
        Whether to give the positions as well.
    ceil_mode : bool
        Whether a last window that is not whole counts.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.MaxPool2d(2)(pb.zeros((1, 3, 6, 6))).shape
    (1, 3, 3, 3)
    """

    function = functions.max_pool2d


class MaxPool3d(_MaxPool):
    """The largest element of every window of (samples, channels, depth, height, width); see `MaxPool2d`.

    >>> import pullback as pb
    >>> pb.nn.MaxPool3d(2)(pb.zeros((1, 3, 4, 6, 6))).shape
    (1, 3, 2, 3, 3)
    """

    function = functions.max_pool3d


class AvgPool1d(Module):
    """The mean of every window of (samples, channels, width); see `AvgPool2d`.

    >>> import pullback as pb
    >>> pb.nn.AvgPool1d(2)(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]))
    tensor([[[2.5, 2.5]]])
    """

    function: ClassVar[Callable[..., Tensor]] = functions.avg_pool1d

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Any) -> Tensor:
        return type(self).function(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolWithDivisor(AvgPool1d):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, x: Any) -> Tensor:
        return type(self).function(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of every window of images (samples, channels, height, width); see `pb.avg_pool2d`.

    Parameters
    ----------
    kernel_size : int or pair of int
        The size of windows.
    stride : int or pair of int, optional
        From one window to the next, by default `kernel_size`.
    padding : int or pair of int
        A margin of zeros.
    ceil_mode : bool
        Whether a last window that is not whole counts.
    count_include_pad : bool
        Whether the margin counts among the elements.
    divisor_override : int, optional
        What sums are divided by, in place of the number of elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.AvgPool2d(2)(pb.zeros((1, 3, 6, 6))).shape
    (1, 3, 3, 3)
    """

    function = functions.avg_pool2d


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of every window of (samples, channels, depth, height, width); see `AvgPool2d`.

    >>> import pullback as pb
    >>> pb.nn.AvgPool3d(2)(pb.zeros((1, 3, 4, 6, 6))).shape
    (1, 3, 2, 3, 3)
    """

    function = functions.avg_pool3d


class _Adaptive(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Tensor:
        return type(self).function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of `output_size` windows that cover the input; see `pb.adaptive_avg_pool1d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveAvgPool1d(2)(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]))
    tensor([[[2.5, 2.5]]])
    """

    function = functions.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_Adaptive):
    """The means of `output_size` windows that cover the input; see `pb.adaptive_avg_pool2d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveAvgPool2d(1)(pb.zeros((2, 3, 5, 7))).shape
    (2, 3, 1, 1)
    """

    function = functions.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_Adaptive):
    """The means of `output_size` windows that cover the input; see `pb.adaptive_avg_pool3d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveAvgPool3d((1, 2, None))(pb.zeros((2, 3, 5, 6, 7))).shape
    (2, 3, 1, 2, 7)
    """

    function = functions.adaptive_avg_pool3d


class AdaptiveMaxPool1d(_Adaptive):
    """The largest elements of `output_size` windows that cover the input; see `pb.adaptive_max_pool1d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveMaxPool1d(2)(pb.tensor([[[1.0, 4.0, 2.0, 3.0, 0.0]]]))
    tensor([[[4., 3.]]])
    """

    function = functions.adaptive_max_pool1d


class AdaptiveMaxPool2d(_Adaptive):
    """The largest elements of `output_size` windows that cover the input; see `pb.adaptive_max_pool2d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveMaxPool2d((3, None))(pb.zeros((2, 3, 5, 7))).shape
    (2, 3, 3, 7)
    """

    function = functions.adaptive_max_pool2d


class AdaptiveMaxPool3d(_Adaptive):
    """The largest elements of `output_size` windows that cover the input; see `pb.adaptive_max_pool3d`.

    >>> import pullback as pb
    >>> pb.nn.AdaptiveMaxPool3d(1)(pb.zeros((2, 3, 5, 6, 7))).shape
    (2, 3, 1, 1, 1)
    """

    function = functions.adaptive_max_pool3d


class Upsample(Module):
    """Spatial axes resized to `size` or by `scale_factor`; see `pb.interpolate`.

    Parameters
    ----------
    size : int or tuple of int, optional
        The new size of the spatial axes: a number for all, or one for each.
    scale_factor : float or tuple of float, optional
        What the sizes are multiplied by, in place of `size`.
    mode : str
        "nearest", "nearest-exact", "area", "linear" (one spatial axis), "bilinear", "bicubic" (two) or "trilinear"
        (three).
    align_corners : bool, optional
        Whether the corner elements keep their place, in the modes that mix elements.
    recompute_scale_factor : bool, optional
        Whether the scale is that of the rounded sizes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Upsample(scale_factor=2)(pb.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Any) -> Tensor:
        return functions.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        resized = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{resized}, mode={self.mode!r}"
