"""Convolutions along one or two axes straight from the images: what windows see is never unfolded into memory."""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

from ...targets.custom_kernels import DirectConvolution, DirectConvolutionGradient, Window
from . import views as v
from .movement import write
from .nodes import Graph
from .scalar_steps import own_copy
from .views import View

Sizes = tuple[int, ...]

#: Channels of a group up to which this is faster than products of what is unfolded, however narrow the images are.
FEW_CHANNELS = 8
#: Elements of a row of the result at least, else: vectors would be mostly empty.
FEWEST_WIDE = 5
#: Elements of a window at most, along its rows and in all.
MOST_WIDE, MOST_TAPS = 11, 121
#: Bytes of what two rows of a result see: larger images are computed a few rows at a time.
MOST_BYTES = 1 << 21


def window_for(
    channels: int, groups: int, dtype: str, size: Any, kernel: Any, out: Any, stride: Any, padding: Any, dilation: Any
) -> Window | None:  # fmt: skip
    """The window of a convolution that is better computed so, in groups of so many channels; None for others."""
    if len(size) > 2 or not _is_suited(channels, groups, kernel, out[-1]):
        return None
    return _window(channels, dtype, size, kernel, out, stride, [low for low, _ in padding], dilation)


def _is_suited(channels: int, groups: int, kernel: Any, columns: int) -> bool:
    """Whether windows overlap and vectors are full, or else groups are small."""
    return (groups > 1 and channels <= FEW_CHANNELS) or (prod(kernel) > 1 and columns >= FEWEST_WIDE)


def _window(
    channels: int, dtype: str, size: Any, kernel: Any, out: Any, stride: Any, start: Any, dilation: Any
) -> Window | None:
    """The window, unless what it sees is too much."""
    sizes = (_two(size), _two(kernel), _two(out))
    window = Window(*sizes, _two(stride), _two(dilation), _two(start, 0))
    high, wide = window.kernel
    rows = window.stride[0] + (high - 1) * window.dilation[0] + 1
    images = channels * rows * (window.reach[1] + 16 * window.stride[1]) * v.itemsize(dtype)
    return window if wide <= MOST_WIDE and high * wide <= MOST_TAPS and images <= MOST_BYTES else None


def convolved(graph: Graph, x: View, weight: View, groups: int, into: View, window: Window) -> View:
    """The convolution of a batch with weights that are contiguous, written into an array or a part of one."""
    kernel = DirectConvolution(
        x.root.dtype, into.shape[0], groups, weight.shape[1], into.shape[1] // groups, window, _strides(x),
        _strides(into),
    )  # fmt: skip
    graph.call(kernel, [x, weight], [into])
    return into


def input_gradient(
    graph: Graph, g: View, weight: View, groups: int, shape: Sizes, stride: Any, padding: Any, dilation: Any
) -> View | None:
    """The gradient of the input, of a given shape: convolutions of the cotangent with the weights turned round.

    With a stride, inputs that are a stride apart are seen by the same taps: each such part is a convolution of its own.
    """
    columns = shape[-1] // stride[-1]
    if len(stride) > 2 or not _is_suited(weight.shape[0] // groups, groups, weight.shape[2:], columns):
        return None
    axes = zip(shape[2:], weight.shape[2:], stride, [low for low, _ in padding], dilation)
    parts: list[tuple[tuple[_Phase, ...], Window | None]] = []
    for part in product(*[_phases(*axis) for axis in axes]):
        size = [phase.size for phase in part]
        if not all(phase.taps for phase in part):
            parts.append((part, None))
            continue
        kernel, apart = [len(phase.taps) for phase in part], [phase.dilation for phase in part]
        sizes = (g.shape[2:], kernel, size, [1] * len(size))
        start = [phase.start for phase in part]
        window = _window(weight.shape[0] // groups, g.root.dtype, *sizes, start, apart)
        if window is None:
            return None
        parts.append((part, window))
    made = graph.new(shape, g.root.dtype)
    for part, window in parts:
        places = [slice(phase.first, None, step) for phase, step in zip(part, stride)]
        into = v.indexed(made, (slice(None), slice(None), *places))
        if window is None:  # no window sees these
            write(graph, into, v.number(0, g.root.dtype, ()))
            continue
        taps = [slice(phase.taps.start, phase.taps.stop, phase.taps.step) for phase in part]
        seen = v.indexed(weight, (slice(None), slice(None), *taps))
        convolved(graph, g, turned(graph, seen, groups), groups, into, window)
    return made


class _Phase(NamedTuple):
    """Every so many-th element of an axis: the first and how many, the taps that see them, and how as a convolution."""

    first: int
    size: int
    taps: range
    dilation: int
    start: int


def _phases(size: int, kernel: int, stride: int, low: int, dilation: int) -> list[_Phase]:
    """The elements of an axis by the taps that see them: element i is seen by tap t from (i + low - t * dilation) /
    stride, if that is whole.
    """
    made = []
    common = gcd(stride, dilation)
    for first in range(min(stride, size)):
        seen = [t for t in range(kernel) if (first + low - t * dilation) % stride == 0]
        taps = range(seen[0], kernel, stride // common) if seen else range(0)
        step = dilation // common
        start = (len(seen) - 1) * step - (first + low - seen[0] * dilation) // stride if seen else 0
        made.append(_Phase(first, -(-(size - first) // stride), taps, step, start))
    return made


def turned(graph: Graph, weight: View, groups: int) -> View:
    """The weights of the convolution that is the transpose of one with stride 1."""
    features, channels, *kernel = weight.shape
    grouped = v.reshaped(in_order(graph, weight), (groups, features // groups, channels, *kernel))
    assert grouped is not None
    spatial = tuple(range(3, 3 + len(kernel)))
    backwards = v.flipped(v.permuted(grouped, (0, 2, 1, *spatial)), spatial)
    return v.whole(own_copy(graph, backwards).root, (groups * channels, features // groups, *kernel))


def in_order(graph: Graph, view: View) -> View:
    """A view that is contiguous; copied if need be."""
    return view if view.dense else own_copy(graph, view)


def weight_gradient(graph: Graph, g: View, x: View, groups: int, shape: Sizes, window: Window) -> View:
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
