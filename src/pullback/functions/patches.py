"""Images as columns of patches and back, and channels as finer pixels and back, with PyTorch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ..autodiff.creation import given as asarray
from ..autodiff.tables import TENSORS
from ..errors import ShapeError
from .convolution import per_axis, with_samples, without_samples

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = ["fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]

Sizes = int | Sequence[int]


def unfold(x: Any, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The patches of images that a convolution would look at, as columns.

    Parameters
    ----------
    x : array
        Images (samples, channels, height, width), or one without samples.
    kernel_size, dilation, padding, stride : int or sequence of int
        The size of a patch, how far apart its elements are, how many zeros are added on each side, and how far
        apart patches begin: an integer, or one for height and one for width.

    Returns
    -------
    Tensor
        (samples, channels * elements of a patch, patches), in the order of `pb.conv2d`'s weights.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unfold(pb.asarray([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), (1, 2))
    tensor([[1., 2., 4., 5.],
            [2., 3., 5., 6.]])
    """
    x, single = with_samples("unfold", 2, x)
    samples, channels, *size = x.shape
    margins, places, patches = _geometry("unfold", tuple(size), kernel_size, dilation, padding, stride)
    x = TENSORS.pad(x, ((0, 0), (0, 0), *((n, n) for n in margins)), 0)
    flat = TENSORS.reshape(x, (samples, channels, x.shape[-2] * x.shape[-1]))
    taken = TENSORS.take(flat, _beside(places.ravel(), x), -1)
    out = TENSORS.reshape(taken, (samples, channels * len(places), patches))
    return without_samples(out) if single else out


def fold(
    x: Any,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """The opposite way of `unfold`: images on which patches are laid, and added where they overlap.

    Parameters
    ----------
    x : array
        Patches (samples, channels * elements of a patch, patches), or those of one sample without that axis.
    output_size : int or sequence of int
        The height and width of the images.
    kernel_size, dilation, padding, stride : int or sequence of int
        As of `unfold`, whose transpose this is.

    Returns
    -------
    Tensor
        Images (samples, channels, height, width).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fold(pb.asarray([[1.0, 1.0], [1.0, 1.0]]), (1, 3), (1, 2))
    tensor([[[1., 2., 1.]]])
    """
    x = asarray(x)
    if x.ndim not in (2, 3):
        raise ShapeError(
            f"fold: x must be (samples, channels * elements of a patch, patches), or without samples, got {x.shape}."
        )
    single = x.ndim == 2
    if single:
        x = TENSORS.reshape(x, (1, *x.shape))
    size = per_axis("fold", "output_size", output_size, 2, least=1)
    margins, places, patches = _geometry("fold", size, kernel_size, dilation, padding, stride)
    samples, rows, columns = x.shape
    if rows % len(places) or columns != patches:
        raise ShapeError(
            f"fold: x of shape {x.shape} should have a multiple of {len(places)} rows, the elements of a patch, and "
            f"{patches} columns, the patches of images {size}."
        )
    whole = tuple(n + 2 * margin for n, margin in zip(size, margins))
    flat = TENSORS.reshape(x, (samples, rows // len(places), places.size))
    added = TENSORS.take_transposed(flat, _beside(places.ravel(), x), whole[0] * whole[1], -1)
    out = TENSORS.reshape(added, (samples, rows // len(places), *whole))
    out = TENSORS.getitem(out, (..., *(slice(margin, margin + n) for n, margin in zip(size, margins))))
    return without_samples(out) if single else out


def _geometry(
    name: str, size: tuple[int, ...], kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> tuple[tuple[int, ...], Any, int]:
    """Margins, the places of the elements of all patches in the images with these, and how many patches there are."""
    kernel = per_axis(name, "kernel_size", kernel_size, 2, least=1)
    steps = per_axis(name, "dilation", dilation, 2, least=1)
    margins = per_axis(name, "padding", padding, 2, least=0)
    strides = per_axis(name, "stride", stride, 2, least=1)
    counts, starts = [], []
    for n, k, step, margin, jump in zip(size, kernel, steps, margins, strides):
        count = (n + 2 * margin - step * (k - 1) - 1) // jump + 1
        if count < 1:
            raise ShapeError(
                f"{name}: a patch is larger than the images: kernel_size={kernel_size} with dilation={dilation}, "
                f"images {size} with padding={padding}."
            )
        counts.append(count)
        starts.append(np.arange(k)[:, None] * step + np.arange(count) * jump)  # (elements, patches) along one axis
    width = size[1] + 2 * margins[1]
    places = starts[0][:, None, :, None] * width + starts[1][None, :, None, :]
    return margins, places.reshape(kernel[0] * kernel[1], -1), counts[0] * counts[1]


def _beside(array: Any, x: Tensor) -> Tensor:
    return asarray(np.asarray(array, np.int64), device=x.device)


def pixel_shuffle(x: ArrayLike, upscale_factor: int) -> Tensor:
    """Channels made into finer pixels: `upscale_factor` times as many along height and width.

    Parameters
    ----------
    x : array
        Images (..., channels * factor**2, height, width).
    upscale_factor : int
        How many times as high and wide they become.

    Returns
    -------
    Tensor
        Images (..., channels, height * factor, width * factor).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_shuffle(pb.asarray([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    x, factor = _images("pixel_shuffle", x, upscale_factor)
    *stack, channels, height, width = x.shape
    if channels % (factor * factor):
        raise ShapeError(
            f"pixel_shuffle: the channels of shape {x.shape} must be a multiple of {factor}**2 = {factor * factor}."
        )
    channels //= factor * factor
    split = TENSORS.reshape(x, (*stack, channels, factor, factor, height, width))
    moved = TENSORS.permute_dims(split, (*range(-split.ndim, -4), -2, -4, -1, -3))
    return TENSORS.reshape(moved, (*stack, channels, height * factor, width * factor))


def pixel_unshuffle(x: ArrayLike, downscale_factor: int) -> Tensor:
    """The opposite of `pixel_shuffle`: blocks of pixels made into channels.

    Parameters
    ----------
    x : array
        Images (..., channels, height * factor, width * factor).
    downscale_factor : int
        By what height and width are divided.

    Returns
    -------
    Tensor
        Images (..., channels * factor**2, height, width).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_unshuffle(pb.asarray([[[1.0, 2.0], [3.0, 4.0]]]), 2).shape
    (4, 1, 1)
    """
    x, factor = _images("pixel_unshuffle", x, downscale_factor)
    *stack, channels, height, width = x.shape
    if height % factor or width % factor:
        raise ShapeError(f"pixel_unshuffle: height and width of shape {x.shape} must be multiples of {factor}.")
    height, width = height // factor, width // factor
    split = TENSORS.reshape(x, (*stack, channels, height, factor, width, factor))
    moved = TENSORS.permute_dims(split, (*range(-split.ndim, -4), -3, -1, -4, -2))
    return TENSORS.reshape(moved, (*stack, channels * factor * factor, height, width))


def _images(name: str, x: Any, factor: int) -> tuple[Tensor, int]:
    x = asarray(x)
    if x.ndim < 3:
        raise ShapeError(f"{name}: expected images (..., channels, height, width), got shape {x.shape}.")
    (factor,) = per_axis(name, "the factor", factor, 1, least=1)
    return x, factor
