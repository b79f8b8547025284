"""Pooling and interpolation, with the names and arguments of PyTorch's functional interface."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Sequence, overload

from ..autodiff.apply import apply
from ..autodiff.creation import given as asarray
from ..backends.windows import OUTSIDE, Adaptive, Average, Interpolation, Window, positions
from ..errors import DtypeError, ShapeError
from ..operations import OPERATIONS
from .convolution import Sizes, per_axis, with_samples, without_samples

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from ..typing import ArrayLike

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "interpolate", "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip


# -- the largest of a window -------------------------------------------------------------------------------------


@overload
def max_pool1d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool1d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of `x` (samples, channels, width).

    `stride` is the kernel's size (`kernel_size`) if not given. `padding` is never the largest; `dilation` is the
    distance between elements of a window; `ceil_mode` keeps a last window that is not whole. Of equal elements the
    first one gets the gradient. With `return_indices` also the positions.

    >>> import pullback as pb
    >>> pb.max_pool1d(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]), 2)
    tensor([[[4., 3.]]])
    """
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool2d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool2d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of `x`; of equal ones the first one gets the gradient.

    Parameters
    ----------
    x : array
        (samples, channels, height, width), or (channels, height, width).
    kernel_size : int or pair of int
        The size of windows.
    stride : int or pair of int, optional
        From one window to the next, by default `kernel_size`.
    padding : int or pair of int
        A margin that is never the largest.
    dilation : int or pair of int
        The distance between the elements of a window.
    ceil_mode : bool
        Whether a last window that is not whole counts.
    return_indices : bool
        Whether to give the positions as well, in the flattened image.

    Returns
    -------
    Tensor, or (Tensor, Tensor)
        (samples, channels, new height, new width); with indices of the same shape if asked for.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.max_pool2d(pb.tensor([[[[1.0, 4.0], [2.0, 3.0]]]]), 2).item()
    4.0
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def max_pool3d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any: ...
def max_pool3d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of `x` (samples, channels, depth, height, width); see `max_pool2d`.

    >>> import numpy as np, pullback as pb
    >>> pb.max_pool3d(np.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@overload
def adaptive_max_pool1d(x: ArrayLike, output_size: Any, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool1d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any: ...
def adaptive_max_pool1d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of `output_size` windows that cover `x`, whatever its size.

    With `return_indices` the positions come too: (result, indices).

    >>> import pullback as pb
    >>> pb.adaptive_max_pool1d(pb.tensor([[[1.0, 4.0, 2.0, 3.0, 0.0]]]), 2)
    tensor([[[4., 3.]]])
    """
    return _adaptive_max_pool("adaptive_max_pool1d", 1, x, output_size, return_indices)


@overload
def adaptive_max_pool2d(x: ArrayLike, output_size: Any, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool2d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any: ...
def adaptive_max_pool2d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of `output_size` windows that cover `x`; None along an axis keeps its size.

    With `return_indices` the positions come too: (result, indices).

    >>> import numpy as np, pullback as pb
    >>> pb.adaptive_max_pool2d(np.ones((1, 2, 5, 7)), (3, None)).shape
    (1, 2, 3, 7)
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, x, output_size, return_indices)


@overload
def adaptive_max_pool3d(x: ArrayLike, output_size: Any, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool3d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any: ...
def adaptive_max_pool3d(x: ArrayLike, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of `output_size` windows that cover `x`; None along an axis keeps its size.

    With `return_indices` the positions come too: (result, indices).

    >>> import numpy as np, pullback as pb
    >>> pb.adaptive_max_pool3d(np.ones((1, 2, 5, 6, 7)), 1).shape
    (1, 2, 1, 1, 1)
    """
    return _adaptive_max_pool("adaptive_max_pool3d", 3, x, output_size, return_indices)


# -- means -------------------------------------------------------------------------------------------------------


def avg_pool1d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of `x` (samples, channels, width).

    `stride` is the kernel's size (`kernel_size`) if not given. `padding` counts as zeros, or not at all unless
    `count_include_pad`; `ceil_mode` keeps a last window that is not whole.

    >>> import pullback as pb
    >>> pb.avg_pool1d(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]), 2)
    tensor([[[2.5, 2.5]]])
    """
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of `x`.

    Parameters
    ----------
    x : array
        (samples, channels, height, width), or (channels, height, width).
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

    Returns
    -------
    Tensor
        (samples, channels, new height, new width).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.avg_pool2d(pb.tensor([[[[1.0, 4.0], [2.0, 3.0]]]]), 2).item()
    2.5
    """
    return _avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of `x` (samples, channels, depth, height, width); see `avg_pool2d`.

    >>> import numpy as np, pullback as pb
    >>> pb.avg_pool3d(np.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _avg_pool("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool1d(x: ArrayLike, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover `x`, whatever its size.

    >>> import pullback as pb
    >>> pb.adaptive_avg_pool1d(pb.tensor([[[1.0, 4.0, 2.0, 3.0]]]), 2)
    tensor([[[2.5, 2.5]]])
    """
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: ArrayLike, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover `x`; None along an axis keeps its size.

    >>> import numpy as np, pullback as pb
    >>> pb.adaptive_avg_pool2d(np.ones((1, 2, 5, 7)), 1).shape
    (1, 2, 1, 1)
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: ArrayLike, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that cover `x`; None along an axis keeps its size.

    >>> import numpy as np, pullback as pb
    >>> pb.adaptive_avg_pool3d(np.ones((1, 2, 5, 6, 7)), (1, 2, None)).shape
    (1, 2, 1, 2, 7)
    """
    return _adaptive_avg_pool("adaptive_avg_pool3d", 3, x, output_size)


# -- interpolation -----------------------------------------------------------------------------------------------

_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("area", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
}


def interpolate(
    x: ArrayLike,
    size: Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Resize the spatial axes of `x` to `size` or by `scale_factor`.

    Parameters
    ----------
    x : array
        (samples, channels, ...) with one to three spatial axes.
    size : int or tuple of int, optional
        The new sizes. Give this or `scale_factor`.
    scale_factor : float or tuple of float, optional
        By how much to multiply the sizes.
    mode : str
        "nearest", "nearest-exact" (the neighbour that image libraries take), "linear", "bilinear" or "trilinear"
        for one, two or three axes, "bicubic" for two, "area" (means, as of `adaptive_avg_pool2d`).
    align_corners : bool, optional
        Whether the corner elements keep their place, not the corners of these elements.
    recompute_scale_factor : bool, optional
        Whether steps follow from the rounded sizes, not from `scale_factor`.

    Returns
    -------
    Tensor
        (samples, channels, ...) with the new sizes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interpolate(pb.tensor([[[1.0, 3.0]]]), size=4, mode="linear")
    tensor([[[1. , 1.5, 2.5, 3. ]]])
    """
    x = asarray(x)
    axes = x.ndim - 2
    if axes not in (1, 2, 3):
        raise ShapeError(f"interpolate: x must be (samples, channels, one to three spatial axes), got shape {x.shape}.")
    if mode not in _MODES or axes not in _MODES[mode][1]:
        fitting = ", ".join(repr(name) for name, (_, counts) in _MODES.items() if axes in counts)
        raise ShapeError(f"interpolate: mode must be one of {fitting} for {axes} spatial axes, got {mode!r}.")
    kind = _MODES[mode][0]
    if kind not in ("linear", "cubic") and align_corners is not None:
        raise ShapeError(f"interpolate: align_corners has no meaning for mode {mode!r}; leave it out.")
    if not kind.startswith("nearest") and x.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"interpolate: mode {mode!r} needs floating-point numbers, got {x.dtype.name}.")
    if (size is None) == (scale_factor is None):
        raise ShapeError(f"interpolate: give size or scale_factor, one of them, got {size!r} and {scale_factor!r}.")
    steps: tuple[float | None, ...] = (None,) * axes
    if size is not None:
        sizes = per_axis("interpolate", "size", size, axes, least=1)
    else:
        factors: tuple[Any, ...] = (
            tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
        )
        if len(factors) != axes or not all(isinstance(f, (int, float)) and f > 0 for f in factors):
            raise ShapeError(
                f"interpolate: scale_factor must be a positive number or {axes} of them, got {scale_factor!r}."
            )
        sizes = tuple(math.floor(n * f) for n, f in zip(x.shape[2:], factors))
        if not recompute_scale_factor:
            steps = tuple(1.0 / f for f in factors)
    if min(sizes) < 1 or min(x.shape[2:]) < 1:
        raise ShapeError(f"interpolate: sizes must be at least 1; x has {x.shape[2:]}, the result would have {sizes}.")
    if kind == "area":
        return _adaptive_avg_pool("interpolate", axes, x, sizes)
    described = tuple(
        Interpolation(n, out, kind, bool(align_corners), step) for n, out, step in zip(x.shape[2:], sizes, steps)
    )
    return apply(OPERATIONS["resample"], (x,), (described, False))


# -- what they share ---------------------------------------------------------------------------------------------


def _max_pool(
    name: str, axes: int, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Any:
    x, single = with_samples(name, axes, x)
    dilation = per_axis(name, "dilation", dilation, axes, least=1)
    windows = _windows(name, x, kernel, stride, padding, dilation, ceil_mode)
    for window in windows:
        if window.padding and window.dilation > 1 and (positions(window) == OUTSIDE).all(axis=1).any():
            raise ShapeError(
                f"{name}: a window reads nothing but padding: x {x.shape[2:]}, kernel_size={kernel}, "
                f"padding={padding}, dilation={dilation}."
            )
    return _largest(x, windows, single, indices)


def _adaptive_max_pool(name: str, axes: int, x: Any, output_size: Any, indices: bool) -> Any:
    x, single = with_samples(name, axes, x)
    return _largest(x, _adaptive(name, x, output_size), single, indices)


def _largest(x: Tensor, windows: tuple[Window | Adaptive, ...], single: bool, with_indices: bool) -> Any:
    if not with_indices:
        out = apply(OPERATIONS["max_pool"], (x,), (windows,))
        return without_samples(out) if single else out
    indices = apply(OPERATIONS["max_pool_indices"], (x.detach(),), (windows,))
    out = apply(OPERATIONS["pool_gather"], (x, indices))
    return (without_samples(out), without_samples(indices)) if single else (out, indices)


def _avg_pool(
    name: str, axes: int, x: Any, kernel: Any, stride: Any, padding: Any,
    ceil_mode: bool, count_include_pad: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    x, single = with_samples(name, axes, x)
    _check_mean(name, x)
    if divisor == 0:
        raise ShapeError(f"{name}: divisor_override must not be 0.")
    windows = _windows(name, x, kernel, stride, padding, (1,) * axes, ceil_mode)
    divisors = (divisor, *(None if divisor is None else 1 for _ in range(axes - 1)))  # the product of them divides
    described = tuple(
        Average(w.size, w.out, w.kernel, w.stride, w.padding, bool(count_include_pad), d)
        for w, d in zip(windows, divisors)
    )
    out = apply(OPERATIONS["resample"], (x,), (described, False))
    return without_samples(out) if single else out


def _adaptive_avg_pool(name: str, axes: int, x: Any, output_size: Any) -> Tensor:
    x, single = with_samples(name, axes, x)
    _check_mean(name, x)
    out = apply(OPERATIONS["resample"], (x,), (_adaptive(name, x, output_size), False))
    return without_samples(out) if single else out


def _check_mean(name: str, x: Tensor) -> None:
    if x.dtype.kind not in ("float", "complex"):
        raise DtypeError(f"{name}: a mean needs floating-point numbers, got {x.dtype.name}. Convert x first.")


def _windows(
    name: str, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: tuple[int, ...], ceil_mode: bool
) -> tuple[Window, ...]:
    axes = x.ndim - 2
    kernel = per_axis(name, "kernel_size", kernel, axes, least=1)
    stride = kernel if stride is None else per_axis(name, "stride", stride, axes, least=1)
    padding = per_axis(name, "padding", padding, axes, least=0)
    windows = []
    for n, k, jump, pad, step in zip(x.shape[2:], kernel, stride, padding, dilation):
        if 2 * pad > k:
            raise ShapeError(f"{name}: padding must be at most half of kernel_size, got {padding} and {kernel}.")
        room = n + 2 * pad - step * (k - 1) - 1
        out = (-(-room // jump) if ceil_mode else room // jump) + 1
        if ceil_mode and (out - 1) * jump >= n + pad:
            out -= 1  # the last window must start in the input or in the padding before it
        if n < 1 or out < 1:
            raise ShapeError(
                f"{name}: the window is larger than the input: kernel_size={kernel} with dilation {dilation}, "
                f"x {x.shape[2:]} with padding {padding}."
            )
        windows.append(Window(n, out, k, jump, pad, step))
    return tuple(windows)


def _adaptive(name: str, x: Tensor, output_size: Any) -> tuple[Adaptive, ...]:
    axes = x.ndim - 2
    if isinstance(output_size, (tuple, list)) and len(output_size) == axes:
        output_size = tuple(n if out is None else out for n, out in zip(x.shape[2:], output_size))
    sizes = per_axis(name, "output_size", output_size, axes, least=1)
    if min(x.shape[2:]) < 1:
        raise ShapeError(f"{name}: x must have at least one element along every spatial axis, got shape {x.shape}.")
    return tuple(Adaptive(n, out) for n, out in zip(x.shape[2:], sizes))
