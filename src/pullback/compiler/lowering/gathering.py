"""Reading, adding and writing at positions that are only known when the program runs.

A position out of bounds stands for 0 in the kernels: the program itself looks for such (`calling/checks.py`).
"""

from __future__ import annotations

from typing import Any, Callable

from ...targets.custom_kernels import Gather, GatherAlong, Overwrite, Scatter, ScatterAlong
from ..program import Instruction, Value
from ..shapes import broadcast_shape
from . import views as v
from .custom import in_memory
from .nodes import Graph
from .scalar_steps import copied
from .views import NATIVE, View, name_of

Views = dict[Value, View]
_ADDED = frozenset(("float32", "float64", "int32", "int64"))
_INDICES = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"))


def _indices(graph: Graph, views: Views, values: Any) -> list[View] | None:
    """Arrays of positions, in memory."""
    made = [in_memory(graph, views[value]) for value in values]
    return made if all(view.root.dtype in _INDICES for view in made) else None


def gathered(graph: Graph, view: View, indices: list[View], outer: int) -> View:
    """Rows of a view named by indices of the axes from number `outer` on."""
    count = len(indices)
    places = broadcast_shape([index.shape for index in indices])
    shape = view.shape
    out = graph.new((*shape[:outer], *places, *shape[outer + count :]), view.root.dtype)
    kernel = Gather(
        view.root.dtype, shape[:outer], shape[outer : outer + count], places, shape[outer + count :], view.strides,
        tuple([(index.root.dtype, v.broadcast_strides(index, places)) for index in indices]), out.strides,
    )  # fmt: skip
    graph.call(kernel, [view, *indices], [out])
    return out


def scattered(
    graph: Graph, value: View, indices: list[View], outer: int, shape: tuple[int, ...], onto: View | None = None
) -> View:
    """Zeros of a shape, or `onto`, with rows of `value` added at indices of the axes from number `outer` on."""
    count = len(indices)
    places = broadcast_shape([index.shape for index in indices])
    out = graph.new(shape, value.root.dtype)
    value = v.broadcast(value, (*shape[:outer], *places, *shape[outer + count :]))
    kernel = Scatter(
        value.root.dtype, shape[:outer], shape[outer : outer + count], places, shape[outer + count :], value.strides,
        tuple([(index.root.dtype, v.broadcast_strides(index, places)) for index in indices]), out.strides,
        onto is not None,
    )  # fmt: skip
    graph.call(kernel, [value, *indices] if onto is None else [onto, value, *indices], [out])
    return out


# -- take ------------------------------------------------------------------------------------------


def _take(graph: Graph, views: Views, i: Instruction) -> Any:
    x, index, axis = i.args
    if type(index) is not Value or name_of(i.results[0].dtype) not in NATIVE or not views[x].size:
        return None
    indices = _indices(graph, views, (index,))
    view = in_memory(graph, views[x])
    return None if indices is None else gathered(graph, view, indices, axis % len(view.shape))


def _take_transposed(graph: Graph, views: Views, i: Instruction) -> Any:
    value, index, _, axis = i.args
    result = i.results[0]
    if name_of(result.dtype) not in _ADDED or type(index) is not Value or len(views[index].shape) != 1:
        return None
    indices = _indices(graph, views, (index,))
    if indices is None:
        return None
    return scattered(graph, in_memory(graph, views[value]), indices, axis % len(result.shape), result.shape)


# -- indexing by arrays ----------------------------------------------------------------------------


def _arrays_of(graph: Graph, views: Views, index: Any, ndim: int) -> tuple[int, list[View]] | None:
    """(axes before them, arrays) of an index that is arrays of integers for neighbouring axes and all of the others."""
    parts = list(index) if type(index) is tuple else [index]
    if any(part is Ellipsis for part in parts):
        at = next(n for n, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (ndim - len(parts) + 1)
    if not all(type(part) is Value or part == slice(None) for part in parts):
        return None
    at_arrays = [n for n, part in enumerate(parts) if type(part) is Value]
    if not at_arrays or at_arrays[-1] - at_arrays[0] >= len(at_arrays):
        return None
    indices = _indices(graph, views, [parts[n] for n in at_arrays])
    return None if indices is None else (at_arrays[0], indices)


def _getitem(graph: Graph, views: Views, i: Instruction) -> Any:
    view = views[i.args[0]]
    if view.root.dtype not in NATIVE or not view.size:
        return None
    found = _arrays_of(graph, views, i.args[1], len(view.shape))
    return None if found is None else gathered(graph, in_memory(graph, view), found[1], found[0])


def _place(graph: Graph, views: Views, i: Instruction) -> Any:
    value, shape, index = i.args
    if type(value) is not Value or name_of(i.results[0].dtype) not in _ADDED:
        return None
    found = _arrays_of(graph, views, index, len(shape))
    return None if found is None else scattered(graph, in_memory(graph, views[value]), found[1], found[0], tuple(shape))


def _index_add(graph: Graph, views: Views, i: Instruction) -> Any:
    x, value, index = i.args
    result = i.results[0]
    dtype = name_of(result.dtype)
    if type(value) is not Value or views[value].root.dtype != dtype or dtype not in _ADDED:
        return None
    found = _arrays_of(graph, views, index, len(result.shape))
    if found is None:
        return None
    rows = in_memory(graph, views[value])
    if graph.abilities.adds_rows:
        onto = views[x] if views[x].root.kind == "memory" and views[x].dense else copied(graph, views[x])
        if onto.root.dtype != dtype:
            return None
        return scattered(graph, rows, found[1], found[0], result.shape, onto)
    added = scattered(graph, rows, found[1], found[0], result.shape)
    return graph.map("add", dtype, dtype, [views[x], added], result.shape)


def _setitem(graph: Graph, views: Views, i: Instruction) -> Any:
    x, value, index = i.args
    shape, dtype = i.results[0].shape, name_of(i.results[0].dtype)
    if not graph.abilities.writes_rows or dtype not in NATIVE or type(value) is not Value:
        return None
    if views[x].root.dtype != dtype or views[value].root.dtype != dtype:
        return None
    found = _arrays_of(graph, views, index, len(shape))
    if found is None:
        return None
    outer, indices = found
    count = len(indices)
    places = broadcast_shape([one.shape for one in indices])
    rows = v.broadcast(in_memory(graph, views[value]), (*shape[:outer], *places, *shape[outer + count :]))
    onto = views[x]
    if onto.root.kind != "memory" or not onto.dense:
        onto = copied(graph, onto)
    kernel = Overwrite(
        dtype, shape[:outer], shape[outer : outer + count], places, shape[outer + count :], rows.strides,
        tuple([(one.root.dtype, v.broadcast_strides(one, places)) for one in indices]),
    )  # fmt: skip
    out = graph.new(shape, dtype)
    graph.call(kernel, [onto, rows, *indices], [out])
    return out


# -- along an axis ---------------------------------------------------------------------------------


def _rows(view: View, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Strides over rows of `shape`, then along the axis."""
    strides = v.broadcast_strides(view, (*shape[:axis], view.shape[axis], *shape[axis:]))
    return (*strides[:axis], *strides[axis + 1 :], view.strides[axis])


def _along(graph: Graph, views: Views, i: Instruction) -> Any:
    x, index, *rest, axis = i.args
    back = i.op == "take_along_axis_transposed"
    view, indices = in_memory(graph, views[x]), _indices(graph, views, (index,))
    dtype = view.root.dtype
    if indices is None or dtype not in (_ADDED if back else NATIVE) or len(view.shape) != len(indices[0].shape):
        return None
    at = axis % len(view.shape)
    rows = broadcast_shape([shape[:at] + shape[at + 1 :] for shape in (view.shape, indices[0].shape)])
    count = indices[0].shape[at]
    if back and view.shape[at] != count:
        return None
    out = graph.new(i.results[0].shape, dtype)
    strides = _rows(view, rows, at), indices[0].root.dtype, _rows(indices[0], rows, at), _rows(out, rows, at)
    size = rest[0] if back else view.shape[at]
    kernel: Any = (ScatterAlong if back else GatherAlong)(dtype, rows, size, count, *strides)
    graph.call(kernel, [view, *indices], [out])
    return out


GATHERING: dict[str, Callable[[Graph, Views, Instruction], Any]] = {
    "take": _take, "take_transposed": _take_transposed, "getitem": _getitem, "place": _place, "index_add": _index_add,
    "setitem": _setitem,
    "take_along_axis": _along, "take_along_axis_transposed": _along,
}  # fmt: skip
