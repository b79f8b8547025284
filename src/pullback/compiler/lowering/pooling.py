"""Maxima of windows, as comparisons of the windows' elements one after the other, and what follows their positions."""

from __future__ import annotations

from itertools import product
from math import inf, prod
from typing import Any, Callable

from ...backends.windows import Window
from ..program import Instruction, Value
from . import views as v
from .convolution import with_padding
from .gathering import GATHERING
from .nodes import Graph
from .scalar_steps import copied
from .views import Root, View

Views = dict[Value, View]
#: Elements of a window up to which they are compared in one loop.
MOST_TAPS = 12
_COMPARED = frozenset(("float32", "float64", "int32", "int64"))


def _max_pool(graph: Graph, views: Views, i: Instruction) -> Any:
    """The largest element of each window and its place in the plane: the first of equal ones, the last NaN."""
    x, axes = views[i.args[0]], i.args[1]
    dtype, shape = x.root.dtype, i.results[0].shape
    if dtype not in _COMPARED or x.root.kind != "memory" or not i.results[0].size:
        return None
    if not all(type(axis) is Window for axis in axes) or prod([axis.kernel for axis in axes]) > MOST_TAPS:
        return None
    padding = [(axis.padding, max(0, _reach(axis) - axis.size - axis.padding)) for axis in axes]
    seen_from = with_padding(graph, x, padding, _lowest(dtype))
    steps = v.c_strides(tuple([axis.size for axis in axes]))
    best: Any = None
    at = _first_places(graph, axes, steps, shape)
    for taps in product(*[range(0, axis.kernel * axis.dilation, axis.dilation) for axis in axes]):
        places = [slice(tap, tap + (axis.out - 1) * axis.stride + 1, axis.stride) for tap, axis in zip(taps, axes)]
        seen = v.indexed(seen_from, (slice(None), slice(None), *places))
        if best is None:
            best = seen
            continue
        better = graph.map("greater", dtype, "bool", [seen, best], shape)
        if dtype[0] == "f":
            nan = graph.map("not_equal", dtype, "bool", [seen, seen], shape)
            better = graph.map("logical_or", "bool", "bool", [better, nan], shape)
        best = graph.map("where", dtype, dtype, [better, seen, best], shape)
        here = v.number(sum([tap * step for tap, step in zip(taps, steps)]), "int32", shape)
        at = graph.map("where", "int32", "int32", [better, here, at], shape)
    begin = sum([-axis.padding * step for axis, step in zip(axes, steps)])
    moves = (0, 0, *[axis.stride * step for axis, step in zip(axes, steps)])
    windows = View(Root("positions", "int64", prod([axis.size for axis in axes])), begin, shape, moves)
    return [best, graph.map("add", "int64", "int64", [at, windows], shape)]


def _first_places(graph: Graph, axes: Any, steps: Any, shape: tuple[int, ...]) -> View:
    """From where each window begins to its first element that is not in the padding."""
    total = v.number(0, "int32", shape)
    for number, (axis, step) in enumerate(zip(axes, steps)):
        if not axis.padding:
            continue
        # -(-k // d) * d is the first multiple of the dilation, d, that is not below k.
        starts = View(
            Root("positions", "int64", axis.out), -axis.padding, shape,
            tuple([axis.stride if n == number + 2 else 0 for n in range(len(shape))]),
        )  # fmt: skip
        missing = graph.map("minimum", "int64", "int64", [starts, v.number(0, "int64", shape)], shape)
        if axis.dilation > 1:
            times = v.number(axis.dilation, "int64", shape)
            missing = graph.map("floor_divide", "int64", "int64", [missing, times], shape)
            missing = graph.map("multiply", "int64", "int64", [missing, times], shape)
        apart = v.number(-step, "int32", shape)
        narrow = graph.map("copy", "int32", "int32", [missing], shape)
        moved = graph.map("multiply", "int32", "int32", [narrow, apart], shape)
        total = graph.map("add", "int32", "int32", [total, moved], shape)
    return total


def _reach(axis: Any) -> int:
    """How many elements, those of the padding before them too, the windows go over."""
    return int((axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1)


def _lowest(dtype: str) -> Any:
    return -inf if dtype[0] == "f" else -(1 << (8 * v.itemsize(dtype) - 1))


def _max_pool_indices(graph: Graph, views: Views, i: Instruction) -> Any:
    made = _max_pool(graph, views, i)
    return None if made is None else made[1]


def _gather(graph: Graph, views: Views, i: Instruction) -> Any:
    return _along(graph, views, i, "take_along_axis", (), prod(i.results[0].shape[2:]))


def _scatter(graph: Graph, views: Views, i: Instruction) -> Any:
    size = prod(i.args[2])
    return _along(graph, views, i, "take_along_axis_transposed", (size,), size)


def _along(graph: Graph, views: Views, i: Instruction, op: str, static: tuple[int, ...], length: int) -> Any:
    """What reads or adds at positions in planes, as the same along the rows of a matrix."""
    if not i.results[0].size:
        return None
    rows = []
    for value in i.args[:2]:
        view = views[value]
        shape = (view.shape[0] * view.shape[1], prod(view.shape[2:]))
        row = v.reshaped(view, shape) if view.root.kind == "memory" else None
        rows.append(Value(shape, value.dtype))
        views[rows[-1]] = row if row is not None else v.whole(copied(graph, view).root, shape)
    made = Value((rows[0].shape[0], length), i.results[0].dtype)
    out = GATHERING[op](graph, views, Instruction(op, (*rows, *static, -1), (made,), i.site))
    return None if out is None else v.reshaped(out, i.results[0].shape)


POOLING: dict[str, Callable[[Graph, Views, Instruction], Any]] = {
    "max_pool": _max_pool, "max_pool_indices": _max_pool_indices, "pool_gather": _gather, "pool_scatter": _scatter,
}  # fmt: skip
