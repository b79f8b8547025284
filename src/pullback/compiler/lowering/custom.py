"""Instructions that one kernel computes as a whole: attention, scans, running and extreme values, random bits.

Each returns the views of its results, or None where the kernel has no form for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from ...targets.custom_kernels import Attention, AttentionGradient, Extreme, Philox, Running, Scan, ScanGradient
from ..program import Instruction, Value
from . import views as v
from .nodes import Graph
from .reduce import summed_to
from .scalar_steps import converted, copied
from .views import View, name_of

Views = dict[Value, View]
_FLOATS = frozenset(("float32", "float64"))
_HALF = frozenset(("float16", "bfloat16"))
_COMPARED = frozenset(("float32", "float64", "int32", "int64"))


def in_memory(graph: Graph, view: View) -> View:
    """A view that is of memory: a number or positions are written there first."""
    return view if view.root.kind == "memory" else copied(graph, view)


def _as(graph: Graph, view: View, dtype: str) -> View | None:
    made = converted(graph, view, dtype)
    return None if made is None else in_memory(graph, made)


# -- attention -------------------------------------------------------------------------------------


def _attention_form(graph: Graph, views: Views, parts: Any, mask: Any, options: Any) -> Any:
    """The description of an attention, and the arrays q, k, v and mask."""
    is_causal, scale, dropout = options
    q, k, w = (in_memory(graph, views[part]) for part in parts)
    dtype, batch = q.root.dtype, q.shape[:-3]
    if dtype not in _FLOATS or {k.root.dtype, w.root.dtype} != {dtype} or type(dropout) is Value or dropout:
        return None
    if k.shape[:-3] != batch or w.shape[:-3] != batch or type(scale) is Value or not k.shape[-3] or 0 in q.shape:
        return None
    heads, length, keys = k.shape[-3], q.shape[-2], k.shape[-2]
    arrays = [q, k, w]
    seen: Any = None
    if mask is not None:
        view = in_memory(graph, views[mask])
        if view.root.dtype not in ("bool", dtype):
            return None
        seen = (view.root.dtype, v.broadcast_strides(view, (*batch, q.shape[-3], length, keys)))
        arrays.append(view)
    out, lse = (*q.shape[:-1], w.shape[-1]), q.shape[:-1]
    form = Attention(
        dtype, batch, heads, q.shape[-3] // heads, length, keys, q.shape[-1], w.shape[-1], q.strides, k.strides,
        w.strides, seen, bool(is_causal), float(scale), v.c_strides(out), v.c_strides(lse),
    )  # fmt: skip
    return form, arrays


def _attention(graph: Graph, views: Views, i: Instruction) -> Any:
    form = _attention_form(graph, views, i.args[:3], i.args[3], i.args[4:7])
    if form is None:
        return None
    kernel, arrays = form
    out = graph.new_like(i.results[0].shape, kernel.dtype, kernel.q)
    lse = graph.new(i.results[1].shape, kernel.dtype)
    graph.call(replace(kernel, out=out.strides), arrays, [out, lse])
    return [out, lse]


def _attention_gradient(graph: Graph, views: Views, i: Instruction) -> Any:
    g, q, k, w, mask, out, lse, needs, *options = i.args
    if needs[3] or not any(needs):
        return None
    form = _attention_form(graph, views, (q, k, w), mask, options[:3])
    if form is None:
        return None
    kernel, arrays = form
    dtype = kernel.dtype
    grad, out_view, lse_view = (_as(graph, views[value], dtype) for value in (g, out, lse))
    if grad is None or out_view is None or lse_view is None:
        return None
    kernel = replace(kernel, out=out_view.strides, lse=lse_view.strides)
    orders = [order for order, needed in zip((kernel.q, kernel.k, kernel.v), needs) if needed]
    made = [graph.new_like(value.shape, dtype, order) for value, order in zip(i.results, orders)]
    strides = iter([view.strides for view in made])
    wanted = [next(strides) if needed else None for needed in needs[:3]]
    graph.call(AttentionGradient(kernel, grad.strides, *wanted), [grad, *arrays, out_view, lse_view], made)
    return made


# -- along an axis ---------------------------------------------------------------------------------


def _along(graph: Graph, view: View, dtype: str) -> View | None:
    """As `_as`, for kernels that take any strides: of a number that is everywhere there is one in memory."""
    if view.root.kind != "number":
        return _as(graph, view, dtype)
    made = _as(graph, v.number(view.root.number, view.root.dtype, ()), dtype)
    return None if made is None else v.broadcast(made, view.shape)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _beside(view: View, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The strides of something without the axis of time, with one there that is not used."""
    strides = v.broadcast_strides(view, _without(shape, axis))
    return (*strides[:axis], 0, *strides[axis:])


def _scan(graph: Graph, views: Views, i: Instruction) -> Any:
    if i.op == "recurrence":
        x, a, (axis,), *rest = i.args
        h0, reverse = None, bool(rest[0]) if rest else False
    else:
        x, a, h0, axis, reverse = i.args
    result = i.results[0]
    dtype, shape = name_of(result.dtype), result.shape
    if dtype not in _FLOATS or views[x].shape != shape:
        return None
    reads = [_along(graph, views[value], dtype) for value in (x, a, h0) if value is not None]
    if any(view is None for view in reads):
        return None
    axis %= len(shape)
    out = graph.new(shape, dtype)
    start = _beside(reads[2], shape, axis) if h0 is not None else None  # type: ignore[arg-type]
    of_a = v.broadcast_strides(reads[1], shape)  # type: ignore[arg-type]
    graph.call(Scan(dtype, shape, axis, reverse, reads[0].strides, of_a, start, out.strides), reads, [out])  # type: ignore
    return out


def _scan_gradient(graph: Graph, views: Views, i: Instruction) -> Any:
    g, a, h0, out, a_shape, h0_shape, axis, reverse, needs = i.args
    dtype, shape = name_of(i.results[0].dtype), views[g].shape
    if dtype not in _FLOATS or 0 in shape:
        return None
    axis %= len(shape)
    grad, factor = (_along(graph, views[value], dtype) for value in (g, a))
    start = None if h0 is None else _along(graph, views[h0], dtype)
    states = _along(graph, views[out], dtype) if needs[1] else None
    if grad is None or factor is None or (h0 is not None and start is None) or (needs[1] and states is None):
        return None
    rest = _without(shape, axis)
    # An `a` that is the same at all times gets its sum over time at once.
    at = axis - len(shape) + len(a_shape)
    sums = bool(needs[1]) and (at < 0 or a_shape[at] == 1) and shape[axis] != 1
    dx = graph.new(shape, dtype)
    da = graph.new(rest if sums else shape, dtype) if needs[1] else None
    dh = graph.new(rest, dtype) if needs[2] else None
    kernel = ScanGradient(
        dtype, shape, axis, bool(reverse), grad.strides, v.broadcast_strides(factor, shape),
        None if start is None else _beside(start, shape, axis), None if states is None else states.strides, dx.strides,
        None if da is None else _beside(da, shape, axis) if sums else da.strides,
        None if dh is None else _beside(dh, shape, axis), sums,
    )  # fmt: skip
    reads = [grad, factor, *(x for x in (start, states) if x is not None)]
    graph.call(kernel, reads, [dx, *(x for x in (da, dh) if x is not None)])
    made = [dx]
    if da is not None:
        made.append(summed_to(graph, v.expanded(da, (axis,)) if sums else da, a_shape))
    if dh is not None:
        made.append(summed_to(graph, dh, h0_shape))
    return made


def _running(graph: Graph, views: Views, i: Instruction) -> Any:
    x, (axis,), *rest = i.args
    result = i.results[0]
    dtype = name_of(result.dtype)
    wide = "float32" if dtype in _HALF and i.op == "cumulative_sum" else dtype
    if wide not in _FLOATS and wide != "int64":
        return None
    view = _as(graph, views[x], wide)
    if view is None:
        return None
    reverse, exclusive = (*rest, False, False)[:2]
    out = graph.new(result.shape, wide)
    axis %= len(result.shape)
    op = "sum" if i.op == "cumulative_sum" else "prod"
    kernel = Running(op, wide, result.shape, axis, bool(reverse), bool(exclusive), view.strides, out.strides)
    graph.call(kernel, [view], [out])
    return converted(graph, out, dtype)


def _extreme(graph: Graph, views: Views, i: Instruction) -> Any:
    x, axis = i.args[0], i.args[1] if len(i.args) > 1 else None
    view = in_memory(graph, views[x])
    if view.root.dtype not in _COMPARED or not view.size:
        return None
    if axis is None:
        flat = v.reshaped(view, (view.size,))
        view, at = flat if flat is not None else v.whole(copied(graph, view).root, (view.size,)), 0
    else:
        at = axis[0] % len(view.shape)
    rows = _without(view.shape, at)
    out = graph.new(rows, "int64")
    strides = (*_without(view.strides, at), view.strides[at])
    graph.call(Extreme(i.op, view.root.dtype, rows, view.shape[at], strides, out.strides), [view], [out])
    return v.reshaped(out, i.results[0].shape)


# -- random bits -----------------------------------------------------------------------------------


def _dropout_mask(graph: Graph, views: Views, i: Instruction) -> Any:
    _, p, key, offset = i.args
    if type(p) is Value:
        return None
    shape, threshold = i.results[0].shape, round(p * 2**32)
    if threshold >= 2**32:
        return v.number(False, "bool", shape)
    reads = []
    for part in (key, offset):
        view = views[part] if type(part) is Value else v.number(part, "uint64", ())
        if view.root.dtype not in ("uint64", "int64"):
            return None
        reads.append(in_memory(graph, view))
    out = graph.new(shape, "bool")
    graph.call(Philox("bool", out.size, threshold), reads, [out])
    return out


CUSTOM: dict[str, Callable[[Graph, Views, Instruction], Any]] = {
    "attention": _attention, "attention_gradient": _attention_gradient, "ssm_scan": _scan, "recurrence": _scan,
    "ssm_scan_gradient": _scan_gradient, "cumulative_sum": _running, "cumulative_prod": _running, "argmax": _extreme,
    "argmin": _extreme, "dropout_mask": _dropout_mask,
}  # fmt: skip
