"""Convolutions in groups of few channels, straight from the images: unfolding these costs more than computing."""

from __future__ import annotations

from typing import Any

from ...targets.custom_kernels import DirectConvolution, DirectConvolutionGradient, Window
from . import views as v
from .nodes import Graph
from .views import View

#: Channels of a group up to which this is faster than products of what is unfolded.
MOST_CHANNELS = 8
#: Groups from which on threads share the gradients of weights well.
FEWEST_GROUPS = 4
#: Elements of a window at most, along its rows and in all.
MOST_WIDE, MOST_TAPS = 11, 121
#: Bytes of the images of a group, which are to stay in cache.
MOST_BYTES = 1 << 18


def window_for(
    channels: int, groups: int, dtype: str, size: Any, kernel: Any, out: Any, stride: Any, padding: Any, dilation: Any,
    gaps: Any = None,
) -> Window | None:  # fmt: skip
    """The window of a convolution that is better computed so, in groups of so many channels; None for others."""
    if len(size) > 2 or groups == 1 or channels > MOST_CHANNELS:
        return None
    start = [low for low, _ in padding]
    gaps = gaps or [1] * len(start)
    window = Window(_two(size), _two(kernel), _two(out), _two(stride), _two(dilation), _two(start, 0), _two(gaps))
    high, wide = window.kernel
    rows, columns = window.reach
    images = channels * rows * (columns + 16 * window.stride[1]) * v.itemsize(dtype)
    return window if wide <= MOST_WIDE and high * wide <= MOST_TAPS and images <= MOST_BYTES else None


def convolved(graph: Graph, x: View, weight: View, groups: int, shape: tuple[int, ...], window: Window) -> View:
    """The convolution of a batch, of a given shape, with weights that are contiguous."""
    made = graph.new(shape, x.root.dtype)
    kernel = DirectConvolution(
        x.root.dtype, shape[0], groups, weight.shape[1], shape[1] // groups, window, _strides(x), _strides(made)
    )
    graph.call(kernel, [x, weight], [made])
    return made


def weight_gradient(graph: Graph, g: View, x: View, groups: int, shape: tuple[int, ...], window: Window) -> View:
    """The gradient of the weights, of a given shape."""
    made = graph.new(shape, x.root.dtype)
    kernel = DirectConvolutionGradient(
        x.root.dtype, x.shape[0], groups, shape[1], shape[0] // groups, window, _strides(g), _strides(x)
    )
    graph.call(kernel, [g, x], [made])
    return made


def _two(numbers: Any, missing: int = 1) -> tuple[int, int]:
    high, wide = (missing, *numbers) if len(numbers) == 1 else numbers
    return int(high), int(wide)


def _strides(view: View) -> tuple[int, ...]:
    samples, channels, *axes = view.strides
    return samples, channels, *_two(axes, 0)
