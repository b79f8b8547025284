"""Convolution layers."""

from __future__ import annotations

from typing import Any, Callable, ClassVar

from ..errors import ConfigurationError
from ..functions import convolution as functions
from ..functions.convolution import Sizes, per_axis
from ..functions.filled import empty
from ..functions.manipulation import pad
from ..tensors.tensor import Tensor
from . import init
from .module import Module, Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Layer(Module):
    """What convolutions and their transposes share: sizes per axis, a weight and a bias."""

    axes: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]
    weight: Tensor
    bias: Tensor | None

    def _check(self, in_channels: int, out_channels: int, groups: int) -> None:
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if groups < 1 or channels % groups:
                raise ConfigurationError(
                    f"{type(self).__name__}: groups must divide {what}, got groups={groups}, {what}={channels}."
                )

    def _per_axis(self, what: str, value: Any, least: int) -> tuple[int, ...]:
        return per_axis(type(self).__name__, what, value, self.axes, least)

    def _make(self, shape: tuple[int, ...], features: int, bias: bool, dtype: Any, device: str | None) -> None:
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        self.bias = Parameter(empty(features, dtype=dtype, device=device)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the first values anew: uniform up to 1 / sqrt(inputs of an output)."""
        inputs = init.fans(self.weight)[0]
        init.uniform_by_inputs(self.weight, *([] if self.bias is None else [self.bias]), inputs=inputs)

    def _described(self, in_channels: int, out_channels: int, **options: tuple[Any, Any]) -> str:
        shown = [f"{name}={value!r}" for name, (value, default) in options.items() if value != default]
        return ", ".join([str(in_channels), str(out_channels), *shown])


class _Convolution(_Layer):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check(in_channels, out_channels, groups)
        if padding_mode not in _PADDING_MODES:
            raise ConfigurationError(
                f"{type(self).__name__}: padding_mode must be one of {', '.join(_PADDING_MODES)}, got {padding_mode!r}."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._per_axis("kernel_size", kernel_size, 1)
        self.stride = self._per_axis("stride", stride, 1)
        self.padding = padding if isinstance(padding, str) else self._per_axis("padding", padding, 0)
        self.dilation = self._per_axis("dilation", dilation, 1)
        self.groups = groups
        self.padding_mode = padding_mode
        self._make((out_channels, in_channels // groups, *self.kernel_size), out_channels, bias, dtype, device)

    def forward(self, x: Any) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = pad(x, self._margins(x.ndim), self.padding_mode), "valid"
        return type(self).function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _margins(self, ndim: int) -> list[tuple[int, int]]:
        """How much to pad every axis of the input by."""
        if self.padding == "same":
            reach = [step * (n - 1) for n, step in zip(self.kernel_size, self.dilation)]
            margins = [(r // 2, r - r // 2) for r in reach]
        elif isinstance(self.padding, str):
            margins = [(0, 0)] * self.axes
        else:
            margins = [(n, n) for n in self.padding]
        return [(0, 0)] * (ndim - self.axes) + margins

    def extra_repr(self) -> str:
        return self._described(
            self.in_channels,
            self.out_channels,
            kernel_size=(self.kernel_size, None),
            stride=(self.stride, None),
            padding=(self.padding, (0,) * self.axes),
            dilation=(self.dilation, (1,) * self.axes),
            groups=(self.groups, 1),
            bias=(self.bias is not None, True),
            padding_mode=(self.padding_mode, "zeros"),
        )


class Conv1d(_Convolution):
    """A convolution of (samples, channels, width); see `pb.conv1d`.

    Results are (samples, out_channels, new width).

    Parameters
    ----------
    in_channels : int
        Channels of inputs.
    out_channels : int
        Channels (features) of results.
    kernel_size : int
        The width of the kernel.
    stride : int
        How far the kernel moves from one result to the next.
    padding : int or str
        What is added at both ends; "valid" for nothing, "same" for as much as keeps the width.
    dilation : int
        The distance between the elements that the kernel sees.
    groups : int
        Parts that channels are split into; each part of the results sees its own inputs.
    bias : bool
        Whether there is a `bias` (out_channels,).
    padding_mode : str
        What is added: "zeros", "reflect", "replicate" or "circular".
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Conv1d(3, 4, kernel_size=5, padding=2, padding_mode="circular")(pb.zeros((2, 3, 7))).shape
    (2, 4, 7)
    """

    axes = 1
    function = functions.conv1d


class Conv2d(_Convolution):
    """A convolution of images (samples, channels, height, width); see `pb.conv2d`.

    Results are (samples, out_channels, new height, new width).

    Parameters
    ----------
    in_channels : int
        Channels of inputs: 3 for colour images.
    out_channels : int
        Channels (features) of results.
    kernel_size : int or pair of int
        The size of the kernel.
    stride : int or pair of int
        How far the kernel moves from one result to the next.
    padding : int, pair of int or str
        What is added at both ends; "valid" for nothing, "same" for as much as keeps the size.
    dilation : int or pair of int
        The distance between the elements that the kernel sees.
    groups : int
        Parts that channels are split into; each part of the results sees its own inputs.
    bias : bool
        Whether there is a `bias` (out_channels,).
    padding_mode : str
        What is added: "zeros", "reflect", "replicate" or "circular".
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Conv2d(3, 4, kernel_size=3, stride=2)(pb.zeros((2, 3, 7, 7))).shape
    (2, 4, 3, 3)
    """

    axes = 2
    function = functions.conv2d


class Conv3d(_Convolution):
    """A convolution of (samples, channels, depth, height, width); see `pb.conv3d`, and `Conv2d` for the arguments.

    >>> import pullback as pb
    >>> pb.nn.Conv3d(3, 4, kernel_size=(1, 3, 3))(pb.zeros((2, 3, 2, 7, 7))).shape
    (2, 4, 2, 5, 5)
    """

    axes = 3
    function = functions.conv3d


class _Transposed(_Layer):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        *,
        device: str | None = None,
        dtype: Any = None,
    ) -> None:
        self._check(in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._per_axis("kernel_size", kernel_size, 1)
        self.stride = self._per_axis("stride", stride, 1)
        self.padding = self._per_axis("padding", padding, 0)
        self.output_padding = self._per_axis("output_padding", output_padding, 0)
        self.groups = groups
        self.dilation = self._per_axis("dilation", dilation, 1)
        self._make((in_channels, out_channels // groups, *self.kernel_size), out_channels, bias, dtype, device)

    def forward(self, x: Any) -> Tensor:
        return type(self).function(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )

    def extra_repr(self) -> str:
        return self._described(
            self.in_channels,
            self.out_channels,
            kernel_size=(self.kernel_size, None),
            stride=(self.stride, None),
            padding=(self.padding, (0,) * self.axes),
            output_padding=(self.output_padding, (0,) * self.axes),
            dilation=(self.dilation, (1,) * self.axes),
            groups=(self.groups, 1),
            bias=(self.bias is not None, True),
        )


class ConvTranspose1d(_Transposed):
    """The transpose of a convolution of (samples, channels, width); see `pb.conv_transpose1d` and `ConvTranspose2d`.

    >>> import pullback as pb
    >>> pb.nn.ConvTranspose1d(3, 4, kernel_size=2, stride=2)(pb.zeros((2, 3, 5))).shape
    (2, 4, 10)
    """

    axes = 1
    function = functions.conv_transpose1d


class ConvTranspose2d(_Transposed):
    """The transpose of a convolution of (samples, channels, height, width); see `pb.conv_transpose2d`.

    With a stride of 2 images become twice as large.

    Parameters
    ----------
    in_channels : int
        Channels of inputs.
    out_channels : int
        Channels of results.
    kernel_size : int or pair of int
        The size of the kernel.
    stride : int or pair of int
        How far apart neighbours of the input are in the result.
    padding : int or pair of int
        What is cut off the result at both ends.
    output_padding : int or pair of int
        What is added to the result at one end.
    groups : int
        Parts that channels are split into.
    bias : bool
        Whether there is a `bias` (out_channels,).
    dilation : int or pair of int
        The distance between the elements of the kernel.
    device : str, optional
        Where the parameters go, by default the current device.
    dtype : dtype, optional
        That of the parameters, by default `pb.default_dtype()`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.ConvTranspose2d(3, 4, kernel_size=2, stride=2)(pb.zeros((2, 3, 5, 5))).shape
    (2, 4, 10, 10)
    """

    axes = 2
    function = functions.conv_transpose2d


class ConvTranspose3d(_Transposed):
    """The transpose of a convolution of (samples, channels, depth, height, width); see `ConvTranspose2d`.

    >>> import pullback as pb
    >>> pb.nn.ConvTranspose3d(3, 4, kernel_size=2, stride=2)(pb.zeros((2, 3, 2, 3, 3))).shape
    (2, 4, 4, 6, 6)
    """

    axes = 3
    function = functions.conv_transpose3d
