"""Convolutions, with the names and arguments of PyTorch's functional interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..errors import ShapeError
from ..operations import OPERATIONS

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

Sizes = int | Sequence[int]


def conv1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Slide `weight` (features, channels / groups, width) over `x` (samples, channels, width).

    As everywhere in deep learning, the kernel is not flipped.

    Parameters
    ----------
    x : array
        (samples, channels, width), or (channels, width).
    weight : array
        (features, channels / groups, kernel width).
    bias : array, optional
        (features,).
    stride : int
        How far the kernel moves from one result to the next.
    padding : int or str
        Zeros at both ends; "valid" for none, "same" for as many as keep the width.
    dilation : int
        The distance between the elements that the kernel sees.
    groups : int
        Parts that channels and features are split into; each part of the features sees its own channels.

    Returns
    -------
    Tensor
        (samples, features, new width).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.conv1d(pb.tensor([[[1.0, 2.0, 3.0, 4.0]]]), pb.tensor([[[1.0, 0.0, -1.0]]]))
    tensor([[[-2., -2.]]])
    """
    return _convolution("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Slide `weight` (features, channels / groups, height, width) over `x` (samples, channels, height, width).

    A number for `stride`, `padding` or `dilation` counts for both axes; a pair has one for each. As everywhere in deep
    learning, the kernel is not flipped.

    Parameters
    ----------
    x : array
        (samples, channels, height, width), or (channels, height, width).
    weight : array
        (features, channels / groups, kernel height, kernel width).
    bias : array, optional
        (features,).
    stride : int or pair of int
        How far the kernel moves from one result to the next.
    padding : int, pair of int or str
        Zeros at both ends; "valid" for none, "same" for as many as keep the size.
    dilation : int or pair of int
        The distance between the elements that the kernel sees.
    groups : int
        Parts that channels and features are split into; each part of the features sees its own channels.

    Returns
    -------
    Tensor
        (samples, features, new height, new width).

    Examples
    --------
    >>> import pullback as pb
    >>> image, kernel = pb.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), pb.tensor([[[[1.0, 1.0], [1.0, 1.0]]]])
    >>> pb.conv2d(image, kernel, bias=pb.tensor([0.5])).item()
    10.5
    >>> pb.conv2d(image, kernel, padding="same").shape
    (1, 1, 2, 2)
    """
    return _convolution("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Slide `weight` (features, channels / groups, depth, height, width) over volumes; see `conv2d`.

    >>> import numpy as np, pullback as pb
    >>> pb.conv3d(np.ones((2, 3, 4, 5, 6)), np.ones((7, 3, 2, 2, 2)), stride=(1, 2, 2)).shape
    (2, 7, 3, 2, 3)
    """
    return _convolution("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv1d` as a linear map: it goes from that one's results to its inputs.

    `weight` is (channels, features / groups, width). With a stride several widths lead to the same result of `conv1d`;
    `output_padding` adds to the smallest one. The arguments are those of `conv_transpose2d`.

    >>> import pullback as pb
    >>> pb.conv_transpose1d(pb.tensor([[[1.0, 2.0]]]), pb.tensor([[[1.0, 10.0]]]), stride=2)
    tensor([[[ 1., 10.,  2., 20.]]])
    """
    return _transposed("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv2d` as a linear map: it goes from that one's results to its inputs.

    Parameters
    ----------
    x : array
        (samples, channels, height, width), or (channels, height, width).
    weight : array
        (channels, features / groups, kernel height, kernel width).
    bias : array, optional
        (features,).
    stride : int or pair of int
        How far apart neighbours of `x` are in the result.
    padding : int or pair of int
        What is cut off the result at both ends.
    output_padding : int or pair of int
        What is added at one end: with a stride several sizes lead to the same result of `conv2d`.
    groups : int
        Parts that channels and features are split into.
    dilation : int or pair of int
        The distance between the elements of the kernel.

    Returns
    -------
    Tensor
        (samples, features, new height, new width).

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.conv_transpose2d(np.ones((1, 8, 5, 5)), np.ones((8, 4, 3, 3)), stride=2, padding=1, output_padding=1).shape
    (1, 4, 10, 10)
    """
    return _transposed("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv3d` as a linear map; see `conv_transpose2d`.

    >>> import numpy as np, pullback as pb
    >>> pb.conv_transpose3d(np.ones((1, 2, 3, 3, 3)), np.ones((2, 1, 2, 2, 2)), stride=2).shape
    (1, 1, 6, 6, 6)
    """
    return _transposed("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _convolution(
    name: str, axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    x, weight, bias, single = _operands(name, axes, x, weight, bias)
    _check_bias(name, bias, weight.shape[0])
    static = geometry(name, axes, x, weight, stride, padding, dilation, groups)
    if bias is None:
        out = apply(OPERATIONS["convolution"], (x, weight), static)
    else:
        out = apply(OPERATIONS["biased_convolution"], (x, weight, bias), static)
    return without_samples(out) if single else out


def geometry(
    name: str, axes: int, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Any, ...]:
    """The static arguments of a convolution, one per spatial axis, after checking them against the two shapes."""
    stride = per_axis(name, "stride", stride, axes, least=1)
    dilation = per_axis(name, "dilation", dilation, axes, least=1)
    kernel = weight.shape[2:]
    reach = tuple(step * (k - 1) for k, step in zip(kernel, dilation))
    if padding == "same":
        if any(jump != 1 for jump in stride):
            raise ShapeError(f'{name}: padding="same" needs stride 1, got stride={stride}. Give padding as a number.')
        pairs = tuple((r // 2, r - r // 2) for r in reach)
    elif isinstance(padding, str):
        if padding != "valid":
            raise ShapeError(f'{name}: padding must be a number, one per axis, "same" or "valid", got {padding!r}.')
        pairs = ((0, 0),) * axes
    else:
        pairs = tuple((n, n) for n in per_axis(name, "padding", padding, axes, least=0))
    _check_groups(name, groups, weight.shape[0], "features")
    if x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(
            f"{name}: x has {x.shape[1]} channels (shape {x.shape}), but weight of shape {weight.shape} with "
            f"groups={groups} takes {weight.shape[1] * groups}."
        )
    for n, r, (low, high) in zip(x.shape[2:], reach, pairs):
        if n + low + high <= r:
            raise ShapeError(
                f"{name}: the kernel is larger than the input: kernel {kernel} with dilation {dilation} spans "
                f"{tuple(r + 1 for r in reach)}, x {x.shape[2:]} with padding {pairs} is "
                f"{tuple(n + low + high for n, (low, high) in zip(x.shape[2:], pairs))}."
            )
    return stride, pairs, dilation, groups


def _transposed(
    name: str, axes: int, x: Any, weight: Any, bias: Any,
    stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    x, weight, bias, single = _operands(name, axes, x, weight, bias)
    stride = per_axis(name, "stride", stride, axes, least=1)
    padding = per_axis(name, "padding", padding, axes, least=0)
    dilation = per_axis(name, "dilation", dilation, axes, least=1)
    extra = per_axis(name, "output_padding", output_padding, axes, least=0)
    kernel = weight.shape[2:]
    _check_groups(name, groups, weight.shape[0], "channels")
    if x.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"{name}: x has {x.shape[1]} channels (shape {x.shape}), but weight of shape {weight.shape} takes "
            f"{weight.shape[0]}: it is (channels, features / groups, *kernel) here."
        )
    _check_bias(name, bias, weight.shape[1] * groups)
    for more, jump, step in zip(extra, stride, dilation):
        if more >= max(jump, step):
            raise ShapeError(
                f"{name}: output_padding must be smaller than stride or dilation, got output_padding={extra}, "
                f"stride={stride}, dilation={dilation}."
            )
    size = tuple(
        (n - 1) * jump - 2 * pad + step * (k - 1) + more + 1
        for n, jump, pad, step, k, more in zip(x.shape[2:], stride, padding, dilation, kernel, extra)
    )
    if min(size) < 1:
        raise ShapeError(f"{name}: x {x.shape[2:]} with kernel {kernel} and padding {padding} gives the size {size}.")
    pairs = tuple((pad, pad - more) for pad, more in zip(padding, extra))
    out = apply(OPERATIONS["convolution_input_gradient"], (x, weight), (size, stride, pairs, dilation, groups))
    if bias is not None:
        shape = (bias.shape[0], *(1,) * axes)
        out = apply(OPERATIONS["add"], (out, apply(OPERATIONS["reshape"], (bias,), (shape,))))
    return without_samples(out) if single else out


def _operands(name: str, axes: int, x: Any, weight: Any, bias: Any) -> tuple[Tensor, Tensor, Tensor | None, bool]:
    x, single = with_samples(name, axes, x)
    weight = asarray(weight)
    if weight.ndim != axes + 2:
        raise ShapeError(f"{name}: weight must have {axes + 2} axes, got shape {weight.shape}.")
    if 0 in weight.shape[2:]:
        raise ShapeError(f"{name}: the kernel must have at least one element along every axis, got {weight.shape[2:]}.")
    return x, weight, None if bias is None else asarray(bias), single


def _check_groups(name: str, groups: int, count: int, what: str) -> None:
    if not isinstance(groups, int) or groups < 1 or count % groups:
        raise ShapeError(f"{name}: groups must divide the {count} {what} of weight, got groups={groups!r}.")


def _check_bias(name: str, bias: Tensor | None, features: int) -> None:
    if bias is not None and bias.shape != (features,):
        raise ShapeError(f"{name}: bias must have shape ({features},), one number per feature, got {bias.shape}.")


def with_samples(name: str, axes: int, x: Any) -> tuple[Tensor, bool]:
    """`x` with an axis of samples and one of channels before `axes` spatial ones; whether the first was added."""
    x = asarray(x)
    if x.ndim == axes + 2:
        return x, False
    if x.ndim == axes + 1:
        return apply(OPERATIONS["reshape"], (x,), ((1, *x.shape),)), True
    raise ShapeError(
        f"{name}: x must have {axes + 2} axes (samples, channels and {axes} spatial), "
        f"or {axes + 1} without samples, got shape {x.shape}."
    )


def without_samples(x: Tensor) -> Tensor:
    return apply(OPERATIONS["reshape"], (x,), (x.shape[1:],))


def per_axis(name: str, what: str, value: Any, axes: int, least: int) -> tuple[int, ...]:
    """One integer per spatial axis, from one for all of them or a sequence."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) == 1:
        values *= axes
    if len(values) != axes or not all(isinstance(n, int) or hasattr(n, "__index__") for n in values):
        raise ShapeError(f"{name}: {what} must be an integer or {axes} of them, got {value!r}.")
    values = tuple(int(n) for n in values)
    if min(values) < least:
        raise ShapeError(f"{name}: {what} must be at least {least}, got {value!r}.")
    return values
