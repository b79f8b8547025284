"""Convolutions: most have kernels of their own (`direct_convolution.py`), others are matrix products.

Those are the windows of the input, unfolded into a matrix, times the weights: windows of one element, over three axes,
and over narrow images. Windows are a view of the padded input in which elements appear several times; unfolding is
copying that view. Where the copy would be large the convolution is left to NumPy's kernel, which unfolds piece by
piece.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, Callable

from ...targets.kernels import Product
from ..program import Instruction, Value
from . import direct_convolution as direct, views as v
from .movement import write
from .nodes import Graph, coalesced
from .scalar_steps import converted, own_copy
from .views import View, name_of

Views = dict[Value, View]
Sizes = tuple[int, ...]
#: Bytes of an unfolded input that may be in memory.
MOST_BYTES = 1 << 26
_FLOATS = frozenset(("float32", "float64"))
_HALF = frozenset(("float16", "bfloat16"))


def _forward(graph: Graph, views: Views, i: Instruction) -> Any:
    biased = i.op == "biased_convolution"
    found = _arrays(graph, views, i, i.args[: 2 + biased])
    if found is None:
        return None
    x, weight, *bias = found
    stride, padding, dilation, groups = i.args[2 + biased :]
    out = _convolved(graph, x, weight, stride, padding, dilation, groups, i.results[0].shape)
    if out is None:
        return None
    if bias:
        bias_view = v.expanded(bias[0], tuple(range(-len(weight.shape) + 2, 0)))
        dtype = out.root.dtype
        out = graph.map("add", dtype, dtype, [out, v.broadcast(bias_view, out.shape)], out.shape)
    return converted(graph, out, name_of(i.results[0].dtype))


def _input_gradient(graph: Graph, views: Views, i: Instruction) -> Any:
    """With stride 1 a convolution with the weights turned round; else every window's part is added where it was."""
    found = _arrays(graph, views, i, i.args[:2])
    if found is None:
        return None
    g, weight = found
    size, stride, padding, dilation, groups = i.args[2:]
    shape = i.results[0].shape
    out = direct.input_gradient(graph, g, weight, groups, shape, stride, padding, dilation)
    if out is None and all(step == 1 for step in stride):
        reach = [step * (k - 1) for step, k in zip(dilation, weight.shape[2:])]
        opposite = tuple((r - low, r - high) for r, (low, high) in zip(reach, padding))
        turned = direct.turned(graph, weight, groups)
        out = _convolved(graph, g, turned, stride, opposite, dilation, groups, shape)
    elif out is None:
        out = _spread(graph, g, weight, tuple(size), stride, padding, dilation, groups)
    return None if out is None else converted(graph, out, name_of(i.results[0].dtype))


def _weight_gradient(graph: Graph, views: Views, i: Instruction) -> Any:
    found = _arrays(graph, views, i, i.args[:2])
    if found is None:
        return None
    g, x = found
    size, stride, padding, dilation, groups = i.args[2:]
    samples, out = g.shape[0], g.shape[2:]
    sizes = (x.shape[2:], size, out, stride)
    window = direct.window_for(x.shape[1] // groups, groups, x.root.dtype, *sizes, padding, dilation)
    if window is not None:
        weights = direct.weight_gradient(graph, g, x, groups, i.results[0].shape, window)
        return converted(graph, weights, name_of(i.results[0].dtype))
    columns = _unfolded(graph, x, tuple(size), stride, padding, dilation, groups, out)
    if columns is None:
        return None
    # One product over all samples: for that the cotangent is put in the order of the windows.
    by_feature = own_copy(graph, v.permuted(g, (1, 0, *range(2, len(g.shape)))))
    m, n, k = g.shape[1] // groups, columns.shape[1], samples * prod(out)
    made = graph.new((groups, m, n), g.root.dtype)
    _multiply(graph, (groups,), (m, n, k), (by_feature, (m * k, k, 1)), (columns, (n * k, 1, k)), (made, (m * n, n, 1)))
    return converted(graph, v.whole(made.root, i.results[0].shape), name_of(i.results[0].dtype))


# -- the product -----------------------------------------------------------------------------------


def _convolved(
    graph: Graph, x: View, weight: View, stride: Any, padding: Any, dilation: Any, groups: int, shape: Sizes
) -> View | None:
    """The convolution of a batch, of a given shape."""
    kernel, out = weight.shape[2:], shape[2:]
    sizes = (x.shape[2:], kernel, out, stride)
    window = direct.window_for(weight.shape[1], groups, x.root.dtype, *sizes, padding, dilation)
    if window is not None:
        made = graph.new(shape, x.root.dtype)
        return direct.convolved(graph, x, direct.in_order(graph, weight), groups, made, window)
    samples, m, k, area = shape[0], shape[1] // groups, weight.shape[1] * prod(kernel), prod(out)
    if prod(kernel) == 1 and not any(map(any, padding)) and all(jump == 1 for jump in stride):
        columns: View | None = direct.in_order(graph, x)
        moves = (groups * k * area, k * area, area, 1)
    else:
        columns = _unfolded(graph, x, kernel, stride, padding, dilation, groups, out)
        moves = (area, k * samples * area, samples * area, 1)
    if columns is None:
        return None
    made = graph.new(shape, x.root.dtype)
    matrices, results = (0, m * k, k, 1), (groups * m * area, m * area, area, 1)
    factors = (direct.in_order(graph, weight), matrices), (columns, moves)
    _multiply(graph, (samples, groups), (m, area, k), *factors, (made, results))
    return made


def _spread(
    graph: Graph, g: View, weight: View, size: Sizes, stride: Any, padding: Any, dilation: Any, groups: int
) -> View | None:
    """What each element of the result gives back to the elements of its window, added up."""
    kernel, out, dtype = weight.shape[2:], g.shape[2:], g.root.dtype
    samples, channels, area = g.shape[0], groups * weight.shape[1], prod(out)
    m, k = weight.shape[1] * prod(kernel), weight.shape[0] // groups
    if samples * groups * m * area * v.itemsize(dtype) > MOST_BYTES or any(n < 0 for pair in padding for n in pair):
        return None
    columns = graph.new((samples, channels, *kernel, *out), dtype)
    factors = (
        (direct.in_order(graph, weight), (0, k * m, 1, m)),
        (direct.in_order(graph, g), (groups * k * area, k * area, area, 1)),
    )
    results = (columns, (groups * m * area, m * area, area, 1))
    _multiply(graph, (samples, groups), (m, area, k), *factors, results)
    around = zip(size, padding)
    total = graph.new((samples, channels, *[n + low + high for n, (low, high) in around]), dtype)
    write(graph, total, v.number(0, dtype, ()))
    for tap in product(*map(range, kernel)):
        seen = v.indexed(columns, (slice(None), slice(None), *tap))
        places = [
            slice(t * step, t * step + (n - 1) * jump + 1, jump) for t, step, n, jump in zip(tap, dilation, out, stride)
        ]
        into = v.indexed(total, (slice(None), slice(None), *places))
        graph.map("add", dtype, dtype, [into, seen], into.shape, into, list(total.root.writers))
    return v.indexed(total, (slice(None), slice(None), *[slice(low, low + n) for n, (low, _) in zip(size, padding)]))


def _multiply(graph: Graph, batch: Sizes, form: tuple[int, int, int], *arrays: tuple[View, Sizes]) -> None:
    """A batch of products of (m, n, k) = `form`: of two arrays into a third, each with its strides."""
    sizes, moves = coalesced(batch, [strides[:-2] for _, strides in arrays])
    x, y, out = [(*move, *strides[-2:]) for move, (_, strides) in zip(moves, arrays)]
    (first, _), (second, _), (made, _) = arrays
    graph.call(Product(made.root.dtype, tuple(sizes), *form, x, y, out), [first, second], [made])


# -- windows ---------------------------------------------------------------------------------------


def _unfolded(
    graph: Graph, x: View, kernel: Sizes, stride: Any, padding: Any, dilation: Any, groups: int, out: Sizes
) -> View | None:
    """The windows as (groups, channels of a group x taps, samples x places), in memory."""
    samples, channels = x.shape[:2]
    rows = channels // groups * prod(kernel)
    if groups * rows * samples * prod(out) * v.itemsize(x.root.dtype) > MOST_BYTES:
        return None
    padded = with_padding(graph, x, padding)
    moves = padded.strides[2:]
    windows = View(
        padded.root, padded.offset, (channels, *kernel, samples, *out),
        (
            padded.strides[1], *(s * step for s, step in zip(moves, dilation)), padded.strides[0],
            *(s * jump for s, jump in zip(moves, stride)),
        ),
    )  # fmt: skip
    return v.whole(own_copy(graph, windows).root, (groups, rows, samples * prod(out)))


def with_padding(graph: Graph, x: View, padding: Any, value: Any = 0) -> View:
    """A view with a number around its spatial axes; negative padding cuts off."""
    for axis, (low, high) in enumerate(padding, 2):
        x = v.part(x, axis, max(-low, 0), x.shape[axis] - max(-high, 0))
    around = [(0, 0), (0, 0), *((max(low, 0), max(high, 0)) for low, high in padding)]
    if not any(map(any, around)):
        return x
    out = graph.new(tuple([n + low + high for n, (low, high) in zip(x.shape, around)]), x.root.dtype)
    middle = out
    for axis, (low, high) in enumerate(around):
        n = x.shape[axis]
        for start, stop in ((0, low), (low + n, low + n + high)):
            if stop > start:
                write(graph, v.part(middle, axis, start, stop), v.number(value, x.root.dtype, ()))
        middle = v.part(middle, axis, low, low + n)
    write(graph, middle, x)
    return out


# -- arrays ----------------------------------------------------------------------------------------


def _arrays(graph: Graph, views: Views, i: Instruction, values: Any) -> list[View] | None:
    """Arrays in the dtype to compute in: half precision is summed in single. None where there is no native form."""
    dtype = name_of(i.results[0].dtype)
    wide = "float32" if dtype in _HALF else dtype
    if wide not in _FLOATS or not i.results[0].size or not all(views[value].size for value in values):
        return None
    made = []
    for value in values:
        view = converted(graph, views[value], wide)
        if view is None:
            return None
        made.append(view if view.root.kind == "memory" else own_copy(graph, view))
    return made


CONVOLUTION: dict[str, Callable[[Graph, Views, Instruction], Any]] = {
    "convolution": _forward, "biased_convolution": _forward, "convolution_input_gradient": _input_gradient,
    "convolution_weight_gradient": _weight_gradient,
}  # fmt: skip
